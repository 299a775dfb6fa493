"""A training that is told to leave in the middle of anything goes on later to the same bits."""

import io
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from dpvision.errors import Interrupted
from dpvision.privacy.ledger import spent
from dpvision.training import leaving
from dpvision.training.fit import Training
from dpvision.training.record import metrics

VIEWS = {"pad": 1, "flip": 0.5, "views": 2, "include_original": False}
SHORT = {"recipe.epochs": 2}
KINDS = {
    "private": SHORT,
    "views, average, bfloat16": SHORT
    | {"recipe.augmentation": VIEWS, "recipe.averaging": {"decay": 0.8}, "recipe.precision": "bfloat16"},
    "momentum": SHORT | {"recipe.optimizer": {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9}},
    "not private, batch normalisation": SHORT | {"budget": None, "model.norm": "batch"},
}


@contextmanager
def asked(whether: Callable[[], bool]) -> Iterator[None]:
    """Act as if a signal had come once `whether` says so; it is called as often as a training looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaving, "asked_to_leave", whether)
        yield


def at_look(number: int) -> Callable[[], bool]:
    """Return a function that says yes from the look on that comes after `number` others."""
    count = itertools.count()
    return lambda: next(count) >= number


def saved(training: Training) -> dict[str, Any]:
    """Return a training's state, as a checkpoint brings it back."""
    file = io.BytesIO()
    torch.save(training.state(), file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=True)


def flat(state: Any) -> list[Any]:
    """Return all that is in a state but times, such that equal means equal bits."""
    if isinstance(state, dict):
        return [item for key in sorted(state, key=str) if key != "seconds" for item in [key, *flat(state[key])]]
    if isinstance(state, list | tuple):
        return [item for value in state for item in flat(value)]
    return [(str(state.dtype), state.tolist())] if isinstance(state, torch.Tensor) else [state]


def outcome(training: Training) -> list[Any]:
    return flat([training.state(), training.epsilon, spent(training.spec, training.mechanism, {})])


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS.keys())
def kind(request, training) -> tuple[dict[str, Any], list[Any], int]:
    """Return a kind of run: its changes, its outcome where nobody disturbed it, and how often it looked to leave."""
    looks = itertools.count()
    done = training(request.param)
    with asked(lambda: next(looks) < 0):
        done.run()
    return request.param, outcome(done), next(looks)


def test_a_training_looks_often_enough_to_leave_in_every_step_and_evaluation(training):
    made = []
    watched = training(SHORT)
    with asked(lambda: made.append((watched.made, len(watched.history))) or False):
        watched.run()
    assert {step for step, _ in made} == set(range(21))
    assert {(10, 0), (20, 1)} <= set(made)  # the epochs' evaluations


def test_a_training_left_again_and_again_ends_like_one_that_was_not(kind, training):
    """The training leaves somewhere else every time: before the first physical batch or the last, in an evaluation."""
    changes, expected, looks = kind
    chance, begun, left, states = random.Random(0), training(changes), 0, set()
    while True:
        try:
            with asked(at_look(chance.randrange(looks // 2))):
                begun.run()
            break
        except Interrupted:
            left += 1
            states.add((begun.made, len(begun.history)))
        state = saved(begun)
        begun = training(changes)
        begun.restore(state)
    assert outcome(begun) == expected
    assert left > 3
    assert len(states) > 2


def test_half_a_step_leaves_no_trace_wherever_it_is_given_up(training, advance):
    begun = training(SHORT | {"recipe.augmentation": VIEWS})
    advance(begun, 3)
    before = flat(begun.state())
    for number in range(20):
        try:
            with asked(at_look(number)):
                begun.step()
        except Interrupted:
            assert flat(begun.state()) == before
        else:
            break
    assert number == 2
    assert flat(begun.state()) != before


def test_an_epochs_evaluation_that_was_given_up_is_made_again_without_its_step(training, kind):
    changes, expected, _ = kind
    begun = training(changes)
    with pytest.raises(Interrupted), asked(lambda: begun.made == 10):
        begun.run()
    assert (begun.made, begun.history) == (10, [])
    begun.run()
    assert outcome(begun) == expected


@pytest.mark.parametrize("number", [0, 20, 40])
def test_a_records_metrics_given_up_leave_the_training_as_it_was(training, number):
    done = training(SHORT)
    done.run()
    done.best["weights"] = {name: 2 * tensor for name, tensor in done.best["weights"].items()}  # other than the last
    before = outcome(done)
    with pytest.raises(Interrupted), asked(at_look(number)):
        metrics(done)
    assert outcome(done) == before
