"""A small paper on public weights, made whole without Snakemake: its plan, its records, its artifacts, and what verifies them.

Weights are a file of the user's: a small network that was not trained at all. The data are the digits.
"""

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import yaml
from safetensors.torch import load_file, save_file

from dpvision import plan
from dpvision.analyses.run import analyse
from dpvision.data.download import fetch
from dpvision.data.prepare import prepare
from dpvision.data.weights import obtain
from dpvision.errors import UserError
from dpvision.files import file_digest, read_json, write_if_changed
from dpvision.looking.estimate import Estimator
from dpvision.models import build
from dpvision.plan import specs
from dpvision.plan.plan import folder_of
from dpvision.plan.resources import asked, cost_of
from dpvision.plan.stages import ANALYSES, STAGES
from dpvision.reporting.figures import write_figure
from dpvision.reporting.tables import write_table
from dpvision.search.study import conclude, work
from dpvision.training.features import compute
from dpvision.training.run import train
from dpvision.verify import digests
from dpvision.verify.place import Place
from dpvision.verify.verdict import verify

ROOT = Path(__file__).parents[1]
NETWORK = {"family": "resnet9", "label": "ResNet-9", "width": 0.0625, "groups": 4}
SGD = {"name": "sgd", "learning_rate": 5.0}
RECIPE = {"optimizer": SGD, "schedule": {"name": "constant"}, "batch": "all", "steps": 4, "evaluate_every": 2, "clip": 0.5}
PAPER: dict[str, Any] = {
    "title": "small",
    "seeds": [1, 2],
    "models": {"linear": {"family": "linear", "label": "head"}, "network": NETWORK},
    "recipes": {"full": RECIPE, "average": RECIPE | {"averaging": {"decay": 0.9}}},
    "searches": {
        "tune": {
            "space": {"recipe.steps": [2, 3], "recipe.optimizer.learning_rate": [1.0, 5.0]},
            "sampler": "grid",
            "trials": 4,
            "split": {"validation": 400},
        }
    },
    "cells": {
        "heads": {
            "dataset": "digits_seen",
            "models": ["linear"],
            "recipe": "full",
            "epsilons": [2.0, None],
            "delta": 1.0e-4,
            "split": {"validation": 0},
            "search": "tune",
        },
        "before": {"dataset": "digits_low", "models": ["network"], "recipe": "average", "epsilons": [None], "seeds": [7, 8]},
        "tuned": {
            "dataset": "digits_high",
            "models": ["network"],
            "recipe": "full",
            "epsilons": [8.0],
            "delta": 1.0e-4,
            "seeds": [1],
            "start": {"cells": "before", "seed": 8, "take": "averaged"},
            "train": "norms",
        },
        "from_file": {
            "dataset": "digits_high",
            "models": ["network"],
            "recipe": "full",
            "epsilons": [8.0],
            "delta": 1.0e-4,
            "seeds": [1],
            "start": {"weights": "ours"},
            "train": "head",
        },
    },
    "artifacts": {
        "small_table": {
            "kind": "accuracy",
            "title": "a",
            "cells": ["heads", "tuned", "from_file"],
            "metrics": [{"name": "top1"}],
        },
        "small_classes": {"kind": "by_class", "title": "d", "cells": ["heads"], "columns": ["epsilon"]},
        "small_search": {"kind": "best_trials", "title": "b", "cells": ["heads"]},
        "small_figure": {"kind": "pareto", "title": "c", "cells": ["heads"], "epsilons": [2.0], "works": {}},
    },
}


def network_of(channels: int = 1) -> torch.nn.Module:
    torch.manual_seed(3)
    options = {"slug": "resnet9", "scale_norm": False, "norm": "group", "order": "norm-activation", **NETWORK}
    return build(options, 5, channels).eval()


def tensors() -> dict[str, torch.Tensor]:
    return network_of().state_dict()


class Small:
    """A configuration with the paper, which can be changed, and its plan."""

    def __init__(self, root: Path) -> None:
        self.root, self.paper = root, yaml.safe_load(yaml.safe_dump(PAPER))
        shutil.copytree(ROOT / "config", root / "config")
        save_file(tensors(), root / "ours.safetensors")
        self.weigh()
        seen = {"title": "Seen", "of": "digits", "weights": "ours", "size": 16, "shape": [64], "precision": "float32"}
        self.write("features.yaml", {"digits_seen": seen})

    def write(self, file: str, content: Any) -> None:
        path = self.root / "config" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content))

    def weigh(self, **changes: Any) -> None:
        """Write the entry of the file of weights as it is now."""
        weights = {"title": "Ours", "licence": "none", "model": NETWORK, "classes": 5, "mean": [0.3], "std": [0.4], "seen": []}
        sha256 = file_digest(self.root / "ours.safetensors")
        self.write("weights.yaml", {"ours": weights | {"sha256": sha256} | changes})

    def add(self, file: str, content: Any) -> None:
        """Add entries to a file of the configuration, or change what they say."""
        there = yaml.safe_load((self.root / "config" / file).read_text())
        self.write(file, there | {name: there.get(name, {}) | entry for name, entry in content.items()})

    def only(self, **cells: Any) -> None:
        """Leave a paper of these cells; the table shows the last of them."""
        self.paper["cells"] = cells
        table = {"kind": "accuracy", "title": "a", "cells": [[*cells][-1]], "metrics": [{"name": "top1"}]}
        self.paper["artifacts"] = {"small_table": table}

    def plan(self) -> plan.Plan:
        self.write("papers/small/paper.yaml", self.paper)
        folders = {"ours": str(self.root / "ours.safetensors")}
        return plan.load({"papers": ["small"], "scale": "paper", "folders": folders}, self.root)

    def complaint(self) -> str:
        with pytest.raises(UserError) as raised:
            self.plan()
        return str(raised.value)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Small, plan.Plan]:
    """Return the paper with every record and artifact."""
    small = Small(tmp_path_factory.mktemp("small"))
    return small, make(small)


def make(small: Small) -> plan.Plan:
    """Make every record and artifact of a plan; return it."""
    made, root = small.plan(), small.root
    fetch("digits", made.sources["digits"], None, root / plan.DATA / "raw/digits")
    for key in made.kept():
        (stage, name), spec, folder = key, made.work[key], root / made.folder(key)
        start = (
            [root / made.folder(below) for below in specs.start_key(made.run_of(key))] if stage in ("train", "search") else []
        )
        if stage == "data":
            prepare(spec, root / plan.DATA / "raw/digits", folder)
        elif stage == "weights":
            obtain(spec, made.weights[spec["name"]], Path(made.folders[spec["name"]]), folder)
        elif stage == "features":
            images, weights = (root / made.folder(below) for below in made.needs(key))
            compute(spec, made.work["data", spec["of"]], images, weights, folder)
        elif stage == "search":
            work(spec, root / made.data_of(key), folder, folder / "workers/0.json", root / "results/choices", 512, 1e4, *start)
            conclude(spec, folder, folder / "best.json", folder / "trials.csv", folder / "provenance.json")
        elif stage in ANALYSES:
            (run,) = made.needs(key)
            analyse(STAGES[stage].job, spec, root / made.folder(run), root / made.data_of(key), folder, 512, 1000)
        else:
            studies = [root / made.product(below) for below in made.needs(key) if below[0] == "search"]
            folders = (folder, root / "results/checkpoints" / name, root / "results/choices")
            train(spec, root / made.data_of(key), studies, *folders, 512, 1e4, 0.0, *start)
    for name, spec in made.artifacts.items():
        write_if_changed(root / f"results/plan/{name}.json", spec)
        inputs = {what: [str(root / file) for file in files] for what, files in made.inputs_of(name).items()}
        write = {"tables": write_table, "figures": write_figure}[folder_of(spec)]
        write(spec, made.labels[name], inputs, root / made.targets(name)[0])
    return made


def record(whole: tuple[Small, plan.Plan], group: str, what: str) -> dict[str, Any]:
    small, made = whole
    cells = made.artifacts["small_table"]["cells"]
    (cell,) = [cell for cell in cells if cell["at"].get("start") == group]
    (run,) = cell["work"]["train"].values()
    return read_json(small.root / f"results/runs/{run}/{what}")


def test_what_work_needs_follows_from_its_spec(small):
    made = small.plan()
    (features,) = made.of("features")
    assert [stage for stage, _ in made.needs(("features", features))] == ["data", "weights"]
    for name, spec in made.of("search").items():
        assert made.needs(("search", name)) == [("features", features)]
        assert spec["run"]["recipe"]["batch"] == 1437 - 400
    averaged = [spec for spec in made.runs.values() if spec["recipe"]["averaging"]]
    tuned = next(name for name, spec in made.runs.items() if "run" in spec.get("start", {}))
    (_, before) = made.needs(("train", tuned))[1]
    assert made.runs[before]["seed"] == 8
    assert len(averaged) == 2
    heads = [spec for spec in made.runs.values() if spec["data"]["kind"] == "features"]
    assert {(spec["recipe"]["batch"], spec["data"]["validation"]) for spec in heads} == {(1437, 0)}


def test_images_are_normalised_as_those_of_the_weights(small):
    made = small.plan()
    from_file = next(spec for spec in made.runs.values() if "weights" in spec.get("start", {}))
    assert (from_file["data"]["mean"], from_file["data"]["std"]) == ([0.3], [0.4])


def test_images_are_normalised_as_their_own_data_set_says_where_a_start_asks_for_it(small):
    small.paper["cells"]["from_file"]["start"] = {"weights": "ours", "images": "own"}
    made = small.plan()
    from_file = next(spec for spec in made.runs.values() if "weights" in spec.get("start", {}))
    assert (from_file["data"]["mean"], from_file["data"]["std"]) == ([0.305], [0.376])


def test_what_trains_tells_cells_apart_where_a_start_is_named(small):
    small.paper["cells"]["tuned"]["train"] = "all"
    cells = small.plan().artifacts["small_table"]["cells"]
    assert [cell["at"].get("train") for cell in cells] == [None, None, "all", "head"]


def test_a_stage_asks_for_what_it_costs(small):
    made = small.plan()
    (name,) = made.of("features")
    found = cost_of(made, ("features", name))
    assert found.is_known
    assert found.work > 1797 * 1000
    assert asked(made, "features", "data")["physical_batch"] > 0
    job = Estimator(made, small.root).job(("features", name))
    assert (job.by, job.seconds > 0) == ("guessed", True)
    head, norms = (cost_of(made, ("train", run)) for run in _with_start(made))
    assert head.work < norms.work


def _with_start(made: plan.Plan) -> list[str]:
    runs = {spec["train"]: name for name, spec in made.runs.items() if "start" in spec}
    return [runs["head"], runs["norms"]]


def test_a_run_begins_with_the_average_of_another_and_says_what_moved(whole):
    small, made = whole
    about = record(whole, "before", "provenance.json")
    (run,) = [spec["start"]["run"] for spec in made.runs.values() if "run" in spec.get("start", {})]
    assert about["start_sha256"] == file_digest(small.root / f"results/runs/{run}/averaged.safetensors")
    trained = about["trained"]
    assert (trained["part"], trained["unmoved"]) == ("norms", [])
    name = next(name for name, spec in made.runs.items() if "run" in spec.get("start", {}))
    before = load_file(small.root / f"results/runs/{run}/averaged.safetensors")
    after = load_file(small.root / f"results/runs/{name}/weights.safetensors")
    assert {key for key in before if not torch.equal(before[key], after[key])} == set(trained["trained"])


def test_a_run_begins_with_a_file_but_for_its_head(whole):
    small, made = whole
    name = next(name for name, spec in made.runs.items() if "weights" in spec.get("start", {}))
    after, begun = load_file(small.root / f"results/runs/{name}/weights.safetensors"), tensors()
    changed = {key for key, value in after.items() if value.shape != begun[key].shape or not torch.equal(value, begun[key])}
    assert changed == set(record(whole, "ours", "provenance.json")["trained"]["trained"])
    assert any("taken as public" in text for text in record(whole, "ours", "ledger.json")["not_accounted"])


def test_settings_are_chosen_on_held_out_examples_and_trained_with_on_all(whole):
    small, made = whole
    for name, spec in made.of("search").items():
        best = read_json(small.root / f"results/studies/{name}/best.json")
        assert best["trials"] == 4
        assert (best["privacy"] == {"private": False}) == (spec["run"]["budget"] is None)
    heads = [name for name, spec in made.runs.items() if spec["data"]["kind"] == "features"]
    for name in heads:
        kept = read_json(small.root / f"results/runs/{name}/spec.json")
        assert specs.training_count(kept) == 1437
        assert kept["recipe"]["steps"] in (2, 3)


def test_its_artifacts_show_it(whole):
    small, _ = whole
    table = (small.root / "results/tables/small_table.md").read_text()
    assert "not private" in table
    assert (small.root / "results/figures/small_figure.png").exists()


def test_accuracies_by_class_are_those_of_all_test_examples_together(whole):
    small, made = whole
    counts = made.of("by_class")
    assert len(counts) == 4
    for name, spec in counts.items():
        with open(small.root / f"results/by_class/{name}/classes.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        right, all_of = (sum(int(row[key]) for row in rows) for key in ("right", "examples"))
        metrics = read_json(small.root / f"results/runs/{spec['run']}/metrics.json")
        assert (len(rows), all_of) == (10, 360)
        assert right / all_of == pytest.approx(metrics["last_step"]["test"]["top1"], abs=1e-6)
    assert "accuracies in per cent" in (small.root / "results/tables/small_classes.md").read_text().lower()


def test_it_verifies_and_what_is_changed_does_not(whole, tmp_path):
    small, made = whole
    copy = tmp_path / "results"
    shutil.copytree(small.root / "results", copy)
    assert not verify(copy).problems
    name = next(name for name, spec in made.runs.items() if spec.get("train") == "norms")
    file = copy / f"runs/{name}/provenance.json"
    file.write_text(file.read_text().replace(read_json(file)["start_sha256"], "0" * 64))
    found = [problem["what"] for problem in verify(copy).problems]
    assert any("start_sha256" in what for what in found), found


# --- features of a network that was trained here ---


@pytest.fixture
def seeing(small: Small) -> Small:
    """Return the paper with a head on what the network sees that half of the digits were shown to."""
    seen = {"title": "Seen", "of": "digits_high", "size": 8, "shape": [64], "precision": "float32", "scale": "none"}
    small.write("features.yaml", {"high_seen": seen})
    start = {"cells": "before", "seed": 8, "take": "averaged"}
    heads = {"dataset": "high_seen", "models": ["linear"], "recipe": "full", "epsilons": [8.0], "delta": 1.0e-4, "seeds": [1]}
    small.paper["cells"] = {"before": small.paper["cells"]["before"], "seeing": heads | {"train": "head", "start": start}}
    table = {"kind": "accuracy", "title": "a", "cells": ["seeing"], "metrics": [{"name": "top1"}], "rows": ["start"]}
    small.paper["artifacts"] = {"small_table": table}
    return small


def test_a_head_learns_privately_on_what_another_training_s_network_sees(seeing):
    made, root = make(seeing), seeing.root
    (key,) = ((("features", name), spec) for name, spec in made.of("features").items())
    before = next(name for name, run in made.runs.items() if run["seed"] == 8)
    assert made.needs(key[0])[-1] == ("train", before)
    assert key[1]["preprocessing"]["mean"] == made.runs[before]["data"]["mean"]
    images = np.load(root / made.folder(("data", key[1]["of"])) / "test_images.npy")[:3]
    network = build(made.runs[before]["model"], 5, 1).eval()
    network.load_state_dict(load_file(root / made.folder(("train", before)) / "averaged.safetensors"))
    heard: list[torch.Tensor] = []
    network.get_submodule("classifier").register_forward_pre_hook(lambda layer, inputs: heard.append(inputs[0]))
    with torch.no_grad():
        network((torch.from_numpy(images).float() / 255 - 0.305) / 0.376)
    features = np.load(root / made.folder(key[0]) / "test_images.npy")[:3]
    np.testing.assert_allclose(features, heard[0].numpy(), atol=2e-3, rtol=2e-3)
    assert not verify(root / "results").problems


def test_features_in_an_archive_were_made_by_the_weights_that_are_in_it(seeing, monkeypatch):
    made = make(seeing)
    monkeypatch.chdir(seeing.root)
    (name,) = made.of("features")
    place = Place(seeing.root, seeing.root / "results", made, about={})
    assert not [*digests.features(place, ("features", name))]
    proof = Path(made.proof(made.needs(("features", name))[-1]))
    proof.write_text(proof.read_text().replace(read_json(proof)["averaged_sha256"], "0" * 64))
    (found,) = digests.features(place, ("features", name))
    assert found.what.startswith("SHA-256 of the weights, by ")


def test_features_of_another_training_change_their_name_with_it(seeing):
    (before,) = seeing.plan().of("features")
    seeing.paper["recipes"]["average"]["steps"] = 5
    assert before not in seeing.plan().of("features")


def test_a_head_sees_no_features_of_a_network_that_its_own_data_trained(seeing):
    seeing.paper["cells"]["before"]["dataset"] = "digits_high"
    assert "was trained on digits_high too, so that an ε of what begins with it would not hold" in seeing.complaint()


def test_a_network_for_colours_sees_grey_in_each_of_its_channels(small):
    network, root = network_of(channels=3), small.root
    save_file(network.state_dict(), root / "ours.safetensors")
    small.weigh(mean=[0.3] * 3, std=[0.4] * 3)
    small.paper["cells"] = {"heads": small.paper["cells"]["heads"] | {"search": None}}
    small.paper["artifacts"] = {"small_figure": small.paper["artifacts"]["small_figure"]}
    made = make(small)
    ((name, spec),) = made.of("features").items()
    images = np.load(root / made.folder(("data", spec["of"])) / "test_images.npy")[:3]
    colours = torch.from_numpy(images.repeat(3, axis=1)).float() / 255
    heard: list[torch.Tensor] = []
    network.get_submodule("classifier").register_forward_pre_hook(lambda layer, inputs: heard.append(inputs[0]))
    with torch.no_grad():
        network((F.interpolate(colours, (16, 16), mode="bilinear") - 0.3) / 0.4)
    features = np.load(root / made.folder(("features", name)) / "test_images.npy")[:3]
    np.testing.assert_allclose(features, F.normalize(heard[0]).numpy(), atol=2e-3)


def test_a_network_for_grey_is_not_shown_colours(seeing):
    seeing.add("features.yaml", {"high_seen": {"of": "digits_high_files"}})
    assert "digits_high_files has images of 3 channels, the cell of before takes 1" in seeing.complaint()


def test_features_that_say_no_weights_ask_the_cells_for_a_start(seeing):
    del seeing.paper["cells"]["seeing"]["start"]
    assert "say whose weights see the images" in seeing.complaint()


# --- private pictures that weights have seen ---

VOID = "so that an ε of what begins with it would not hold"


def refused_for(complaint: str, network: str, seen: str, own: str) -> bool:
    """Tell whether a complaint says that a network was trained on a data set that shares pictures with another."""
    there = re.search(rf"{own} has pictures of {seen} .*datasets\.yaml.* on which {network} was trained, {VOID}", complaint)
    back = re.search(
        rf"{network} was trained on {seen}, which shares pictures with {own} .*datasets\.yaml.*, {VOID}", complaint
    )
    return bool(there or back)


def begun(small: Small, before: str, after: str) -> Small:
    """Return the paper with a private training on a data set that begins with one on another."""
    first = small.paper["cells"]["before"] | {"dataset": before}
    tuned = small.paper["cells"]["tuned"] | {"dataset": after, "delta": 1.0e-7}
    small.only(before=first, tuned=tuned)
    return small


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("digits", "digits_low"),
        ("digits", "digits_files"),
        ("digits_low", "digits_low_files"),
        ("digits_files", "digits_high"),
        ("imagenette", "imagenette224"),
        ("imagenette", "imagenet"),
        ("imagenette", "tinyimagenet"),
        ("imagenet", "tinyimagenet"),
        ("imagenet", "imagenet32"),
        ("imagenet", "imagenet320"),
        ("imagenet32", "imagenet320"),
    ],
)
def test_what_saw_the_private_pictures_under_another_name_is_refused_both_ways(small, one, other):
    for before, after in ((one, other), (other, one)):
        assert refused_for(begun(small, before, after).complaint(), "the cell of before", before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("digits_low", "digits_high"),
        ("digits_high_files", "digits_low"),
        ("mnist", "digits"),
        ("cifar100", "cifar10"),
        ("imagenet32", "cifar100"),
        ("places365", "imagenet"),
        ("imagenet", "places365"),
    ],
)
def test_what_saw_other_pictures_is_begun_with_also_if_they_are_of_the_same_file(small, before, after):
    begun(small, before, after).plan()


def test_pictures_that_were_seen_before_another_start_are_seen(small):
    begun(small, "imagenet", "imagenet320")
    between = small.paper["cells"]["before"] | {"dataset": "places365", "seeds": [7], "start": {"cells": "before"}}
    tuned = small.paper["cells"]["tuned"] | {"start": {"cells": "between"}}
    small.only(before=small.paper["cells"]["before"], between=between, tuned=tuned)
    assert refused_for(small.complaint(), "the cell of before", "imagenet", "imagenet320")
    small.paper["cells"]["before"]["dataset"] = "cifar10"
    small.plan()
    small.paper["cells"]["before"]["start"] = {"weights": "ours"}
    small.weigh(seen=["imagenet"])
    assert refused_for(small.complaint(), "the network of the weights ours", "imagenet", "imagenet320")


@pytest.mark.parametrize("dataset", ["imagenet", "imagenet320", "imagenet32", "imagenette", "imagenette224", "tinyimagenet"])
def test_weights_and_features_by_them_say_what_they_have_seen(small, dataset):
    cells = {key: small.paper["cells"][key] | {"dataset": dataset, "delta": 1.0e-7} for key in ("heads", "from_file")}
    heads = cells["heads"] | {"dataset": "digits_seen", "search": None}
    small.weigh(seen=["imagenet"], mean=[0.3] * 3, std=[0.4] * 3)
    small.add("features.yaml", {"digits_seen": {"of": dataset}})
    for group, where, cell in (("from_file", "start", cells["from_file"]), ("heads", "dataset", heads)):
        small.only(**{group: cell})
        found = small.complaint()
        network = "the network of the weights ours"
        if dataset == "imagenet":
            assert f"{network} was trained on imagenet too, {VOID}" in found
        else:
            assert (
                f"{dataset} has pictures of imagenet (by its entry in datasets.yaml), on which {network} was trained" in found
            )
        assert f"cells.{group}.{where}" in found
        cell["epsilons"] = [None]
        small.plan()
        cell["epsilons"] = [8.0]
    small.add("features.yaml", {"digits_seen": {"of": "cifar10"}})
    small.only(heads=heads, from_file=cells["from_file"] | {"dataset": "cifar10"})
    small.plan()


def test_the_weights_that_are_shipped_have_seen_imagenet():
    (entry,) = yaml.safe_load((ROOT / "config/weights.yaml").read_text()).values()
    assert entry["seen"] == ["imagenet"]


def test_a_folder_of_pictures_at_another_size_is_the_same_unless_both_say_what_they_have_of_it(small):
    folder = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())["cifar10"] | {"reader": "folder"}
    packed = {"files": {"pictures.zip": "0" * 32}}
    small.add("datasets.yaml", {"pets": folder | packed, "pets_large": folder | packed | {"shape": [3, 96, 96]}})
    assert refused_for(begun(small, "pets", "pets_large").complaint(), "the cell of before", "pets", "pets_large")
    small.add("datasets.yaml", {"pets": {"pictures": ["pets"]}})
    assert VOID in small.complaint()
    small.add("datasets.yaml", {"pets_large": {"pictures": []}})
    small.plan()


def test_a_folder_of_ones_own_can_say_that_it_has_pictures_of_a_data_set(small):
    entry = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())["cifar10"] | {"reader": "folder"}
    small.add("datasets.yaml", {"pets": entry | {"files": {"pictures.zip": "1" * 32}}})
    begun(small, "cifar10", "pets").plan()
    small.add("datasets.yaml", {"pets": {"pictures": ["cifar10"]}})
    assert refused_for(small.complaint(), "the cell of before", "cifar10", "pets")


def test_other_folders_of_pictures_are_other_pictures_whatever_they_are_called(small):
    entry = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())["cifar10"] | {"reader": "folder"}
    of_files = {name: entry | {"files": {"pictures.zip": digit * 32}} for name, digit in (("folder", "0"), ("pets", "1"))}
    small.add("datasets.yaml", of_files)
    begun(small, "folder", "pets").plan()


def test_which_pictures_there_are_and_were_seen_changes_no_name(small):
    before = [*small.plan().work]
    small.weigh(seen=["places365"])
    small.add("datasets.yaml", {"digits": {"pictures": ["digits_low", "digits_high", "mnist"]}})
    assert [*small.plan().work] == before


def test_a_data_set_that_is_not_there_has_no_pictures(small):
    small.weigh(seen=["imagenett"])
    found = small.complaint()
    assert 'ours.seen[0] = "imagenett": there is no data set "imagenett"' in found
    assert 'Did you mean "imagenette"?' in found
    small.weigh()
    small.add("datasets.yaml", {"imagenette": {"pictures": ["imagenett"]}})
    assert 'imagenette.pictures[0] = "imagenett": there is no data set "imagenett"' in small.complaint()


def test_weights_do_not_leave_out_what_they_have_seen(small):
    entry = yaml.safe_load((small.root / "config/weights.yaml").read_text())["ours"]
    small.write("weights.yaml", {"ours": {key: value for key, value in entry.items() if key != "seen"}})
    assert "ours.seen: this key is missing" in small.complaint()


# --- mistakes ---


def test_a_start_that_means_two_cells_none_or_itself_is_refused(small):
    small.paper["cells"]["before"]["epsilons"] = [None, 8.0]
    small.paper["cells"]["before"]["delta"] = 1.0e-4
    assert "`where` selects 2 cells of before; it must select exactly one" in small.complaint()
    small.paper["cells"]["tuned"]["start"]["where"] = {"epsilon": 3.0}
    assert "`where` selects no cells of before" in small.complaint()
    small.paper["cells"]["tuned"]["start"] |= {"where": {"epsilon": 8.0}}
    small.plan()
    small.paper["cells"]["before"]["start"] = {"cells": "tuned"}
    assert "would start from itself" in small.complaint()
    small.paper["cells"]["from_file"] |= {"start": {"cells": "tuned"}, "train": "norms"}  # whose own start is sound
    assert "would start from itself" in small.complaint()


def test_a_network_with_auxiliary_classifiers_begins_with_no_weights(small):
    googlenet = {"family": "torchvision", "label": "GoogLeNet", "network": "googlenet"}
    small.paper["models"] = dict.fromkeys(small.paper["models"], googlenet)
    small.paper["cells"].pop("from_file", None)
    for artifact in small.paper["artifacts"].values():
        artifact["cells"] = [group for group in artifact["cells"] if group != "from_file"]
    assert "has auxiliary classifiers, which would begin with what they learnt before" in small.complaint()


def test_a_private_run_does_not_begin_with_weights_of_its_own_data(small):
    small.paper["cells"]["before"]["dataset"] = "digits_high"
    assert "was trained on digits_high too, so that an ε of what begins with it would not hold" in small.complaint()


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ({"cells": "before", "seed": 9}, "is none of its seeds: 7, 8"),
        ({"cells": "befor"}, "befor"),
        ({"weights": "our"}, "our"),
        ({}, "needs either weights or cells"),
        ({"weights": "ours", "cells": "before"}, "and has both"),
    ],
)
def test_a_start_that_is_wrong_says_so(small, start, says):
    small.paper["cells"]["tuned"]["start"] = start
    found = small.complaint()
    assert says in found
    assert "tuned" in found


def test_an_average_that_nobody_keeps_and_another_network_are_refused(small):
    small.paper["cells"]["before"]["recipe"] = "full"
    assert "the recipe full keeps no average" in small.complaint()
    small.paper["models"]["wide"] = NETWORK | {"width": 0.125}
    small.paper["cells"]["from_file"]["models"] = ["wide"]
    assert "the weights ours is of another network than wide" in small.complaint()


def test_networks_of_images_take_no_features_nor_does_augmentation(small):
    small.paper["cells"]["heads"]["models"] = ["network"]
    assert "takes images, and digits_seen has features" in small.complaint()
    small.paper["cells"]["heads"]["models"] = ["linear"]
    small.paper["recipes"]["full"]["augmentation"] = {"pad": 1, "flip": 0.0, "views": 2}
    assert "features were computed once" in small.complaint()


def test_batch_normalisation_may_train_its_norms_privately_and_not_all_of_it(small):
    small.paper["models"]["moving"] = NETWORK | {"norm": "batch"}
    small.paper["cells"]["tuned"] |= {"models": ["moving"], "start": None}
    small.plan()
    small.paper["cells"]["tuned"]["train"] = "all"
    assert "every example's output depends on the others" in small.complaint()
