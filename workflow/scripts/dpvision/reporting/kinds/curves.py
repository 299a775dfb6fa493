"""Test accuracy by epoch."""

from itertools import cycle
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import FigureOfCells

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec


class Options(FigureOfCells):
    """Accuracy by epoch."""

    kind: Literal["curves"]
    """What it is."""

    READS: ClassVar = {"histories": ("train/history.csv",)}


NOTE = "line: median over the seeds, band: their range"


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    from dpvision.reporting.figures import stacked

    frame = stacked(spec, inputs["histories"], "train")
    return frame[[*spec["cells"][0]["at"], "seed", "epoch", "step", "validation_top1", "test_top1"]]


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw the median over the seeds, and their range as a band; a panel a data set and ε."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import ARMS, cells_in

    panels: dict[str, list] = {}
    for name, cell, arm in cells_in(frame, labels):
        panels.setdefault(cell, []).append((name, arm))
    figure, axes = plt.subplots(1, len(panels), figsize=(1.2 + 3.8 * len(panels), 3.0), squeeze=False)
    for axis, (cell, arms) in zip(axes[0], panels.items(), strict=True):
        for (name, arm), style in zip(arms, cycle(ARMS), strict=False):
            seeds = (100 * arm.pivot(index="epoch", columns="seed", values="test_top1")).agg(["median", "min", "max"], axis=1)
            axis.plot(seeds.index, seeds["median"], label=f"{name} (n = {arm['seed'].nunique()})", **style)
            axis.fill_between(seeds.index, seeds["min"], seeds["max"], color=style["color"], alpha=0.15, linewidth=0)
        axis.set(title=cell, xlabel="epoch", ylabel="test accuracy (%)")
        axis.legend(loc="lower right")
    return figure
