"""Coordinates that tell cells apart, and the names by which cells are called."""

from collections.abc import Iterable, Sequence
from typing import Any

ALWAYS = ("dataset", "model", "epsilon")  # shown wherever they differ; of the others only what tells two cells apart
NOMINAL = "budget.nominal"  # ε in print, which names cells in its place
HEADINGS = {"dataset": "data set", "epsilon": "ε", "delta": "δ", "sigma": "σ", "held_out": "held out", NOMINAL: "ε in print"}

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
    "model.groups": "number of groups",
    "model.connection": "connection",
    "model.norm": "normalisation",
    "model.activation": "activation",
    "model.pool": "pooling",
    "train": "trained:",
    "start": "network, and what it saw before",
}


def called(name: str) -> str:
    """Return what people call a coordinate, or a number of a ledger: a dotted key that has no name by its last word."""
    return CALLED.get(name, name.rpartition(".")[2].replace("_", " "))


def telling(places: Sequence[dict[str, Any]], shown_first: Iterable[str] = ()) -> list[str]:
    """Return the coordinates that tell the places of cells apart; some are shown before others wherever they differ.

    The search that found a cell's values is one only where nothing else is.
    """
    names = list(dict.fromkeys(name for at in places for name in at))
    first = {*always_shown(places), *shown_first}
    shown = [name for name in names if name in first and _values(places, [name]) > 1]
    for name in sorted(names, key=lambda name: name == "search"):
        if name not in shown and _values(places, [*shown, name]) > _values(places, shown):
            shown.append(name)
    return [name for name in names if name in shown]


def always_shown(places: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the coordinates that are shown wherever they differ: ε in print takes the place of ε where all cells have it."""
    nominal = all(NOMINAL in at for at in places) and bool(places)
    return (*ALWAYS[:2], NOMINAL) if nominal else ALWAYS


def _values(places: Sequence[dict[str, Any]], names: list[str]) -> int:
    return len({tuple(at.get(name) for name in names) for at in places})


def coordinates_of(cells: Iterable[dict[str, Any]]) -> list[str]:
    """Return the coordinates of all cells: a group that varies more has more of them."""
    return list(dict.fromkeys(name for cell in cells for name in cell["at"]))


def cell_name(at: dict[str, Any], names: Iterable[str] = ("dataset", "epsilon")) -> str:
    """Call a cell by those of some coordinates that it has: cifar10, ε = 7.42."""
    there = [name for name in names if at.get(name) is not None or (name == "epsilon" and name in at)]
    return ", ".join(_said(name, at[name]) for name in there)


def _said(name: str, value: Any) -> str:
    if name == "epsilon":
        return "not private" if value is None else f"ε = {value:g}" if isinstance(value, float | int) else "ε as spent"
    if name in ("dataset", "model"):
        return str(value)
    head = HEADINGS.get(name, name.rpartition(".")[2].replace("_", " "))
    return f"{head} {format(value, 'g') if isinstance(value, float) else value}"
