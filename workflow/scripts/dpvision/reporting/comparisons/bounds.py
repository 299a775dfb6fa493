"""The lower bound of ε that attacks on one cell prove, less that of another, or divided by it."""

from typing import ClassVar, Literal

from dpvision.config.comparisons import AgainstAnother
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, less, observed_within, ratio, work_of
from dpvision.reporting.records import Records


class Options(AgainstAnother):
    """The lower bound of ε by models that attacks on one cell prove, beside that of another. Bounds by canaries are not
    compared: it would be attacks that are."""

    kind: Literal["bounds"]
    """What is compared."""
    unit: Literal["epsilon", "ratio"]
    """The first less the second, or divided by it."""

    OWN: ClassVar = ("unit",)

    def reads(self) -> str:
        return "attack/attack.json"

    def in_print(self) -> list[tuple[str | None, bool]]:
        return [("lower_bound", False)]


UNIT = {"epsilon": "ε", "ratio": "ratio"}


def in_print(comparison: Spec, first: float, second: float) -> float:
    return (less if comparison["unit"] == "epsilon" else ratio)(comparison, first, second)


def _bound(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    found = records.json("attack.json", work_of(comparison, side)[seed])
    if found is None or found["by"] != "models" or (comparison["unit"] == "ratio" and not found["lower_bound"]):
        return None
    bound: float = found["lower_bound"]
    return bound


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, _bound, in_print)


def described(comparison: Spec, named: Named) -> str:
    sign = "−" if comparison["unit"] == "epsilon" else "/"
    return f"lower bound of ε, {named.sides[0]} {sign} {named.sides[1]}{named.where}"
