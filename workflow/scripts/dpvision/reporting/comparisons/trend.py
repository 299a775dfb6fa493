"""By how much accuracy rises whenever a coordinate doubles."""

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

from dpvision.config.comparisons import AlongNumbers, OfAccuracy, Side
from dpvision.plan.specs import Spec
from dpvision.reporting import coordinates
from dpvision.reporting.measures import Named, Observed, accuracy, called, observed_within, text_of
from dpvision.reporting.records import Records


class Options(OfAccuracy, AlongNumbers):
    """Percentage points by which accuracy (with `less`, a gap) rises whenever a coordinate doubles: the slope of a line.

    The line is through all values of a seed, by least squares. A coordinate may matter more at one end than at the other:
    `steps` asks that each step does.
    """

    kind: Literal["trend"]
    """What is compared."""

    OWN: ClassVar = (*OfAccuracy.OWN, "along", "over")

    def selected(self) -> Iterator[list[Side]]:
        yield self.at_each()


UNIT = "points"


def slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the line of least squares through points."""
    means = [sum(column) / len(points) for column in zip(*points, strict=True)]
    return sum((x - means[0]) * (y - means[1]) for x, y in points) / sum((x - means[0]) ** 2 for x, _ in points)


def in_print(comparison: Spec, *numbers: float) -> float:
    return slope([(math.log2(x), y) for x, y in zip(comparison["over"], numbers, strict=True)])


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, accuracy, in_print)


def described(comparison: Spec, named: Named) -> str:
    return f"{called(comparison)}, by each doubling of {along(comparison, named)}"


def along(comparison: Spec, named: Named) -> str:
    """Say which cells are compared along what: expected batch size from 256 to 4096, WRN-16-4 (ε = 8, ...) to ..."""
    ends = f"from {text_of(comparison['over'][0])} to {text_of(comparison['over'][-1])}"
    first, last = named.only(0, -1).sides
    return f"{coordinates.called(comparison['along'])} {ends}, {first} to {last}{f': {named.shared}' if named.shared else ''}"
