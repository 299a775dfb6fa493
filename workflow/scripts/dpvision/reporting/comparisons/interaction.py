"""A difference of accuracies less another one."""

from collections.abc import Iterator
from typing import Any, Literal

from dpvision.config.base import Epsilon, Name, Strict
from dpvision.config.cells import Where
from dpvision.config.comparisons import AgainstAnother, At, OfAccuracy, Pair, Side
from dpvision.config.comparisons import side as side_of
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, accuracy, called, observed_within
from dpvision.reporting.records import Records


class Baseline(Strict):
    """The difference that another is compared to; what it does not say is as there."""

    dataset: Name | None = None
    """A data set that the paper's cells name."""
    models: Pair | None = None
    """The two: the first's accuracy less the second's."""
    epsilon: Epsilon | Literal["same"] | None = "same"
    """Of both; null: not private."""
    where: Where = Where()
    """Other coordinates of both, where they differ from those of the first difference: another batch, say."""

    def of(self, sides: list[Side]) -> list[Side]:
        """Return the sides of this difference, by those of the other."""
        return [self._of(side, model).but(self.where, "minus", "where") for model, side in enumerate(sides)]

    def _of(self, side: Side, model: int) -> Side:
        said: dict[str, tuple[Any, At]] = {}
        if self.dataset:
            said["dataset"] = (self.dataset, ("minus", "dataset"))
        if self.models:
            said["model"] = (self.models[model], ("minus", "models", model))
        if self.epsilon != "same":
            said["epsilon"] = (self.epsilon, ("minus", "epsilon"))
        other = side_of(**said)
        return Side(side.where | other.where, side.at | other.at)


class Options(OfAccuracy, AgainstAnother):
    """A difference of accuracies less another one, in percentage points."""

    kind: Literal["interaction"]
    """What is compared."""
    minus: Baseline
    """The other difference."""

    def selected(self) -> Iterator[list[Side]]:
        for sides in super().selected():
            yield sides + self.minus.of(sides)

    def compares_itself(self, sides: list[Side]) -> bool:
        first, second, third, fourth = (one.where for one in sides)
        return first == second or third == fourth or (first, second) == (third, fourth)


UNIT = "points"


def in_print(comparison: Spec, first: float, second: float, third: float, fourth: float) -> float:
    return (first - second) - (third - fourth)


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, accuracy, in_print)


def described(comparison: Spec, named: Named) -> str:
    parts = [_difference(named.only(i, i + 1)) for i in (0, 2)]
    return f"{called(comparison)}, {' − '.join(parts)}{named.where}"


def _difference(pair: Named) -> str:
    return f"({pair.sides[0]} − {pair.sides[1]}{f': {pair.cell}' if pair.cell else ''})"
