"""How a model's activations are distributed, or how differently from those of another place."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.base import Name, Strict
from dpvision.config.comparisons import At, Fault, OfOne, Side
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, less, observed_within, work_of
from dpvision.reporting.records import Records

if TYPE_CHECKING:
    from dpvision.models.options import Network

Place = Literal["V_R", "V_F", "V_A", "V_A^S"]


class Elsewhere(Strict):
    """Activations that others are compared to."""

    model: Name
    """Whose."""
    place: Place
    """Where, around the residual addition."""


class Options(OfOne):
    """A moment of a model's activations, as figure 2 shows them; or how it differs from that of another place."""

    kind: Literal["moment"]
    """What is compared."""
    place: Place
    """Where: residual path, convolutional path, their sum, the sum after ScaleNorm."""
    moment: Literal["mean", "std", "positive", "skewness", "asymmetry"]
    """`positive`: the share above zero; `asymmetry`: the skewness without its sign. Those three are of the histogram, which
    leaves out two thousandths."""
    minus: Elsewhere | None = None
    """The other place; null: the moment itself is what is claimed."""

    OWN: ClassVar = ("moment",)

    def reads(self) -> str:
        return "activations/histograms.csv"

    def selected(self) -> Iterator[list[Side]]:
        for sides in super().selected():
            yield sides + ([self._of(self.minus.model, ("minus", "model"))] if self.minus else [])

    def said(self) -> dict[str, Any]:
        return super().said() | {"places": [place for _, _, place in self._places()]}

    def compares_itself(self, sides: list[Side]) -> bool:
        return super().compares_itself(sides) and len({place for _, _, place in self._places()}) == 1

    def faults(self, models: Mapping[str, "Network"]) -> Iterator[Fault]:
        for at, model, place in self._places():
            if place == "V_A^S" and model in models and not getattr(models[model], "scale_norm", 0):
                yield at, f"{model} has no ScaleNorm to look behind; allowed: V_R, V_F, V_A"

    def _places(self) -> list[tuple[At, str, str]]:
        """Return of each side where its place stands, its model, and the place."""
        own: tuple[At, str, str] = (("place",), self.model, self.place)
        return [own, *([(("minus", "place"), self.minus.model, self.minus.place)] if self.minus else [])]


UNIT = "activation"
CALLED = {
    "V_R": "residual path",
    "V_F": "convolutional path",
    "V_A": "sum of both paths",
    "V_A^S": "sum after ScaleNorm",
    "mean": "mean activation",
    "std": "standard deviation of activations",
    "positive": "share of activations above zero",
    "skewness": "skewness of activations",
    "asymmetry": "skewness of activations without its sign",
}
in_print = less


def _moment(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    rows = records.rows("histograms.csv", work_of(comparison, side)[seed])
    if rows is None:
        return None
    here = [row for row in rows if row["place"] == comparison["places"][side]]
    bars = [{key: float(row[key]) for key in row if key != "place"} for row in here]
    return MOMENTS[comparison["moment"]](bars)


def _skewness(bars: list[dict[str, float]]) -> float:
    """Return the skewness as if all of a bar lay in its middle."""
    shares = [bar["density"] * (bar["right"] - bar["left"]) for bar in bars]
    middles = [(bar["left"] + bar["right"]) / 2 for bar in bars]
    mean = sum(p * x for p, x in zip(shares, middles, strict=True)) / sum(shares)
    second, third = (sum(p * (x - mean) ** k for p, x in zip(shares, middles, strict=True)) / sum(shares) for k in (2, 3))
    return third / second**1.5


def _positive(bars: list[dict[str, float]]) -> float:
    """Return the share above zero, of the bar that zero lies in as well."""
    everything = sum(bar["density"] * (bar["right"] - bar["left"]) for bar in bars)
    return sum(bar["density"] * max(0.0, bar["right"] - max(0.0, bar["left"])) for bar in bars) / everything


MOMENTS: dict[str, Callable[[list[dict[str, float]]], float]] = {
    "mean": lambda bars: bars[0]["mean"],
    "std": lambda bars: bars[0]["std"],
    "positive": _positive,
    "skewness": _skewness,
    "asymmetry": lambda bars: abs(_skewness(bars)),
}


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, _moment, less)


def described(comparison: Spec, named: Named) -> str:
    places = [f"{CALLED[place]} of {name}" for place, name in zip(comparison["places"], named.sides, strict=True)]
    return f"{CALLED[comparison['moment']]}, {' − '.join(places)}{named.where}"
