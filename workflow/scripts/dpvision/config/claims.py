"""config/papers/NAME/claims.yaml."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from dpvision.config.base import Distinct, Epsilon, Name, Positive, Strict
from dpvision.config.cells import Where

Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]
Metric = Literal["top1", "top5"]
Place = Literal["V_R", "V_F", "V_A", "V_A^S"]


class Claimed(Strict):
    """Where the effect lies if the sentence is true: above a number, below one, or between both."""

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


class Side(NamedTuple):
    """One side of a comparison: the coordinates that select its cell, and where each of them stands."""

    where: dict[str, Any]
    at: dict[str, At]

    def with_(self, also: Where) -> "Side":
        """Return it with further coordinates; those that it names itself go before."""
        return Side(also.coordinates() | self.where, {key: ("where", key) for key in also.coordinates()} | self.at)


def _side(**where: tuple[Any, At]) -> Side:
    return Side({key: value for key, (value, _) in where.items()}, {key: at for key, (_, at) in where.items()})


class Comparison(Strict):
    """What every kind has. Coordinates are the paper's own; what a scale puts in their place is compared there.

    A side is a cell of the claim's artifacts. Its data set, model and ε select it; where several cells have these, `where`
    says what tells them apart.
    """

    kind: str
    """What is compared."""
    dataset: Name
    """A data set that the paper's cells name."""
    where: Where = Where()
    """Further coordinates of all sides."""

    READS: ClassVar[str] = "train/metrics.json"
    """What is read of a side: STAGE/FILE."""
    OWN: ClassVar[tuple[str, ...]] = ("metric",)
    """Its keys that say what is read, and how."""

    def selected(self) -> Iterator[list[Side]]:
        """Yield the sides of each of its comparisons, without `where`."""
        raise NotImplementedError

    def sides(self, also: Where) -> Iterator[list[Side]]:
        """Yield the sides of each of its comparisons: one for each ε. `also`: coordinates that the claim names."""
        for sides in self.selected():
            yield [side.with_(self.where).with_(also) for side in sides]


class Effect(Comparison):
    """A comparison whose effect is measured, and has an interval."""

    claimed: Claimed
    """What the sentence says of the effect."""
    published: float | None = None
    """The effect in print, where published.yaml has not the numbers that give it."""


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
        return _side(dataset=(self.dataset, ("dataset",)), model=(self.models[model], ("models", model)), epsilon=epsilon)


class AgainstAnother(OfPair):
    """Of models that may be trained at different ε, or otherwise; of one model, if they are."""

    other_epsilon: Epsilon | Literal["same"] = "same"
    """ε of the second model, where it is another."""
    against: Where = Where()
    """Other coordinates of the second, where they differ: its recipe, say."""

    def selected(self) -> Iterator[list[Side]]:
        for first, second in super().selected():
            if self.other_epsilon != "same":
                second = Side(second.where | {"epsilon": self.other_epsilon}, second.at | {"epsilon": ("other_epsilon",)})
            other = self.against.coordinates()
            yield [first, Side(second.where | other, second.at | {key: ("against", key) for key in other})]


class Difference(AgainstAnother):
    """Accuracy of one model less that of another, in percentage points."""

    kind: Literal["difference"]
    """What is compared."""
    metric: Metric = "top1"
    """Which accuracy, of the test examples."""


class Baseline(Strict):
    """The difference that another is compared to."""

    dataset: Name
    """A data set that the paper's cells name."""
    models: Pair
    """The two: the first's accuracy less the second's."""
    epsilon: Epsilon | None
    """Of both; null: not private."""


class Interaction(OfPair):
    """A difference of accuracies less another one, in percentage points."""

    kind: Literal["interaction"]
    """What is compared."""
    metric: Metric = "top1"
    """Which accuracy, of the test examples."""
    minus: Baseline
    """The other difference."""

    def selected(self) -> Iterator[list[Side]]:
        minus = self.minus
        dataset, epsilon = (minus.dataset, ("minus", "dataset")), (minus.epsilon, ("minus", "epsilon"))
        others = [
            _side(dataset=dataset, model=(model, ("minus", "models", i)), epsilon=epsilon)
            for i, model in enumerate(minus.models)
        ]
        for sides in super().selected():
            yield sides + others


class BestOf(OfPair):
    """The difference between the best of some seeds less the difference between their medians, in percentage points."""

    kind: Literal["best_of"]
    """What is compared."""
    metric: Metric = "top1"
    """Which accuracy, of the test examples."""
    seeds: Annotated[int, Field(gt=2)] = 3
    """How many one best is chosen from. One such group is one observation: n counts groups."""

    OWN: ClassVar = ("metric", "seeds")


class OfOne(Effect):
    """Of one model at one ε."""

    model: Name
    """Whose."""
    epsilon: Epsilon | None
    """Its ε; null: not private."""

    def selected(self) -> Iterator[list[Side]]:
        yield [self._of(self.model, ("model",))]

    def _of(self, model: str, at: At) -> Side:
        dataset, epsilon = (self.dataset, ("dataset",)), (self.epsilon, ("epsilon",))
        return _side(dataset=dataset, model=(model, at), epsilon=epsilon)


class Level(OfOne):
    """Accuracy of a model less a number in print, in percentage points."""

    kind: Literal["level"]
    """What is compared."""
    metric: Metric = "top1"
    """Which accuracy, of the test examples."""
    than: float
    """The number, in per cent."""

    OWN: ClassVar = ("metric", "than")


class Curvature(OfPair):
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

    READS: ClassVar = "hessian/hessian.json"
    OWN: ClassVar = ("quantity",)


class Elsewhere(Strict):
    """Activations that others are compared to."""

    model: Name
    """Whose."""
    place: Place
    """Where, around the residual addition."""


class Moment(OfOne):
    """How a model's activations are distributed, as figure 2 shows them; or how differently from those of another place."""

    kind: Literal["moment"]
    """What is compared."""
    place: Place
    """Where: residual path, convolutional path, their sum, the sum after ScaleNorm."""
    moment: Literal["mean", "std", "positive", "skewness", "asymmetry"]
    """`positive`: the share above zero; `asymmetry`: the skewness without its sign. Those three are of the histogram, which
    leaves out two thousandths."""
    minus: Elsewhere | None = None
    """The other place; null: the moment itself is what is claimed."""

    READS: ClassVar = "activations/histograms.csv"
    OWN: ClassVar = ("moment",)

    def selected(self) -> Iterator[list[Side]]:
        for sides in super().selected():
            yield sides + ([self._of(self.minus.model, ("minus", "model"))] if self.minus else [])

    def places(self) -> list[tuple[At, str, str]]:
        """Return of each side where its place stands, its model, and the place."""
        own: tuple[At, str, str] = (("place",), self.model, self.place)
        return [own, *([(("minus", "place"), self.minus.model, self.minus.place)] if self.minus else [])]


class Times(AgainstAnother):
    """Seconds that one model's training took divided by those of another's, each on the machine that it ran on."""

    kind: Literal["times"]
    """What is compared."""

    READS: ClassVar = "train/provenance.json"
    OWN: ClassVar = ()


class Reach(OfPair):
    """When one model's test accuracy first reached the second's at the end, less when the second's own first did."""

    kind: Literal["reach"]
    """What is compared."""
    unit: Literal["epoch", "epsilon"] = "epoch"
    """What is counted until then: epochs, or the ε spent. Who never gets there is counted with the last."""

    READS: ClassVar = "train/history.csv"
    OWN: ClassVar = ("unit",)


class Parameters(Comparison):
    """How many parameters a model has, exactly: of its trained weights, where the scale has the paper's own network.

    At any ε, trained by any recipe: the network is the same.
    """

    kind: Literal["parameters"]
    """What is compared."""
    model: Name
    """Which model."""
    count: Positive
    """How many there are, says the sentence."""

    READS: ClassVar = "train/weights.safetensors"
    OWN: ClassVar = ("count",)

    def selected(self) -> Iterator[list[Side]]:
        yield [_side(dataset=(self.dataset, ("dataset",)), model=(self.model, ("model",)))]


Compared = Annotated[
    Difference | Interaction | BestOf | Level | Curvature | Moment | Times | Reach | Parameters, Field(discriminator="kind")
]


class Claim(Strict):
    """A sentence of the paper that its artifacts decide."""

    text: str
    """The sentence, or what it says, shortly."""
    section: str
    """Where it stands."""
    artifacts: list[Name] = []
    """The tables and figures that decide it, among whose cells its comparisons select; none: among all of the paper's."""
    where: Where = Where()
    """Further coordinates of all its comparisons' sides."""
    reading: str | None = None
    """What was decided here to make it measurable, where the sentence leaves that open."""
    combined: Literal["all", "readings"] = "all"
    """`all`: it holds if every comparison does, and not if one does not. `readings`: the comparisons are readings of one
    statement; it holds if all of them agree that it does, and not if all agree that it does not."""
    comparisons: Annotated[list[Compared], Field(min_length=1)]
    """What decides it."""
