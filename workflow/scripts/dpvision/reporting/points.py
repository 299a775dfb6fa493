"""Points of sweeps: where a cell stands on an axis, what its search found, and axes and lines that print in black and white."""

import math
from collections.abc import Iterable, Iterator
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from dpvision.config.artifacts import SPENT
from dpvision.files import read_json
from dpvision.plan.specs import Spec
from dpvision.reporting.coordinates import called

WIDE = 8  # times the least number is the greatest on an axis by powers
# Values that have a tick each, and the least share of an axis between two of them.
MOST_TICKS, CLOSE = 10, 0.04
LOOKS: list[dict[str, Any]] = [
    {"color": "#1f4e8c", "linestyle": "-", "marker": "o"},
    {"color": "#e07b00", "linestyle": "--", "marker": "s"},
    {"color": "#4d4d4d", "linestyle": ":", "marker": "^"},
    {"color": "#7a9a01", "linestyle": "-.", "marker": "D"},
    {"color": "#8a2f6b", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": "#000000", "linestyle": (0, (1, 2)), "marker": "P"},
]


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


def set_axis(axis: Any, which: str, values: Iterable[Any], beside: Iterable[Any] = ()) -> None:
    """Scale an axis to what was run, and give the x axis one tick for each value that was run.

    Args:
        axis: The panel.
        which: Its axis, `x` or `y`. Ticks are set for `x` alone.
        values: The numbers that were run; 0 stands for none.
        beside: Other numbers on the same axis, such as those in print. They get no tick of their own.
    """
    numbers = _distinct(values)
    every = _distinct([*numbers, *beside])
    positive = [number for number in every if number > 0]
    logarithmic = _needs_powers(every)
    if logarithmic:
        base = 2 if positive[-1] < 1000 * positive[0] or all(_is_power_of_two(number) for number in positive) else 10
        getattr(axis, f"set_{which}scale")("log", base=base)
        getattr(axis, f"{which}axis").set_major_formatter("{x:g}")
    places = [at_zero(positive) if number == 0 and logarithmic else number for number in numbers]
    if which == "x" and len(numbers) <= MOST_TICKS and _are_apart(places, logarithmic):
        axis.set_xticks(places, ["none" if number == 0 else f"{number:g}" for number in numbers])
        axis.minorticks_off()


def at_zero(numbers: Iterable[float]) -> float:
    """Return where 0 stands on an axis by powers: beside the least number."""
    return min(number for number in numbers if number > 0) / 2


def on_axis(values: pd.Series, every: Iterable[Any]) -> pd.Series:
    """Return where values stand on an axis that has `every` value."""
    numbers = _distinct(every)
    return values.where(values != 0, at_zero(numbers)) if _needs_powers(numbers) else values


def _distinct(values: Iterable[Any]) -> list[float]:
    """Return the numbers among some values, each once, from the least to the greatest."""
    return sorted({float(value) for value in values if not pd.isna(value)})


def _needs_powers(numbers: list[float]) -> bool:
    """Tell whether an axis is by powers: its numbers are wide apart, or 0 among them stands for none."""
    positive = [number for number in numbers if number > 0]
    return bool(positive) and (0 in numbers or positive[-1] >= WIDE * positive[0])


def _are_apart(places: list[float], logarithmic: bool) -> bool:
    """Tell whether the labels of ticks at these places have room beside each other."""
    at = [math.log(place) for place in places] if logarithmic else places
    return all(right - left >= CLOSE * (at[-1] - at[0]) for left, right in pairwise(at))


def _is_power_of_two(number: float) -> bool:
    return number >= 1 and number == int(number) and int(number) & (int(number) - 1) == 0
