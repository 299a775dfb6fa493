"""How much better one target of an attack is than all others, by what phase one found."""

from typing import ClassVar, Literal

from dpvision.config.comparisons import OfOne
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, observed_within, work_of
from dpvision.reporting.records import Records


class Options(OfOne):
    """The largest total variation that phase one of an attack finds with one image as its target, less that with any other."""

    kind: Literal["targets"]
    """What is compared."""
    image: Literal["blank", "noise"]
    """The image."""

    OWN: ClassVar = ("image",)

    def reads(self) -> str:
        return "attack/tried.csv"


UNIT = "variation"


def in_print(comparison: Spec, value: float) -> float:
    return value


def _lead(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    rows = records.rows("tried.csv", work_of(comparison, side)[seed]) or []
    found: dict[bool, list[float]] = {True: [], False: []}
    for row in rows:
        if row["total_variation"]:
            found[row["target"].startswith(f"{comparison['image']} ")].append(float(row["total_variation"]))
    return max(found[True]) - max(found[False]) if all(found.values()) else None


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, _lead, in_print)


def described(comparison: Spec, named: Named) -> str:
    return f"total variation, {comparison['image']} − best other z, {named.sides[0]}{named.where}"
