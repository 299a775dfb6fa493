"""A summary of several numbers, one a seed: a value, its spread, of how many, and how."""

import math
import statistics
from collections.abc import Callable, Iterable
from typing import NamedTuple

STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "median": statistics.median,
    "mean": statistics.mean,
    "best": max,
}
SPREADS: dict[str, Callable[[list[float]], float]] = {
    "standard_deviation": statistics.stdev,  # n - 1
    "standard_error": lambda values: statistics.stdev(values) / math.sqrt(len(values)),
}
CALLED = {
    "standard_deviation": "standard deviation (n - 1)",
    "standard_error": "standard error (the standard deviation, n - 1, divided by the root of n)",
}


class Summary(NamedTuple):
    """A value over n numbers, and how far they are spread."""

    value: float | None
    """Value; None of no number."""
    spread: float | None
    """Spread; None where none is asked for, and of fewer than two numbers."""
    n: int
    how: str
    """Names of the value's statistic and of its spread."""


def summarise(values: Iterable[float | None], statistic: str, spread: str | None = None) -> Summary:
    """Return a statistic of the numbers that are there, and their spread."""
    there = [value for value in values if value is not None]
    value = STATISTICS[statistic](there) if there else None
    around = SPREADS[spread](there) if spread and len(there) > 1 else None
    return Summary(value, around, len(there), said(statistic, spread))


def said(statistic: str, spread: str | None) -> str:
    """Say what a value and its spread are: mean ± standard deviation (n - 1)."""
    return f"{statistic} ± {CALLED[spread]}" if spread else statistic
