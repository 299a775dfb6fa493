"""The difference between the best of some seeds less the difference between their medians."""

import statistics
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dpvision.config.comparisons import OfAccuracy, OfPair
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, accuracy, called, of_seeds
from dpvision.reporting.records import Records


class Options(OfAccuracy, OfPair):
    """The difference between the best of some seeds less the difference between their medians, in percentage points."""

    kind: Literal["best_of"]
    """What is compared."""
    seeds: Annotated[int, Field(gt=2)] = 3
    """How many one best is chosen from. One such group is one observation: n counts groups."""

    OWN: ClassVar = (*OfAccuracy.OWN, "seeds")

    def in_print(self) -> list[tuple[str | None, bool]]:
        return [(metric, best) for best in (True, False) for metric, _ in super(Options, self).in_print()]


UNIT = "points"


def in_print(comparison: Spec, first: float, second: float, *medians: float) -> float:
    return first - second - (medians[0] - medians[1])


def observed(comparison: Spec, records: Records) -> Observed:
    """Return the effect by group of seeds, in their order; those that are left over are in none."""
    whole, size = of_seeds(comparison, records, accuracy), comparison["seeds"]
    seeds = list(whole)
    values = {}
    for group in (seeds[start : start + size] for start in range(0, len(seeds) - size + 1, size)):
        first, second = zip(*(whole[seed] for seed in group), strict=True)
        values[" ".join(group)] = in_print(
            comparison, max(first), max(second), statistics.median(first), statistics.median(second)
        )
    return Observed(values, None)


def described(comparison: Spec, named: Named) -> str:
    best = f"best of {comparison['seeds']} against median"
    return f"{called(comparison)}, {best}, {named.sides[0]} − {named.sides[1]}{named.where}"
