"""Points of sweeps: where a cell stands on an axis, what its search found, and axes and lines that print in black and white."""

from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pandas as pd

from dpvision.config.artifacts import SPENT
from dpvision.files import read_json
from dpvision.plan.specs import Spec

CALLED = {
    "dataset": "data set",
    "epsilon": "ε",
    "sigma": "noise multiplier σ",
    "steps": "steps",
    "epochs": "epochs",
    "learning_rate": "learning rate",
    "recipe.batch": "expected batch size",
    "recipe.optimizer.learning_rate": "learning rate",
    "recipe.clip": "clipping norm C",
    "recipe.augmentation.views": "augmentation multiplicity",
    "mu": "μ of Gaussian differential privacy",
    "model.depth": "depth",
    "model.width": "width",
    "train": "trained:",
    "start": "network, and what it saw before",
}
WIDE = 8  # times the least number is the greatest on an axis by powers
LOOKS: list[dict[str, Any]] = [
    {"color": "#1f4e8c", "linestyle": "-", "marker": "o"},
    {"color": "#e07b00", "linestyle": "--", "marker": "s"},
    {"color": "#4d4d4d", "linestyle": ":", "marker": "^"},
    {"color": "#7a9a01", "linestyle": "-.", "marker": "D"},
    {"color": "#8a2f6b", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": "#000000", "linestyle": (0, (1, 2)), "marker": "P"},
]


def called(name: str) -> str:
    """Return what people call a coordinate, or a number of a ledger."""
    return CALLED.get(name, name)


def looks() -> Iterator[dict[str, Any]]:
    """Yield how lines look, one after the other: they differ in shade, stroke and mark."""
    return cycle(LOOKS)


def line_name(at: dict[str, Any], names: Iterable[str], labels: dict[str, Any]) -> str:
    """Call a line by the coordinates that tell it from others."""
    words = []
    for name in names:
        value = at.get(name)
        number = f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)
        known = {"model": labels["models"], "start": labels.get("starts", {})}.get(name, {})
        words.append(known.get(value, value) if name == "model" or value in known else f"{called(name)} {number}")
    return ", ".join(map(str, words))


def spent(ledger: dict[str, Any]) -> dict[str, float]:
    """Return σ, steps, epochs and μ of a training by its ledger; in a simulation, those of what is simulated."""
    of = ledger.get("simulated", ledger)
    if "noise_multiplier" not in of:  # not private
        return {}
    steps = of["steps"]["made"]
    found = {"sigma": of["noise_multiplier"], "steps": steps, "epochs": steps * of["sampling_rate"]}
    return found | ({"mu": of["curve"]["mu"]} if "curve" in of else {})


def place(at: dict[str, Any], name: str, ledgers: Iterable[dict[str, Any]]) -> Any:
    """Return where a cell stands on an axis: its coordinate, 0 where it has none, or the mean of what its trainings say."""
    if at.get(name) is not None or name not in SPENT:
        return at.get(name) or 0
    said = [found[name] for ledger in ledgers if name in (found := spent(ledger))]
    return sum(said) / len(said) if said else None


def metric_of(record: dict[str, Any], metric: dict[str, Any]) -> float | None:
    """Return an accuracy of a training in per cent; None: it has no such number."""
    value = record.get(metric["weights"], {}).get(metric["split"], {}).get(metric["name"])
    return None if value is None else 100 * value


def metric_name(metric: dict[str, Any]) -> str:
    """Call a metric as a legend does."""
    split = {"train": "training", "validation": "validation", "test": "test"}[metric["split"]]
    top = "" if metric["name"] == "top1" else ", top 5"
    weights = {"averaged": ", averaged weights", "best_epoch": ", best epoch"}.get(metric["weights"], "")
    return f"{split}{top}{weights}"


# --- what searches found ---


def studies_of(cell: Spec) -> list[str]:
    """Return the searches of a cell, by name."""
    return list(cell["work"].get("search", {}).values())


def edges_of(cell: Spec, studies: dict[str, dict[str, Any]]) -> str:
    """Say which values that were found for a cell are at an end of what was searched; nothing where none is."""
    return "; ".join(edge for study in studies_of(cell) if study in studies for edge in studies[study].get("edges", []))


def by_folder(files: Iterable[str]) -> dict[str, Path]:
    """Return files of records by the names of their folders."""
    return {Path(file).parent.name: Path(file) for file in files}


def read_by_folder(files: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read the JSON files of records, by the names of their folders."""
    return {name: read_json(file) for name, file in by_folder(files).items()}


def best_trial(trials: pd.DataFrame, values: dict[str, Any]) -> dict[str, Any]:
    """Return the trial that has the found values."""
    complete = trials[trials["state"] == "complete"]
    for _, row in complete.iterrows():
        if all(str(row[key]) == str(value) or row[key] == value for key, value in values.items()):
            return row.to_dict()
    raise ValueError(f"no trial has the values {values}, which best.json says are the best")


# --- axes ---


def set_axis(axis: Any, which: str, values: Iterable[Any]) -> None:
    """Make an axis by powers of two or ten where its numbers are wide apart, with a tick at each where they are few."""
    numbers = sorted({float(value) for value in values if not pd.isna(value)})
    positive = [number for number in numbers if number > 0]
    if not positive or positive[-1] < WIDE * positive[0]:
        return
    base = 2 if positive[-1] < 1000 * positive[0] or all(_is_power_of_two(number) for number in positive) else 10
    getattr(axis, f"set_{which}scale")("log", base=base)
    if which == "x" and len(numbers) <= 10:
        ticks = [at_zero(numbers) if number == 0 else number for number in numbers]
        axis.set_xticks(ticks, ["none" if number == 0 else f"{number:g}" for number in numbers])
        axis.minorticks_off()


def at_zero(numbers: Iterable[float]) -> float:
    """Return where 0 stands on an axis by powers: beside the least number."""
    return min(number for number in numbers if number > 0) / 2


def on_axis(values: pd.Series, every: Iterable[Any]) -> pd.Series:
    """Return where values stand on an axis that has `every` value."""
    numbers = [float(value) for value in every if not pd.isna(value)]
    positive = [number for number in numbers if number > 0]
    by_powers = bool(positive) and max(positive) >= WIDE * min(positive)
    return values.where(values != 0, at_zero(positive)) if by_powers else values


def _is_power_of_two(number: float) -> bool:
    return number >= 1 and number == int(number) and int(number) & (int(number) - 1) == 0
