"""Comparisons that decide claims: what every kind has, and which sides it compares.

Each kind is a file in reporting/comparisons/, found by name."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from dpvision.config.base import Distinct, Epsilon, Name, Strict
from dpvision.config.cells import Value, Where
from dpvision.config.metrics import Examples, Weights

if TYPE_CHECKING:
    from dpvision.config.papers import Search
    from dpvision.models.options import Network
    from dpvision.plan.expand import Cell

Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]


class Claimed(Strict):
    """The place of the effect if the sentence is true: above a number, below one, or between both."""

    above: float | None = None
    """What it exceeds."""
    below: float | None = None
    """What it stays below."""
    about: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    """The size that the sentence gives, from and to: how its `ca.` is read here. The interval has to meet it."""

    @model_validator(mode="after")
    def _says_something(self) -> "Claimed":
        if self.above is None and self.below is None:
            raise ValueError("must say above, below or both")
        for low, high in ((self.above, self.below), self.about or (None, None)):
            if low is not None and high is not None and low >= high:
                raise ValueError(f"nothing lies above {low:g} and below {high:g}")
        return self


At = tuple[str | int, ...]  # where something stands, from the comparison on
Fault = tuple[At, str]  # where, and what is wrong


class Side(NamedTuple):
    """One side of a comparison: the coordinates that select its cell, and where each of them stands."""

    where: dict[str, Any]
    at: dict[str, At]

    def with_(self, also: Where, *at: str) -> "Side":
        """Return it with further coordinates, which stand below `at`; those that it names itself go before."""
        return Side(also.coordinates() | self.where, {key: (*at, key) for key in also.coordinates()} | self.at)

    def but(self, other: Where, *at: str) -> "Side":
        """Return it with other values of these coordinates, which stand below `at`."""
        return Side(self.where | other.coordinates(), self.at | {key: (*at, key) for key in other.coordinates()})


def side(**where: tuple[Any, At]) -> Side:
    """Make a side of coordinates, each with where it stands."""
    return Side({key: value for key, (value, _) in where.items()}, {key: at for key, (_, at) in where.items()})


class Comparison(Strict):
    """The keys of every kind. Coordinates are the paper's own.

    A side is a cell of the claim's artifacts. Its data set, model and ε select it; where several cells have these, `where`
    says what tells them apart.
    """

    kind: str
    """What is compared."""
    dataset: Name
    """A data set that the paper's cells name."""
    where: Where = Where()
    """Further coordinates of all sides."""

    OWN: ClassVar[tuple[str, ...]] = ()
    """Its keys that say what is measured, and how."""
    AGAINST_PRINT: ClassVar[bool] = False
    """Whether it is held against a number in print, which says nothing of what a scale has in another's place."""
    OF_NETWORK: ClassVar[bool] = False
    """Whether it is of the network alone: any cell that has it will do, and one of its trainings."""

    def reads(self) -> str:
        """Return what is read of a side: STAGE/FILE."""
        return "train/metrics.json"

    def selected(self) -> Iterator[list[Side]]:
        """Yield the sides of each of its comparisons, without `where`."""
        raise NotImplementedError

    def sides(self, also: Where) -> Iterator[list[Side]]:
        """Yield the sides of each of its comparisons. `also`: coordinates that the claim names."""
        for sides in self.selected():
            yield [one.with_(self.where, "where").with_(also, "where") for one in sides]

    def said(self) -> dict[str, Any]:
        """Return what its measure has to know beside the sides; a key that may be left out is, while it has its default."""
        fields = type(self).model_fields
        values = {key: getattr(self, key) for key in self.OWN}
        return {key: value for key, value in values.items() if fields[key].is_required() or value is not None}

    def in_print(self) -> list[tuple[str | None, bool]]:
        """Return what to look up in print of all its sides: the metric, and whether it is the best repetition's."""
        return [(None, False)]

    def compares_itself(self, sides: list[Side]) -> bool:
        """Return whether two sides are one and the same."""
        return len(sides) > 1 and sides[0].where == sides[1].where

    def faults(self, models: Mapping[str, "Network"]) -> Iterator[Fault]:
        """Yield what is wrong with it, whatever cells it selects."""
        yield from ()

    def faults_of(self, cell: "Cell", searches: Mapping[str, "Search"]) -> Iterator[Fault]:
        """Yield why a cell that it selects cannot be measured."""
        yield from ()


class Effect(Comparison):
    """A comparison whose effect is measured, and has an interval."""

    claimed: Claimed
    """What the sentence says of the effect."""
    published: float | None = None
    """The effect in print, where published.yaml has not the numbers that give it."""


class OfAccuracy(Effect):
    """A comparison of accuracies, in percentage points."""

    metric: Literal["top1", "top5"] = "top1"
    """Which accuracy."""
    split: Examples | None = None
    """The examples that it is counted on; null: the test examples."""
    weights: Weights | None = None
    """Of which weights; null: their moving average, where the recipe has one, or else those of the last step."""
    less: Examples | Weights | None = None
    """What accuracy is taken off, so that a gap is compared: that of other examples, or of other weights of the training.
    `split: train, less: validation`; `less: last_step`."""
    spent: Epsilon | None = None
    """The ε at which trainings are read on their way: at the last epoch that had spent at most this; null: at their end."""

    OWN: ClassVar[tuple[str, ...]] = ("metric", "split", "weights", "less", "spent")

    def reads(self) -> str:
        return "train/history.csv" if self.spent else super().reads()

    def in_print(self) -> list[tuple[str | None, bool]]:
        return [(None if self.less or self.spent else self.metric, False)]

    def faults(self, models: Mapping[str, "Network"]) -> Iterator[Fault]:
        yield from super().faults(models)
        if self.spent:
            for key in ("metric", "split", "weights", "less"):
                if (value := getattr(self, key)) in ("top5", "train", "best_epoch"):
                    yield (key,), f"no history has {value}, and spent reads one; leave out one of the two"

    def faults_of(self, cell: "Cell", searches: Mapping[str, "Search"]) -> Iterator[Fault]:
        if not cell.split.validation:
            for key in ("split", "less"):
                if getattr(self, key) == "validation":
                    yield (key,), f"nothing is held out in {cell.group}; allowed there: train, test"
            if self.weights == "best_epoch" and cell.at["protocol"] == "clean":
                yield ("weights",), f"nothing is held out in {cell.group} that a best epoch could be chosen by"
        for key in ("weights", "less"):
            if getattr(self, key) == "averaged" and not cell.recipe.averaging:
                yield (key,), f"the recipe of {cell.group} has no averaging; allowed there: last_step, best_epoch"
        if self.spent and not (cell.at["epsilon"] and self.spent <= cell.at["epsilon"]):
            yield ("spent",), f"the trainings of {cell.group} do not come to this ε"


class OfPair(Effect):
    """One comparison for each ε: the first model against the second."""

    models: Pair
    """The two; the effect is the first's less the second's, or the first's divided by the second's."""
    epsilons: Distinct[Epsilon | None]
    """A comparison for each; null: not private."""

    def selected(self) -> Iterator[list[Side]]:
        for i in range(len(self.epsilons)):
            yield [self._of_model(0, i), self._of_model(1, i)]

    def _of_model(self, model: int, level: int) -> Side:
        epsilon = (self.epsilons[level], ("epsilons", level))
        return side(dataset=(self.dataset, ("dataset",)), model=(self.models[model], ("models", model)), epsilon=epsilon)


class AgainstAnother(OfPair):
    """A comparison of models that may be trained at different ε, or otherwise; of one model, if they are."""

    other_epsilon: Epsilon | Literal["same"] | None = "same"
    """ε of the second model, where it is another; null: not private."""
    against: Where = Where()
    """Other coordinates of the second, where they differ: its recipe, say."""

    def selected(self) -> Iterator[list[Side]]:
        for first, second in super().selected():
            if self.other_epsilon != "same":
                second = Side(second.where | {"epsilon": self.other_epsilon}, second.at | {"epsilon": ("other_epsilon",)})
            yield [first, second.but(self.against, "against")]


class OfOne(Effect):
    """A comparison of one model at one ε."""

    model: Name
    """Whose."""
    epsilon: Epsilon | None
    """Its ε; null: not private."""

    def selected(self) -> Iterator[list[Side]]:
        yield [self._of(self.model, ("model",))]

    def _of(self, model: str, at: At) -> Side:
        dataset, epsilon = (self.dataset, ("dataset",)), (self.epsilon, ("epsilon",))
        return side(dataset=dataset, model=(model, at), epsilon=epsilon)


class Along(Effect):
    """A comparison of cells that differ in one coordinate, in the order of its values."""

    model: Name | None = None
    """Whose; left out where models are compared along."""
    epsilon: Epsilon | None = None
    """Their ε; null: not private; left out where levels of ε are compared along."""
    along: str
    """The coordinate: a key that the cells vary (recipe.batch, or ladder), model, or epsilon."""
    over: Annotated[Distinct[Value], Field(min_length=2)]
    """Its values, in order."""

    @model_validator(mode="after")
    def _names_its_cells(self) -> "Along":
        for key in ("model", "epsilon"):
            if (key in self.model_fields_set) == (self.along == key):
                raise ValueError(f"{key} is missing" if self.along != key else f"leave out {key}: it is compared along")
        return self

    def at_each(self) -> list[Side]:
        """Return the side of each value."""
        fixed = {key: (getattr(self, key), (key,)) for key in ("dataset", "model", "epsilon") if key != self.along}
        return [side(**fixed, **{self.along: (value, ("over", i))}) for i, value in enumerate(self.over)]


class AlongNumbers(Along):
    """Compare cells that differ in a number: a trend is by its doublings, or its powers."""

    @model_validator(mode="after")
    def _has_logarithms(self) -> "AlongNumbers":
        if not positive(self.over):
            raise ValueError("over must be numbers above 0, which can double; of others, compare steps")
        return self


def positive(values: Iterable[Any]) -> bool:
    """Return whether all values are numbers above 0, so that they have logarithms."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) and value > 0 for value in values)
