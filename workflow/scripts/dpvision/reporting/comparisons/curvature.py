"""A number of one model's Hessian divided by that of another's."""

from typing import ClassVar, Literal

from dpvision.config.comparisons import OfPair
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, observed_within, ratio, work_of
from dpvision.reporting.records import Records

PRINTED = {  # number in hessian.json -> metric in published.yaml
    "trace": "trace",
    "trace_full": "trace",
    "lambda_max_power": "largest_eigenvalue",
    "ritz_negative": "negative_eigenvalues",
    "condition_largest_to_smallest_magnitude": "condition_number",
    "condition_smallest_positive_to_largest": "condition_number",
    "condition_most_negative_to_largest": "condition_number",
}
CALLED = {
    "trace": "trace of the Hessian",
    "trace_full": "trace of the Hessian, all samples",
    "lambda_max_power": "largest eigenvalue",
    "ritz_negative": "negative eigenvalues",
    "condition_largest_to_smallest_magnitude": "condition number, largest to smallest",
    "condition_smallest_positive_to_largest": "condition number, smallest positive to largest",
    "condition_most_negative_to_largest": "condition number, most negative to largest",
}


class Options(OfPair):
    """A number of one model's Hessian divided by that of another's."""

    kind: Literal["curvature"]
    """What is compared."""
    quantity: Literal[
        "trace",
        "trace_full",
        "lambda_max_power",
        "ritz_negative",
        "condition_largest_to_smallest_magnitude",
        "condition_smallest_positive_to_largest",
        "condition_most_negative_to_largest",
    ]
    """Which, by its name in hessian.json."""

    OWN: ClassVar = ("quantity",)

    def reads(self) -> str:
        return "hessian/hessian.json"

    def in_print(self) -> list[tuple[str | None, bool]]:
        return [(PRINTED[self.quantity], False)]


UNIT = "ratio"
in_print = ratio


def _quantity(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    found = records.json("hessian.json", work_of(comparison, side)[seed])
    value = found and found[comparison["quantity"]]
    return value if value is not None and value > 0 else None  # a ratio of others says nothing


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, _quantity, ratio)


def described(comparison: Spec, named: Named) -> str:
    return f"{CALLED[comparison['quantity']]}, {named.sides[0]} / {named.sides[1]}{named.where}"
