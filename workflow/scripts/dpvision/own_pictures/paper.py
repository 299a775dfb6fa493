"""The paper that is written for a folder of pictures: what a private head on public weights reaches, and who pays for it."""

from collections import Counter
from typing import Any

import yaml

from dpvision.data.datasets.folder import PACKED, test_count
from dpvision.data.picture_folders import FolderContents
from dpvision.errors import UserError

SIZE = 96
WEIGHTS, FEATURES = "mobilenet_v2", 1280
EPSILONS = [1.0, 2.0, 4.0, 8.0]
HEADER = "# yaml-language-server: $schema=../../config/schema/{}.json\n"
HEAD: dict[str, Any] = {
    "optimizer": {"name": "sgd", "learning_rate": 150.0, "momentum": 0.9},
    "schedule": {"name": "constant"},
    "batch": "all",
    "steps": 120,
    "evaluate_every": 30,
    "clip": 0.3,
}
WHOLE: dict[str, Any] = {
    "optimizer": {"name": "sgd", "learning_rate": 2.0},
    "schedule": {"name": "constant"},
    "steps": 300,
    "clip": 1.0,
    "divide_by_clip": True,
    "augmentation": {"pad": 4, "flip": 0.5, "views": 4},
    "averaging": {"decay": 0.999},
}


def names_given(name: str) -> set[str]:
    """Return all names that a paper gives to things: itself and its data set, its features, its artifacts."""
    return {name, f"{name}_seen", f"{name}_table", f"{name}_classes", f"{name}_figure"}


def split_counts(contents: FolderContents) -> tuple[int, int]:
    """Return how many pictures train, and how many test: those below test/, or else a fifth of each class."""
    by_class = Counter(path.split("/")[-2] for path in contents.pictures)
    if contents.is_split:
        test = sum(path.startswith("test/") for path in contents.pictures)
    else:
        test = sum(test_count(count) for count in by_class.values())
    train = len(contents.pictures) - test
    if test < 1 or train < 10:
        raise UserError(
            f"{train} pictures to train on and {test} to test with are too few: bring 10 or more to train on, of which one is "
            "held out to choose by, and one or more to test with"
        )
    return train, test


def paper_files(name: str, contents: FolderContents, md5: str, from_scratch: bool, has_imagenet: bool) -> dict[str, str]:
    """Return the files of the paper but for where its pictures lie: their names and texts.

    Args:
        name: Name of the paper and of its data set.
        contents: The folder of pictures.
        md5: MD5 of its pictures, packed.
        from_scratch: Whether a network without public weights is trained, too.
        has_imagenet: Whether pictures of ImageNet are among them.
    """
    dataset = dataset_entry(name, contents, md5, has_imagenet)
    features = {"title": f"{name} as MobileNetV2 sees it", "of": name, "weights": WEIGHTS, "size": SIZE, "shape": [FEATURES]}
    return {
        "datasets.yaml": HEADER.format("datasets") + as_yaml({name: dataset}),
        "features.yaml": HEADER.format("features") + as_yaml({f"{name}_seen": features}),
        "paper.yaml": HEADER.format("paper") + as_yaml(paper_content(name, dataset, from_scratch)),
    }


def dataset_entry(name: str, contents: FolderContents, md5: str, has_imagenet: bool) -> dict[str, Any]:
    """Return the entry of the data set."""
    train, test = split_counts(contents)
    entry: dict[str, Any] = {
        "title": f"{name}: pictures of {len(contents.classes)} classes",
        "label": name,
        "licence": "yours",
        "reader": "folder",
        "private": True,
        "files": {PACKED: md5},
    }
    if not contents.is_split:
        entry["test_by_class"] = True
    if has_imagenet:
        entry["pictures"] = ["imagenet"]
    return entry | {
        "classes": len(contents.classes),
        "shape": [3, SIZE, SIZE],
        "train": train,
        "test": test,
        "validation": train // 10,
        "mean": [0.5, 0.5, 0.5],
        "std": [0.25, 0.25, 0.25],
    }


def delta_for(count: int) -> float:
    """Return the largest power of ten that is at most 1e-5 and at most 1 / (100 N)."""
    power = len(str(100 * count - 1))
    return float(f"1e-{max(5, power)}")


def paper_content(name: str, dataset: dict[str, Any], from_scratch: bool) -> dict[str, Any]:
    """Return the paper: models, recipes, a search, cells and artifacts."""
    delta = delta_for(dataset["train"])
    cells: dict[str, Any] = {"dataset": f"{name}_seen", "models": ["head"], "recipe": "head", "split": {"validation": 0}}
    cells |= {"epsilons": [*EPSILONS, None], "delta": delta, "search": "tune"}
    space = {"recipe.steps": [30, 60, 120], "recipe.optimizer.learning_rate": [50.0, 150.0, 400.0]}
    search = {"space": space, "sampler": "grid", "trials": 9, "split": {"validation": dataset["validation"]}}
    paper: dict[str, Any] = {
        "title": dataset["title"],
        "seeds": [0, 1, 2],
        "models": {"head": {"family": "linear", "label": "head on MobileNetV2"}},
        "recipes": {"head": HEAD},
        "searches": {"tune": search},
        "cells": {"head": cells},
    }
    shown = ["head"]
    if from_scratch:
        paper["models"]["scratch"] = {"family": "wrn", "label": "WRN-16-4 from scratch", "depth": 16, "width": 4}
        paper["recipes"]["scratch"] = WHOLE | {"batch": max(1, dataset["train"] // 8)}
        whole = {"dataset": name, "models": ["scratch"], "recipe": "scratch", "epsilons": [*EPSILONS, None], "delta": delta}
        paper["cells"]["scratch"] = whole
        shown.append("scratch")
    paper["artifacts"] = artifacts(name, shown)
    return paper


def artifacts(name: str, groups: list[str]) -> dict[str, Any]:
    """Return a table of accuracies, one by class, and a figure; their captions end in the paper's title, the figure's not."""
    table: dict[str, Any] = {"kind": "accuracy", "title": "Accuracy over ε", "cells": groups}
    table |= {"metrics": [{"name": "top1"}], "spread": "standard_deviation"}
    classes = {"kind": "by_class", "title": "Accuracy by class", "cells": ["head"], "columns": ["epsilon"]}
    figure = {"kind": "pareto", "title": f"{name}: accuracy over ε", "cells": [*groups], "epsilons": EPSILONS, "works": {}}
    return {f"{name}_table": table, f"{name}_classes": classes, f"{name}_figure": figure}


def as_yaml(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
