"""The best value of a key, divided by a number in print."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from dpvision.config.base import Distinct
from dpvision.config.comparisons import Fault, OfAccuracy, OfOne, Side, positive
from dpvision.config.metrics import Examples
from dpvision.plan.specs import Spec
from dpvision.reporting import coordinates
from dpvision.reporting.measures import Named, Observed, accuracy, called, observed_within, text_of, work_of
from dpvision.reporting.records import Records

if TYPE_CHECKING:
    from dpvision.config.papers import Search
    from dpvision.plan.expand import Cell


class Best(OfAccuracy):
    """A comparison of best values of a key: among cells that differ in it, or what a cell's own search found."""

    key: str
    """The key whose best value is meant: recipe.optimizer.learning_rate, say."""
    among: Annotated[Distinct[float], Field(min_length=2)] | None = None
    """Its values, of cells that vary it; the best has the highest accuracy. null: what the search of each cell found."""
    split: Examples | None = "validation"
    """The examples that the best is chosen on."""

    OWN: ClassVar[tuple[str, ...]] = ("key", "among", *OfAccuracy.OWN)

    @model_validator(mode="after")
    def _has_logarithms(self) -> "Best":
        if not positive(self.among or ()):
            raise ValueError("among must be numbers above 0: best values are compared as ratios")
        return self

    def reads(self) -> str:
        return super().reads() if self.among else "search/best.json"

    def said(self) -> dict[str, Any]:
        return super().said() if self.among else {"key": self.key}

    def in_print(self) -> list[tuple[str | None, bool]]:
        return super().in_print() if self.among else [(None, False)]

    def candidates(self, of: Side) -> list[Side]:
        """Return the cells among which the best is looked for, or the one that was searched."""
        if not self.among:
            return [of]
        each = enumerate(self.among)
        return [Side(of.where | {self.key: value}, of.at | {self.key: ("among", i)}) for i, value in each]

    def faults_of(self, cell: "Cell", searches: Mapping[str, "Search"]) -> Iterator[Fault]:
        if self.among:
            yield from super().faults_of(cell, searches)
        elif not cell.at["search"] or self.key not in searches[cell.at["search"]].space:
            yield ("key",), f"no search finds {self.key} for {cell.group}; say the values of cells that vary it: among: [...]"


class Options(Best, OfOne):
    """The best value of a key divided by a number: 1 is just that."""

    kind: Literal["best_value"]
    """What is compared."""
    than: Annotated[float, Field(gt=0)]
    """The number that it is divided by, as the sentence has it."""

    AGAINST_PRINT: ClassVar = True

    def selected(self) -> Iterator[list[Side]]:
        for (of,) in super().selected():
            yield self.candidates(of)

    def said(self) -> dict[str, Any]:
        return super().said() | {"than": self.than}


UNIT = "ratio"


def best(comparison: Spec, numbers: tuple[float, ...]) -> float:
    """Return the value whose accuracy is the highest, the first of several; what a search found is the value itself."""
    if "among" not in comparison:
        return numbers[0]
    value: float = comparison["among"][numbers.index(max(numbers))]
    return value


def measure(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    """Return the accuracy of a cell, or the value that its search found."""
    if "among" in comparison:
        return accuracy(records, comparison, side, seed)
    found = records.json("best.json", work_of(comparison, side)[seed])
    return found and float(found["values"][comparison["key"]])


def in_print(comparison: Spec, *numbers: float) -> float:
    than: float = comparison["than"]
    return best(comparison, numbers) / than


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, measure, in_print)


def described(comparison: Spec, named: Named) -> str:
    first = named.only(0)
    return f"{best_called(comparison)} / {comparison['than']:g}, {first.sides[0]}{Named(*first[:2], named.shared).where}"


def best_called(comparison: Spec) -> str:
    """Call a best value: best learning rate of 1 to 8 by held-out accuracy."""
    key = coordinates.called(comparison["key"])
    if "among" not in comparison:
        return f"best {key} by its search"
    values = comparison["among"]
    return f"best {key} of {text_of(values[0])} to {text_of(values[-1])} by {called(comparison)}"
