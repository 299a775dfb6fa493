"""A small paper of one's own for a folder of pictures: what a private head on public weights reaches, and who pays for it."""

import json
import logging
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from dpvision import plan
from dpvision.data.datasets import folder as pictures
from dpvision.errors import UserError
from dpvision.files import file_digest, replacing, write_text
from dpvision.looking.estimate import Estimator, wall_seconds
from dpvision.looking.text import counted
from dpvision.plan.load import RULES
from dpvision.plan.reading import read_yaml

log = logging.getLogger(__name__)

SIZE = 96
WEIGHTS, FEATURES = "mobilenet_v2", 1280
EPSILONS = [1.0, 2.0, 4.0, 8.0]
CLASSES_SHOWN = 20
BEGINS = 5.0  # seconds until a job has imported PyTorch
HEADER = "# yaml-language-server: $schema=../../schema/{}.json\n"
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


def try_folder(folder: Path, name: str | None, from_scratch: bool, root: Path) -> list[str]:
    """Write the paper of a folder of pictures into the configuration; return what there is to say, the command last."""
    if not folder.is_dir():
        raise UserError(
            f"{folder}: {'this is a file; name a folder of pictures' if folder.exists() else 'there is no such folder'}"
        )
    name = name or _name_of(folder)
    _refuse_taken(name, root)
    packed = root / plan.DATA / "raw" / name / pictures.PACKED
    with replacing(packed) as beside, open(beside, "wb") as file:
        found = pictures.pack_folder(folder, file)
    dataset = _dataset(folder, name, found, file_digest(packed, "md5"))
    _append(root / "config/datasets.yaml", {name: dataset})
    features = {"title": f"{dataset['title']} as MobileNetV2 sees them", "of": name, "weights": WEIGHTS, "size": SIZE}
    _append(root / "config/features.yaml", {f"{name}_seen": features | {"shape": [FEATURES]}})
    place = root / "config/papers" / name
    write_text(place / "paper.yaml", HEADER.format("paper") + _yaml(_paper(name, dataset, from_scratch)))
    write_text(place / "laptop.yaml", HEADER.format("overlay") + "# The whole of it: nothing differs from paper.yaml.\n{}\n")
    shape = pictures.Folder(packed, dataset["shape"], dataset["test"])
    folders = f"folders={{{name}: {json.dumps(str(folder.resolve()))}}}"
    command = ["snakemake", name, "--cores", "all", "--config", "scale=laptop", f'papers=["{name}"]', folders]
    return [*_said(shape, found), *_cost(name, root), "", "To run it:", f"  {shlex.join(command)}"]


def _name_of(folder: Path) -> str:
    """Return a name for the configuration, made of the folder's."""
    plain = re.sub(r"[^a-z0-9]+", "_", folder.resolve().name.lower()).strip("_")
    return plain if plain[:1].isalpha() else f"pictures_{plain}".rstrip("_")


def _refuse_taken(name: str, root: Path) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(f"{name}: a name has small letters, digits and underscores, and begins with a letter")
    if name in RULES:
        raise UserError(f"{name}: this is the name of a rule of the workflow; say another name with --name")
    files = ("datasets", "weights", "features")
    taken = [f"config/{file}.yaml" for file in files if name in (read_yaml(root, f"config/{file}.yaml").content or {})]
    if (root / "config/papers" / name).exists():
        taken.append(f"config/papers/{name}")
    if taken:
        raise UserError(f"{name}: {' and '.join(taken)} has it already; say another name with --name, or delete it there")


def _dataset(folder: Path, name: str, found: pictures.Found, md5: str) -> dict[str, Any]:
    """Return the entry of config/datasets.yaml: a fifth are test examples where the folder has no split of its own."""
    count = len(found.pictures)
    test = sum(path.startswith("test/") for path in found.pictures) if found.is_split else count // 5
    train = count - test
    validation = train // 10
    if min(test, validation) < 1:
        raise UserError(
            f"{folder}: {count} pictures are too few: there must be one to test and one to choose by; bring 13 or more"
        )
    return {
        "title": f"Pictures of {len(found.classes)} classes ({name})",
        "licence": "yours",
        "reader": "folder",
        "files": {pictures.PACKED: md5},
        "classes": len(found.classes),
        "shape": [3, SIZE, SIZE],
        "train": train,
        "test": test,
        "validation": validation,
        "mean": [0.5, 0.5, 0.5],
        "std": [0.25, 0.25, 0.25],
    }


def delta_for(count: int) -> float:
    """Return the largest power of ten below 1 / N."""
    power = len(str(count))
    return float(f"1e-{power}")


def _paper(name: str, dataset: dict[str, Any], from_scratch: bool) -> dict[str, Any]:
    train = dataset["train"]
    delta = delta_for(train)
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
        paper["recipes"]["scratch"] = WHOLE | {"batch": max(1, train // 8)}
        whole = {"dataset": name, "models": ["scratch"], "recipe": "scratch", "epsilons": [*EPSILONS, None], "delta": delta}
        paper["cells"]["scratch"] = whole
        shown.append("scratch")
    paper["artifacts"] = {
        f"{name}_table": {
            "kind": "accuracy",
            "title": f"{dataset['title']}: accuracy by privacy",
            "cells": shown,
            "metrics": [{"name": "top1"}],
            "spread": "standard_deviation",
        },
        f"{name}_classes": {
            "kind": "by_class",
            "title": f"{dataset['title']}: accuracy by class",
            "cells": ["head"],
            "columns": ["epsilon"],
        },
        f"{name}_figure": {
            "kind": "pareto",
            "title": f"{dataset['title']}: accuracy by privacy",
            "cells": [*shown],
            "epsilons": EPSILONS,
            "works": {},
        },
    }
    return paper


def _said(data: pictures.Folder, found: pictures.Found) -> list[str]:
    """Say what lies in the folder: how many of each class, what is the same picture twice, what was passed over."""
    names, train, test = data.class_names, data.train_labels.tolist(), data.test_labels.tolist()
    lines = [f"{len(train)} pictures to train on, {len(test)} to test with, {len(names)} classes:"]
    lines += [f"  {name}: {train.count(place)} and {test.count(place)}" for place, name in enumerate(names[:CLASSES_SHOWN])]
    lines += [f"  and {len(names) - CLASSES_SHOWN} more classes"] * (len(names) > CLASSES_SHOWN)
    texts = {"train": "the same picture twice to train on", "test": "the same picture twice to test with"}
    texts["across"] = "the same picture to train on and to test with, which makes accuracies too high"
    for where, groups in data.duplicates.items():
        lines.append(f"{texts[where]}: {len(groups)}, among them {' = '.join(groups[0])}")
    for text, paths in {"no pictures, passed over": found.strange, "without a picture, left out": found.empty}.items():
        if paths:
            lines.append(f"{text}: {pictures.in_words(paths)}")
    return lines


def _cost(name: str, root: Path) -> list[str]:
    """Say what the paper would take on this machine, as the plan counts it; a job begins with importing PyTorch."""
    made = plan.load({"papers": [name], "scale": "laptop", "folders": {name: "."}}, root)
    estimator, cores = Estimator(made, root), os.cpu_count() or 1
    jobs = {key: job for key in made.kept() if (job := estimator.job(key)).seconds}
    jobs = {key: replace(job, seconds=job.seconds + BEGINS, longest=job.longest + BEGINS) for key, job in jobs.items()}
    minutes = wall_seconds(made, jobs, cores) / 60
    words = f"about {minutes:.0f} minutes" if minutes >= 1 else "less than a minute"
    counts = f"{len(made.of('search'))} searches and {len(made.runs)} trainings"
    return ["", f"It takes {counts}: {words} on {counted('core', 'cores', cores)}, {'; '.join(estimator.words())}."]


def _append(file: Path, entry: dict[str, Any]) -> None:
    write_text(file, f"{file.read_text(encoding='utf-8').rstrip()}\n\n{_yaml(entry)}")


def _yaml(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
