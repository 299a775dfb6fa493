"""How the number of updates grows with a coordinate: as which power of it."""

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

from dpvision.config.comparisons import AlongNumbers, Side
from dpvision.plan.specs import Spec
from dpvision.reporting.comparisons.trend import along, slope
from dpvision.reporting.measures import Named, Observed, of_seeds, work_of
from dpvision.reporting.records import Records


class Options(AlongNumbers):
    """The power of a coordinate with which the number of updates grows that trainings made, or that they simulate.

    The slope of a line of least squares through the logarithms of both: 0 constant, 1 proportional.
    """

    kind: Literal["updates_trend"]
    """What is compared."""

    OWN: ClassVar = ("along", "over")

    def reads(self) -> str:
        return "train/ledger.json"

    def selected(self) -> Iterator[list[Side]]:
        yield self.at_each()


UNIT = "power"


def _updates(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    ledger = records.json("ledger.json", work_of(comparison, side)[seed])
    return ledger and float(ledger.get("simulated", ledger)["steps"]["made"])


def _points(comparison: Spec, *numbers: float) -> list[tuple[float, float]]:
    return [(math.log(x), math.log(y)) for x, y in zip(comparison["over"], numbers, strict=True)]


def in_print(comparison: Spec, *numbers: float) -> float:
    return slope(_points(comparison, *numbers))


def observed(comparison: Spec, records: Records) -> Observed:
    """Return the power by seed, with the points of one line: seeds have the same updates, so that its fit is the interval."""
    whole = {seed: _points(comparison, *numbers) for seed, numbers in of_seeds(comparison, records, _updates).items()}
    return Observed({seed: slope(line) for seed, line in whole.items()}, None, next(iter(whole.values()), None))


def described(comparison: Spec, named: Named) -> str:
    return f"power of the updates, by {along(comparison, named)}"
