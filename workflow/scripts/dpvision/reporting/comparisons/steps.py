"""Accuracy at each value of a coordinate less that at the value before: whether each step of a way improves."""

import itertools
from collections.abc import Iterator
from typing import Literal

from dpvision.config.comparisons import Along, OfAccuracy, Side
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, accuracy, called, less, observed_within
from dpvision.reporting.records import Records


class Options(OfAccuracy, Along):
    """One comparison for each two values of a coordinate that follow each other: the later's accuracy less the earlier's.

    All above 0: each rung of a ladder improves, or accuracy (with `less`, a gap) rises with the key.
    """

    kind: Literal["steps"]
    """What is compared."""

    def selected(self) -> Iterator[list[Side]]:
        for earlier, later in itertools.pairwise(self.at_each()):
            yield [later, earlier]


UNIT = "points"
in_print = less


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, accuracy, less)


def described(comparison: Spec, named: Named) -> str:
    return f"{called(comparison)}, {named.sides[0]} − {named.sides[1]}{named.where}"
