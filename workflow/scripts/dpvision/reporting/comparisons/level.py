"""Accuracy of a model less a number in print."""

from typing import ClassVar, Literal

from dpvision.config.comparisons import OfAccuracy, OfOne
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, accuracy, called, observed_within
from dpvision.reporting.records import Records


class Options(OfAccuracy, OfOne):
    """Accuracy of a model less a number in print, in percentage points."""

    kind: Literal["level"]
    """What is compared."""
    than: float
    """The number, in per cent."""

    OWN: ClassVar = (*OfAccuracy.OWN, "than")
    AGAINST_PRINT: ClassVar = True


UNIT = "points"


def in_print(comparison: Spec, value: float) -> float:
    than: float = comparison["than"]
    return value - than


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, accuracy, in_print)


def described(comparison: Spec, named: Named) -> str:
    return f"{called(comparison)}, {named.sides[0]} − {comparison['than']:g} %{named.where}"
