"""How many attacks prove more than is claimed, exactly."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dpvision.config.base import Distinct, Epsilon, Name
from dpvision.config.comparisons import Comparison, Side, side
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, of_seeds, work_of
from dpvision.reporting.records import Records

BY = {"models": "'s stacked trainer", "canaries": "'s engine"}


class Options(Comparison):
    """Count the attacks, of all seeds, that prove a lower bound of ε above the one that is claimed: a comparison for each ε.

    They attack this program: by canaries its engine, by models the trainer of many at once. Of the authors' they say nothing.
    """

    kind: Literal["violations"]
    """What is compared."""
    model: Name
    """Which model."""
    epsilons: Distinct[Epsilon]
    """A comparison for each."""
    count: Annotated[int, Field(ge=0)]
    """How many there are, says the sentence."""

    OWN: ClassVar = ("count",)

    def reads(self) -> str:
        return "attack/attack.json"

    def selected(self) -> Iterator[list[Side]]:
        for i, epsilon in enumerate(self.epsilons):
            dataset, model = (self.dataset, ("dataset",)), (self.model, ("model",))
            yield [side(dataset=dataset, model=model, epsilon=(epsilon, ("epsilons", i)))]


UNIT = "violations"


def in_print(comparison: Spec) -> float:
    count: float = comparison["count"]
    return count


def _exceeds(records: Records, comparison: Spec, at: int, seed: str) -> float | None:
    found = records.json("attack.json", work_of(comparison, at)[seed])
    return None if found is None else float(found["lower_bound"] > found["nominal"])


def observed(comparison: Spec, records: Records) -> Observed:
    """Return 1 for each seed whose bound exceeds the claim: their mean is 0 if none does."""
    whole = {seed: value for seed, (value,) in of_seeds(comparison, records, _exceeds).items()}
    return Observed(whole, max(whole.values(), default=None))


def described(comparison: Spec, named: Named) -> str:
    of = BY.get(comparison["sides"][0].get("attacked", {}).get("by"), "")
    return f"of this program{of}: bounds above the claim, {named.sides[0]}{named.where}"
