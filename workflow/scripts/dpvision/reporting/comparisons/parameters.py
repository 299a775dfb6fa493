"""How many parameters a model has, exactly."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from dpvision.config.base import Name, Positive
from dpvision.config.comparisons import Comparison, Side, side
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, observed_within, work_of
from dpvision.reporting.records import Records


class Options(Comparison):
    """A model's number of parameters, exactly: of its trained weights, where the scale has the paper's own network.

    At any ε, trained by any recipe: the network is the same.
    """

    kind: Literal["parameters"]
    """What is compared."""
    model: Name
    """Which model."""
    count: Positive
    """How many there are, says the sentence."""

    OWN: ClassVar = ("count",)
    AGAINST_PRINT: ClassVar = True
    OF_NETWORK: ClassVar = True

    def reads(self) -> str:
        return "train/weights.safetensors"

    def selected(self) -> Iterator[list[Side]]:
        yield [side(dataset=(self.dataset, ("dataset",)), model=(self.model, ("model",)))]


UNIT = "parameters"


def in_print(comparison: Spec) -> float:
    count: float = comparison["count"]
    return count


def _count(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    return records.parameters(work_of(comparison, side)[seed])


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, _count, lambda comparison, count: float(count))


def described(comparison: Spec, named: Named) -> str:
    return f"parameters, {named.sides[0]}{named.where}"
