"""How the best value of a key grows with a coordinate: as which power of it."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from dpvision.config.comparisons import AlongNumbers, Side
from dpvision.plan.specs import Spec
from dpvision.reporting.comparisons.best_value import Best, best, best_called, measure
from dpvision.reporting.comparisons.trend import along, slope
from dpvision.reporting.measures import Named, Observed, of_seeds
from dpvision.reporting.records import Records


class Options(Best, AlongNumbers):
    """The power of a coordinate with which the best value of a key grows: 0 constant, 1 proportional, below 0 it falls.

    The slope of a line of least squares through the logarithms of both. Where searches found the values, each coordinate
    has one, and the interval is that of the slope.
    """

    kind: Literal["best_trend"]
    """What is compared."""

    OWN: ClassVar = (*Best.OWN, "along", "over")

    def selected(self) -> Iterator[list[Side]]:
        yield [one for of in self.at_each() for one in self.candidates(of)]

    def said(self) -> dict[str, Any]:
        return super().said() | {"along": self.along, "over": self.over}


UNIT = "power"


def _points(comparison: Spec, numbers: list[float]) -> list[tuple[float, float]]:
    """Return the logarithms of each coordinate and of the best value there."""
    many = len(comparison.get("among", [None]))
    found = [best(comparison, tuple(numbers[start : start + many])) for start in range(0, len(numbers), many)]
    return [(math.log(x), math.log(y)) for x, y in zip(comparison["over"], found, strict=True)]


def in_print(comparison: Spec, *numbers: float) -> float:
    return slope(_points(comparison, list(numbers)))


def observed(comparison: Spec, records: Records) -> Observed:
    """Return the power by seed; where one search was made for each coordinate, with the points of its line."""
    whole = {seed: _points(comparison, numbers) for seed, numbers in of_seeds(comparison, records, measure).items()}
    points = next(iter(whole.values()), None) if "among" not in comparison else None
    return Observed({seed: slope(line) for seed, line in whole.items()}, None, points)


def described(comparison: Spec, named: Named) -> str:
    return f"power of {best_called(comparison)}, by {along(comparison, named)}"
