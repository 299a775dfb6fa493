"""An optimiser, a schedule, an initialisation is one file: the plan and the training find it by name."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from copied import copy_configuration, copy_parts
from torch import nn

from dpvision.config.base import members
from dpvision.config.recipes import Recipe
from dpvision.training import initializations, optimizers, schedules
from dpvision.training.schedules import cosine, milestones

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
    """Return a copy of the library and the configuration, with a new optimiser and schedule, and a recipe of them."""
    copy_parts(tmp_path, "workflow/scripts/dpvision")
    copy_configuration(tmp_path)
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


def test_a_new_optimiser_or_schedule_needs_no_more_than_its_file(project, digits, run_spec):
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


@pytest.mark.parametrize("package", [optimizers, schedules, initializations], ids=lambda package: package.__name__)
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


def weights(training) -> torch.Tensor:
    return torch.cat([value.double().flatten() for value in training.network.state_dict().values()])


def recipe(**changes) -> Recipe:
    """Return a recipe as a paper says it."""
    said = {"optimizer": {"name": "sgd", "learning_rate": 0.002}, "schedule": {"name": "constant"}, "batch": 256}
    return Recipe.model_validate(said | {"epochs": 120, "clip": 1.0} | changes)


# --- weight decay ---


def test_weight_decay_is_added_to_the_private_gradient(training):
    """Steps with momentum agree with those by hand; samples, noise, clipping and the ledger know nothing of it."""
    decayed = training({"recipe.optimizer": {"name": "sgd", "learning_rate": 0.5, "momentum": 0.9, "weight_decay": 0.1}})
    gradients, step = [], decayed.optimizer.step
    decayed.optimizer.step = lambda: gradients.append([p.grad.clone() for p in decayed.network.parameters()]) or step()
    by_hand = [p.detach().clone() for p in decayed.network.parameters()]
    last = [torch.zeros_like(p) for p in by_hand]
    for _ in range(3):
        decayed.step()
        last = [0.9 * v + g + 0.1 * p for v, g, p in zip(last, gradients[-1], by_hand, strict=True)]
        by_hand = [p - 0.5 * v for p, v in zip(by_hand, last, strict=True)]
    for ours, theirs in zip(by_hand, decayed.network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-7)


def test_weight_decay_changes_neither_clipping_nor_noise_nor_what_is_spent(training):
    plain, decayed = (
        training({"recipe.optimizer": {"name": "sgd", "learning_rate": 0.5, "momentum": 0.0} | more})
        for more in ({}, {"weight_decay": 0.1})
    )
    assert (plain.whole, plain.step.sigma, plain.step.clip) == (decayed.whole, decayed.step.sigma, decayed.step.clip)
    gradients = []
    for run in (plain, decayed):
        run.sampling.manual_seed(1)  # streams are named by the spec
        run.noise.manual_seed(2)
        run.step.gradients.choices = plain.step.gradients.choices  # to the same bits
        run.optimizer.step = lambda run=run: gradients.append([p.grad.clone() for p in run.network.parameters()])
        run.step()
    assert all(map(torch.equal, *gradients))


def test_a_recipe_without_weight_decay_does_not_say_it():
    assert "weight_decay" not in recipe().as_spec()["optimizer"]
    said = {"name": "sgd", "learning_rate": 0.002, "weight_decay": 0.1}
    assert recipe(optimizer=said).as_spec()["optimizer"] == said | {"momentum": 0.0}


# --- steps of the rate ---

EPOCHS = {"name": "step", "factor": 0.9, "every": 5, "unit": "epochs"}
STEPS = {"name": "step", "factor": 0.5, "every": 3, "unit": "steps"}


def test_the_rate_is_multiplied_every_so_many_epochs(training):
    """SmoothNets multiply a rate of 0.002 by 0.9 every 5 epochs; an epoch here is one step."""
    optimizer = {"name": "sgd", "learning_rate": 0.002, "momentum": 0.0}
    run = training({"recipe.optimizer": optimizer, "recipe.schedule": EPOCHS, "recipe.batch": 1000, "recipe.epochs": 12})
    run.run()
    by_hand = [0.002] * 5 + [0.002 * 0.9] * 5 + [0.002 * 0.9 * 0.9] * 2
    assert [row["learning_rate"] for row in run.history] == pytest.approx(by_hand, rel=1e-15)
    torchs = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.002), 5, gamma=0.9)
    for row in run.history:
        assert row["learning_rate"] == torchs.get_last_lr()[0]
        torchs.optimizer.step()
        torchs.step()


def test_the_rate_is_multiplied_every_so_many_steps(training):
    run, rates = training({"recipe.schedule": STEPS, "recipe.epochs": 1}), []
    run.run(lambda run: rates.append(run.optimizer.param_groups[0]["lr"]))
    assert rates == [5e-3 * 0.5 ** (made // 3) for made in range(1, 11)]


@pytest.mark.parametrize("schedule", [EPOCHS | {"every": 2}, STEPS], ids=["epochs", "steps"])
def test_steps_of_the_rate_go_on_from_a_checkpoint(schedule, training, advance, tmp_path):
    whole = training({"recipe.schedule": schedule})
    whole.run()
    first, second = (training({"recipe.schedule": schedule}) for _ in range(2))
    advance(first, 25)
    torch.save(first.state(), tmp_path / "state.pt")
    second.restore(torch.load(tmp_path / "state.pt"))
    second.run()
    assert [row["learning_rate"] for row in second.history] == [row["learning_rate"] for row in whole.history]
    assert len({row["learning_rate"] for row in whole.history}) > 1
    assert torch.equal(weights(second), weights(whole))


def test_a_recipe_s_steps_are_of_epochs_unless_it_says_otherwise():
    said = {key: value for key, value in EPOCHS.items() if key != "unit"}
    assert recipe(schedule=said).as_spec()["schedule"] == EPOCHS


# --- the first weights ---

XAVIER = {"name": "xavier_uniform", "gain": 0.75}


@pytest.mark.parametrize("layer", [nn.Conv2d(64, 32, 5), nn.Linear(300, 500), nn.Conv2d(32, 32, 3, groups=4)], ids=str)
def test_xavier_s_weights_are_uniform_within_its_bound_and_biases_zero(layer):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        initializations.module("xavier_uniform").apply(XAVIER, nn.Sequential(layer))
    field = layer.weight[0, 0].numel()
    bound = 0.75 * math.sqrt(6 / ((layer.weight.shape[0] + layer.weight.shape[1]) * field))
    assert 0.99 * bound < layer.weight.abs().max() <= bound
    assert layer.weight.double().var().item() == pytest.approx(bound**2 / 3, rel=0.03)
    assert abs(layer.weight.double().mean()) < 0.03 * bound
    assert not layer.bias.any()


def test_the_first_weights_are_the_seed_s_and_norms_keep_theirs(training):
    ours, again, other, plain = (
        training(changes)
        for changes in (
            {"recipe.initialization": XAVIER},
            {"recipe.initialization": XAVIER, "budget": None},
            {"recipe.initialization": XAVIER, "seed": 35},
            {},
        )
    )
    assert torch.equal(weights(ours), weights(again))
    assert not torch.equal(weights(ours), weights(other))
    ours, plain = ours.network.state_dict(), plain.network.state_dict()
    drawn = {name for name in ours if not torch.equal(ours[name], plain[name])}
    assert drawn >= {name for name, tensor in ours.items() if tensor.dim() > 1}
    for name in drawn:
        assert ours[name].dim() > 1 or not ours[name].any()


def test_drawing_the_first_weights_leaves_the_other_random_numbers_alone(training):
    torch.manual_seed(1)
    training({"recipe.initialization": XAVIER})
    after = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), after)


def test_a_recipe_without_an_initialisation_does_not_say_it():
    assert "initialization" not in recipe().as_spec()
    assert recipe(initialization=XAVIER).as_spec()["initialization"] == XAVIER
    assert recipe(initialization={"name": "xavier_uniform"}).as_spec()["initialization"] == XAVIER | {"gain": 1.0}


# --- the sum divided by C ---


def test_dividing_by_c_changes_nothing_of_what_is_spent(training):
    plain, divided = training(), training({"recipe.divide_by_clip": True})
    assert (plain.whole, plain.step.sigma) == (divided.whole, divided.step.sigma)
    assert divided.step.divide_by_clip
    assert not plain.step.divide_by_clip
    assert recipe(divide_by_clip=True).as_spec()["divide_by_clip"] is True
    assert "divide_by_clip" not in recipe().as_spec()


def test_milestones_multiply_the_rate_after_their_steps_and_not_at_an_epoch():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    options = {"name": "milestones", "factor": 0.1, "at": [2, 3]}
    scheduler = milestones.build(options, optimizer)
    rates = []
    for step in range(4):
        optimizer.step()
        milestones.advance(scheduler, None)
        if step == 0:
            milestones.advance(scheduler, {"epoch": 1})
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([1.0, 0.1, 0.01, 0.01])


def test_a_cosine_rises_in_equal_steps_and_falls_to_zero():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=2.0)
    scheduler = cosine.build({"name": "cosine", "warm_up": 2, "end": 6}, optimizer)
    rates = []
    for step in range(7):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        cosine.advance(scheduler, None)
        if step == 0:
            cosine.advance(scheduler, {"epoch": 1})
    half = 2**0.5 / 2
    assert rates == pytest.approx([0.0, 1.0, 2.0, 1 + half, 1.0, 1 - half, 0.0])
