"""A point of a sweep: a grid search finds the best that is known, and a kill in its middle changes nothing of what it says."""

import json
import math
import signal
from collections.abc import Callable
from typing import Any

import jobs
import pytest
from places import Place

from dpvision.plan import specs
from dpvision.search import study as study_module
from dpvision.search.study import FINISHED

RATE, EPOCHS = "recipe.optimizer.learning_rate", "recipe.epochs"
OBJECTIVE = "averaged_validation_top1"
RATES = [1e-7, 1e-2, 10.0]  # the first learns next to nothing, the last forgets


@pytest.fixture
def point(place):
    """Make the place of a point that is tuned as De et al.'s are: on a grid, by the averaged weights."""

    def make(name: str, **space: list) -> Place:
        trials = math.prod(map(len, space.values()))
        here = place(name, epochs=4, space=space, trials=trials, sampler="grid", objective=OBJECTIVE)
        here.spec["run"]["model"]["groups"] = 4
        here.spec["run"]["recipe"]["averaging"] = {"decay": 0.9}
        return here

    return make


class Hill:
    """A stand-in for a training: the average is best at a rate of 2 with 3 epochs, and higher rates ask for fewer epochs."""

    def __init__(self, run: specs.Spec, *_: Any, **__: Any) -> None:
        rate, epochs = run["recipe"]["optimizer"]["learning_rate"], run["recipe"]["epochs"]
        self.averaged = 0.9 - 0.05 * math.log2(rate / 2) ** 2 - 0.02 * (epochs - 3 + math.log2(rate / 2)) ** 2
        self.history: list[dict[str, Any]] = []
        self.planned = self.made = 1

    def run(self, after_step: Callable, after_epoch: Callable) -> None:
        of_last_step = {"validation_top1": 1 - self.averaged, "validation_loss": 1.0}  # the other way round: it must not decide
        self.history.append({"epoch": 1, **of_last_step, OBJECTIVE: self.averaged})
        after_epoch(self)
        after_step(self)


@pytest.mark.parametrize(
    ("rates", "epochs", "best", "edges"),
    [
        ([1.0, 2.0, 4.0], [2, 3, 4], (2.0, 3), []),
        ([0.5, 1.0], [3, 4, 5], (1.0, 4), [f"{RATE} = 1 is at the upper end of what was searched, 0.5 to 1"]),
    ],
)
def test_a_grid_finds_the_best_that_is_known_and_says_where_it_lies_at_an_end(point, monkeypatch, rates, epochs, best, edges):
    monkeypatch.setattr(study_module, "Training", Hill)
    here = point("point", **{RATE: rates, EPOCHS: epochs}).work()
    found = here.conclude()
    assert (found["values"][RATE], found["values"][EPOCHS]) == best
    assert found.get("edges", []) == edges
    assert found[OBJECTIVE] == max(float(row[OBJECTIVE]) for row in here.rows())
    assert len({(row[RATE], row[EPOCHS]) for row in here.rows()}) == len(here.rows()) == len(rates) * len(epochs)


def test_a_grid_of_real_trainings_finds_the_rate_that_learns(point):
    here = point("point", **{RATE: RATES}).work()
    found = here.conclude()
    assert found["values"] == {RATE: 1e-2} and "edges" not in found
    low, best, high = (float(row[OBJECTIVE]) for row in here.rows())
    assert best == found[OBJECTIVE] > max(low, high) + 0.1


@pytest.mark.slow
def test_a_point_killed_in_the_middle_of_its_study_has_the_same_best(point):
    whole, cut = (point(name, **{RATE: RATES, EPOCHS: [1, 2]}) for name in ("whole", "cut"))
    assert whole.start(0).end() == 0
    assert cut.start(0, jobs.work_until, "_make_step", 6).end() == -signal.SIGKILL  # a trial of one epoch has four steps
    assert 0 < len(cut.study().trials(*FINISHED)) < 6 and not cut.best.exists()
    assert cut.start(1).end() == 0
    assert cut.conclude() == whole.conclude()
    assert cut.best.read_bytes() == whole.best.read_bytes()
    assert json.loads(cut.best.read_text())["values"][RATE] == 1e-2
