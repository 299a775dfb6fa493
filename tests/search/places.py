"""A study's place on the disk, and a training that is pretended: its epochs' accuracies are known before."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jobs
from optuna.trial import TrialState

from dpvision.plan import specs
from dpvision.search.study import FINISHED, Study, conclude, work

GROUPS = [1, 2, 4, "channels"]


class Place:
    """The place of a study: its spec, its data and its folder."""

    def __init__(self, folder: Path, data: Path, spec: specs.Spec) -> None:
        self.folder, self.data, self.spec = folder, data, spec
        self.best, self.table = folder / "best.json", folder / "trials.csv"
        self.decided = data.parent / "choices"

    def arguments(self, worker: int = 0) -> tuple[Any, ...]:
        return self.spec, self.data, self.folder, self.done(worker), self.decided, 512, 4000

    def done(self, worker: int) -> Path:
        return self.folder / "workers" / f"{worker}.json"

    def work(self, worker: int = 0) -> "Place":
        work(*self.arguments(worker))
        return self

    def start(self, worker: int, how: Callable[..., None] = jobs.work, *first: Any) -> jobs.Job:
        return jobs.Job(self.folder / f"{worker}.log", how, *first, *self.arguments(worker))

    def conclude(self) -> dict[str, Any]:
        conclude(self.spec, self.folder, self.best, self.table, self.folder / "provenance.json")
        return json.loads(self.best.read_text())

    def rows(self) -> list[dict[str, str]]:
        with open(self.table, encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def study(self) -> Study:
        return Study(self.spec, self.folder)

    def tried(self, *states: TrialState) -> list[Any]:
        return [trial.params["model.groups"] for trial in self.study().trials(*(states or FINISHED))]


class Pretended:
    """A stand-in for a training: its epochs' accuracies are known before; the loss is 1 - accuracy, or known too."""

    accuracies: Callable[[Any], list[float]]

    def __init__(self, run: specs.Spec, *_: Any, **__: Any) -> None:
        self.groups = run["model"]["groups"]
        self.history: list[dict[str, Any]] = []
        self.planned, self.made = run["recipe"]["epochs"], 0

    def run(self, after_step: Callable, after_epoch: Callable) -> None:
        for known in type(self).accuracies(self.groups):
            accuracy, loss = known if isinstance(known, tuple) else (known, 1 - known)
            self.made += 1
            self.history.append({"epoch": self.made, "validation_top1": accuracy, "validation_loss": loss})
            after_epoch(self)
            after_step(self)
