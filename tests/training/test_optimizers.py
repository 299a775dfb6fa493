"""An optimiser is one file, a schedule is one file: the plan and the training find them by name."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from dpvision import plan
from dpvision.config.base import members
from dpvision.training import optimizers, schedules

OPTIMIZER = """
from typing import Literal

from dpvision.config.base import Strict


class Options(Strict):
    name: Literal["rprop"]
    \"\"\"The optimiser.\"\"\"
    learning_rate: float
    \"\"\"At the beginning.\"\"\"


COPIES = 2


def build(options, network):
    from torch import optim

    return optim.Rprop(network.parameters(), lr=options["learning_rate"])
"""
SCHEDULE = """
from typing import Literal

from dpvision.config.base import Strict


class Options(Strict):
    name: Literal["shrinking"]
    \"\"\"The schedule.\"\"\"
    by: float
    \"\"\"Factor a step.\"\"\"


def build(options, optimizer):
    from torch import optim

    return optim.lr_scheduler.ExponentialLR(optimizer, options["by"])


def advance(scheduler, epoch):
    if epoch is None:
        scheduler.step()
"""
PLAN_AND_TRAIN = """
import json, sys
from pathlib import Path
from dpvision import plan

planned = plan.load({"papers": ["scalenorm"], "scale": "demo"}, Path.cwd())
spec = next(iter(planned.runs.values()))
recipe = {key: spec["recipe"][key] for key in ("optimizer", "schedule")}

import torch
from dpvision.data.prepared import data_part, load
from dpvision.training.fit import Training

spec = json.loads(sys.argv[2]) | {"recipe": json.loads(sys.argv[2])["recipe"] | recipe}
training = Training(spec, load(Path(sys.argv[1]), data_part(spec)), 64, torch.device("cpu"))
training.run()
learning_rate = training.optimizer.param_groups[0]["lr"]
print(json.dumps([recipe, type(training.optimizer).__name__, type(training.schedule).__name__, training.made, learning_rate]))
"""


@pytest.fixture
def project(tmp_path) -> Path:
    """A copy of the library and the configuration, with a new optimiser, a new schedule, and a recipe that names them."""
    for part in ("workflow/scripts/dpvision", "config"):
        shutil.copytree(plan.ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    training = tmp_path / "workflow/scripts/dpvision/training"
    (training / "optimizers/rprop.py").write_text(OPTIMIZER)
    (training / "schedules/shrinking.py").write_text(SCHEDULE)
    paper = tmp_path / "config/papers/scalenorm/paper.yaml"
    lines = paper.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        for key, value in (
            ("optimizer: ", "{name: rprop, learning_rate: 0.001}"),
            ("schedule: ", "{name: shrinking, by: 0.5}"),
        ):
            if line.strip().startswith(key):
                lines[number] = line.split(key)[0] + key + value
    paper.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_a_new_one_is_planned_and_trained_with_by_adding_its_file(project, digits, run_spec):
    done = subprocess.run(
        [sys.executable, "-c", PLAN_AND_TRAIN, str(digits), json.dumps(run_spec({"recipe.epochs": 1}))],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "workflow/scripts")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    recipe, optimizer, schedule, made, learning_rate = json.loads(done.stdout.splitlines()[-1])
    assert recipe["optimizer"] == {"name": "rprop", "learning_rate": 0.004}  # as the scale has it
    assert recipe["schedule"] == {"name": "shrinking", "by": 0.5}
    assert (optimizer, schedule, made) == ("Rprop", "ExponentialLR", 10)
    assert learning_rate == 0.004 * 0.5**10


@pytest.mark.parametrize("package", [optimizers, schedules], ids=["optimizers", "schedules"])
def test_a_file_is_named_as_the_recipe_names_it(package):
    for name, module in members(package).items():
        first, field = next(iter(module.Options.model_fields.items()))
        assert (first, field.annotation.__args__) == ("name", (name,))


@pytest.mark.parametrize("options", [{"name": "nadam"}, {"name": "sgd", "momentum": 0.9}], ids=lambda options: options["name"])
def test_an_optimiser_says_how_many_numbers_it_keeps_for_each_parameter(options):
    network, found = nn.Linear(30, 20), optimizers.module(options["name"])
    optimizer = found.build(options | {"learning_rate": 0.1}, network)
    network(torch.ones(30)).sum().backward()
    optimizer.step()
    kept = [value for value in optimizer.state[network.weight].values() if value.numel() > 1]
    assert len(kept) == found.COPIES
