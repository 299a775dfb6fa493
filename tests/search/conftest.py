"""Places of studies, and trainings whose accuracies are known before."""

from collections.abc import Callable
from typing import Any

import pytest
from places import GROUPS, Place, Pretended

from dpvision.search import study as study_module


@pytest.fixture
def place(tmp_path, digits, run_spec) -> Callable[..., Place]:
    def make(name: str = "study", **changes: Any) -> Place:
        run = run_spec({"model.groups": None, "recipe.epochs": changes.pop("epochs", 2), "recipe.batch": 250})
        spec = {"kind": "study", "run": run, "space": {"model.groups": GROUPS}, "trials": 4, "seed": 0}
        return Place(tmp_path / name, digits, {**spec, "prune_below": 0.0, "prune_after": 1, **changes})

    return make


@pytest.fixture
def pretend(monkeypatch) -> Callable[[Callable[[Any], list[float]]], None]:
    def accuracies(of: Callable[[Any], list[float]]) -> None:
        monkeypatch.setattr(study_module, "Training", type("Known", (Pretended,), {"accuracies": staticmethod(of)}))

    return accuracies
