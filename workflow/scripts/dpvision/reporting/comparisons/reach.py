"""When one model first reached what two end with at least, less when the other did."""

from typing import ClassVar, Literal

from dpvision.config.comparisons import OfPair
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, less, observed_within, work_of
from dpvision.reporting.records import Records


class Options(OfPair):
    """The time until one model's test accuracy reached the second's at the end, less the time until the second's own did."""

    kind: Literal["reach"]
    """What is compared."""
    unit: Literal["epoch", "epsilon"] = "epoch"
    """What is counted until then: epochs, or the ε spent. Who never gets there is counted with the last."""

    OWN: ClassVar = ("unit",)

    def reads(self) -> str:
        return "train/history.csv"


UNIT = {"epoch": "epochs", "epsilon": "ε"}
CALLED = {"epoch": "epochs", "epsilon": "ε spent"}
in_print = less


def _reached(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    """Return when this side first had what both end with at least: another goal than a common one would favour one of them."""
    found = [records.rows("history.csv", work_of(comparison, i)[seed]) for i in range(len(comparison["sides"]))]
    both = [rows for rows in found if rows is not None]
    if len(both) < len(found):
        return None
    goal = min(float(rows[-1]["test_top1"]) for rows in both)
    there = next(row for row in both[side] if float(row["test_top1"]) >= goal)
    unit: str = comparison["unit"]
    return float(there[f"simulated_{unit}" if f"simulated_{unit}" in there else unit])


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, _reached, less)


def described(comparison: Spec, named: Named) -> str:
    until = f"{CALLED[comparison['unit']]} until the lower final accuracy of the two"
    return f"{until}, {named.sides[0]} − {named.sides[1]}{named.where}"
