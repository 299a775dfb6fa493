"""The documentation's additions work as they stand there, and nothing else has to be edited for them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from copied import copy_configuration, copy_parts

from dpvision.code import code_digest

ROOT = Path(__file__).parents[1]
PAPER = "config/papers/{name}/paper.yaml"
SAME = "config/papers/{name}/seconds.yaml"
CONTENT = """
title: A paper
seeds: [1]
models:
  {model}
recipes:
  short:
    optimizer: {{name: sgd, learning_rate: 0.5}}
    schedule: {{name: constant}}
    batch: 100
    steps: 2
    clip: 1.0
cells:
  cells: {{dataset: {dataset}, models: [{name}], recipe: short, epsilons: [8.0], delta: 1.0e-4}}
artifacts:
  accuracies: {{kind: accuracy, title: Accuracy, cells: [cells], statistic: median}}
"""
SCALE = """
title: seconds
resources: {train: {physical_batch: 64, runtime: 77, mem_mb: 1234}}
"""
STAGES = ("dpvision.training.run", "dpvision.models.resnet9.network")
PLAN = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from dpvision import plan
from dpvision.code import code_digest
from dpvision.looking.estimate import Estimator
from dpvision.plan.resources import asked

planned = plan.load({"papers": [sys.argv[1]], "scale": "seconds", "folders": json.loads(sys.argv[2])})
((name, run),) = planned.runs.items()
asks = asked(planned, "train", "run")
said = {
    "runtime": asks["runtime"](SimpleNamespace(run=name), attempt=1),
    "mem_mb": asks["mem_mb"](SimpleNamespace(run=name), attempt=1),
    "estimated": Estimator(planned, Path()).job(("train", name)).by,
    "code": code_digest(*json.loads(sys.argv[3])),
}
"""
PREPARE = """
from dpvision.data.download import fetch
from dpvision.data.prepare import prepare

data = run["data"]["name"]
fetch(data, planned.sources[data], Path(planned.folders[data]) if data in planned.folders else None, Path("raw"))
prepare(planned.work["data", run["data"]["prepared"]], Path("raw"), Path("prepared"))
"""
TRAIN = """
import torch
from dpvision.data.prepared import data_part, load
from dpvision.models.catalogue import MODELS
from dpvision.models.count import multiply_adds
from dpvision.plan import cost
from dpvision.training.fit import Training

torch.set_num_threads(1)
training = Training(run, load(Path("prepared"), data_part(run)), 64, torch.device("cpu"))
before = [p.detach().clone() for p in training.network.parameters()]
seen = training.step()
said |= {
    "listed": list(MODELS),
    "convolutions": sum(isinstance(layer, torch.nn.Conv2d) for layer in training.network.modules()),
    "sigma": training.sigma,
    "clipped": len(seen.norms),
    "moved": all((p != q).any().item() for p, q in zip(training.network.parameters(), before)),
    "counted": cost.counts_of(run).multiply_adds == multiply_adds(training.network, run["data"]["shape"]),
}
"""


def shown(of: str) -> dict[str, str]:
    """Return the page's blocks of code whose first line names a file, or a part of one, that begins so, by its name."""
    blocks = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", (ROOT / "docs/extending.md").read_text(encoding="utf-8"), re.M | re.S)
    return {file: text for file, text in blocks if file.startswith(of)}


class Copy:
    """The library and the configuration, in a folder of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        copy_parts(root, "workflow/scripts/dpvision")
        copy_configuration(root)
        self.write("config/scales/seconds.yaml", SCALE)

    def write(self, file: str, text: str) -> None:
        """Write a file, which must be a new one."""
        assert not (self.root / file).exists()
        (self.root / file).parent.mkdir(exist_ok=True)
        (self.root / file).write_text(text, encoding="utf-8")

    def python(self, *words: str) -> str:
        environment = os.environ | {"PYTHONPATH": str(self.root / "workflow/scripts")}
        done = subprocess.run([sys.executable, *words], cwd=self.root, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def said(self, *code: str, paper: str = "mine", folders: dict[str, str] | None = None) -> dict[str, Any]:
        """Run PLAN and this code and return what there is in `said`."""
        words = (paper, json.dumps(folders or {}), json.dumps(STAGES))
        said: dict[str, Any] = json.loads(self.python("-c", "".join([PLAN, *code, "print(json.dumps(said))"]), *words))
        return said


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "copy")


FAMILY = "workflow/scripts/dpvision/models/mine"


@pytest.fixture
def with_family(copy: Copy) -> Copy:
    files = shown(FAMILY)
    assert files.keys() == {f"{FAMILY}/{name}.py" for name in ("__init__", "options", "network")}
    for file, text in files.items():
        copy.write(file, text)
    copy.write(PAPER.format(name="mine"), CONTENT.format(model=shown("models")["models"], dataset="digits", name="mine"))
    copy.write(SAME.format(name="mine"), "# nothing differs\n")
    return copy


def assert_trained(said: dict[str, Any]) -> None:
    """Check one private step of the network with three convolutions, whose work is known."""
    assert said["convolutions"] == 3
    assert said["sigma"] > 0
    assert 50 < said["clipped"] < 150
    assert said["moved"]
    assert said["counted"]
    assert said["runtime"] < 77
    assert said["estimated"] == "guessed"


def test_a_models_folder_is_all_that_it_needs(with_family):
    said = with_family.said(PREPARE, TRAIN)
    assert_trained(said)
    assert {"mine", "resnet9"} < set(said["listed"])
    assert said["code"] == code_digest(*STAGES)  # results of other families do not look made by other code


@pytest.mark.slow
def test_a_model_without_layers_is_counted_or_gets_all_the_time_there_is(with_family):
    options = with_family.root / FAMILY / "options.py"
    light, layers = options.read_text(encoding="utf-8").split("\n\ndef layers")
    assert "def " not in layers
    options.write_text(light, encoding="utf-8")
    said = with_family.said()
    assert (said["runtime"], said["mem_mb"]) == (77, pytest.approx(1234, abs=2))
    assert said["estimated"].startswith("unknown")
    counts = with_family.root / FAMILY / "counts.json"
    assert str(counts) in with_family.python("-m", "dpvision", "models", "--count").split()
    assert_trained(with_family.said(PREPARE, TRAIN))


@pytest.mark.slow
def test_a_data_sets_file_and_its_entry_are_all_that_it_needs(copy):
    for file, text in shown("workflow/scripts/dpvision/data/datasets/").items():
        copy.write(file, text)
    with (copy.root / "config/datasets.yaml").open("a", encoding="utf-8") as entries:
        entries.write(shown("config/datasets.yaml")["config/datasets.yaml"])
    model = "resnet9: {family: resnet9, label: ResNet-9, width: 0.0625, groups: 4}"
    copy.write(PAPER.format(name="resnet9"), CONTENT.format(model=model, dataset="pets", name="resnet9"))
    copy.write(SAME.format(name="resnet9"), "# nothing differs\n")
    images = (np.arange(1000 * 3 * 16 * 16) % 251).astype(np.uint8).reshape(1000, 3, 16, 16)
    (copy.root / "own").mkdir()
    np.save(copy.root / "own/images.npy", images)
    np.save(copy.root / "own/labels.npy", np.arange(1000, dtype=np.int64) % 2)
    copy.said(PREPARE, paper="resnet9", folders={"pets": "own"})
    assert (np.load(copy.root / "prepared/train_images.npy") == images[:800]).all()
    description = json.loads((copy.root / "prepared/dataset.json").read_text())
    assert (description["class_names"], description["source"]) == (["cat", "dog"], "a folder of the user's")
    assert description["images_per_class"] == {"train": [400, 400], "test": [100, 100]}
