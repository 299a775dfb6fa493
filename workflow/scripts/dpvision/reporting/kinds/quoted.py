"""A table of numbers that a paper quotes of other works: nothing is trained for it."""

from typing import TYPE_CHECKING, ClassVar, Literal

from dpvision.config.artifacts import Table
from dpvision.config.base import Name

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """Numbers of other works, as the paper quotes them; its cells say beside which of ours they stand, and are not run."""

    kind: Literal["quoted"]
    """What it is."""
    works: dict[Name, str]
    """The works, by what published.yaml calls their models. A display label."""

    READS: ClassVar = {"provenance": ()}


DECIMALS = 1
NOTE = "Accuracies in per cent, as the paper quotes them; nothing of it is run here."


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    from dpvision.reporting.tables import frame_of

    found = frame_of(spec, [])
    return found.assign(model=found["model"].map(lambda name: spec["works"].get(name, name))).drop(columns="n")
