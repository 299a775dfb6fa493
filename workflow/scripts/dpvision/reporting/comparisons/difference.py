"""Accuracy of one model less that of another."""

from typing import Literal

from dpvision.config.comparisons import AgainstAnother, OfAccuracy
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, accuracy, called, less, observed_within
from dpvision.reporting.records import Records


class Options(OfAccuracy, AgainstAnother):
    """Accuracy of one model less that of another, in percentage points."""

    kind: Literal["difference"]
    """What is compared."""


UNIT = "points"
in_print = less


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, accuracy, less)


def described(comparison: Spec, named: Named) -> str:
    return f"{called(comparison)}, {named.sides[0]} − {named.sides[1]}{named.where}"
