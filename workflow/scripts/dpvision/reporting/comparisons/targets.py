"""How much better one target of an attack is than others, by what phase one found."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from dpvision.config.comparisons import Fault, OfOne
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, observed_within, work_of
from dpvision.reporting.records import Records

if TYPE_CHECKING:
    from dpvision.models.options import Network

IMAGES = {"blank": "blank", "noise": "uniform noise", "mislabelled": "a mislabelled example"}


class Options(OfOne):
    """The largest total variation that phase one of an attack finds with one image as its target, less that with others.

    It is not run where nothing of the kind was tried.
    """

    kind: Literal["targets"]
    """What is compared."""
    image: Literal["blank", "noise"]
    """The image."""
    other: Literal["blank", "noise", "mislabelled"]
    """What it is compared to: `mislabelled`, the best of the test examples with another label."""

    OWN: ClassVar = ("image", "other")

    def reads(self) -> str:
        return "attack/tried.csv"

    def faults(self, models: Mapping[str, "Network"]) -> Iterator[Fault]:
        if self.other == self.image:
            yield ("other",), f"compares {self.image} with itself"


UNIT = "variation"


def in_print(comparison: Spec, value: float) -> float:
    return value


def _image(target: str) -> str:
    """Return what a target is: blank as 9, noise as 9, or a test example of a class that is said to be another."""
    image = target.partition(" ")[0]
    return image if image in IMAGES else "mislabelled"


def _lead(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    rows = records.rows("tried.csv", work_of(comparison, side)[seed]) or []
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["total_variation"]:
            found.setdefault(_image(row["target"]), []).append(float(row["total_variation"]))
    image, other = comparison["image"], comparison["other"]
    return max(found[image]) - max(found[other]) if {image, other} <= found.keys() else None


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, _lead, in_print)


def described(comparison: Spec, named: Named) -> str:
    tried = comparison["sides"][0].get("attacked", {}).get("targets", [])
    others = [target for target in tried if _image(target) == comparison["other"]]
    other = f"best of {', '.join(others)}" if len(others) > 1 else (others or [IMAGES[comparison["other"]]])[0]
    return f"total variation, {IMAGES[comparison['image']]} − {other}, {named.sides[0]}{named.where}"
