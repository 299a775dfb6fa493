"""Histograms of the activations around a residual addition, with the weights of one seed."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import FigureOfCells

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec


class Options(FigureOfCells):
    """Histograms of activations."""

    kind: Literal["activations"]
    """What it is."""

    READS: ClassVar = {"histograms": ("activations/histograms.csv",)}
    SEEDS: ClassVar = 1

    def faults(self, models: dict, groups: list) -> Any:
        if others := [name for name, model in models.items() if model.family != "resnet9"]:
            yield "cells", f"activations are shown of models of the family resnet9, not of {', '.join(others)}"


PLACES = ("V_R", "V_F", "V_A", "V_A^S")  # residual path, convolutional path, their sum, the sum after ScaleNorm
NOTE = (
    "$V_R$: residual path, $V_F$: convolutional path, $V_A$: their sum, $V_A^S$: the sum after ScaleNorm; "
    "on test images, the dashed line is the mean"
)


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    from dpvision.reporting.figures import stacked

    return stacked(spec, inputs["histograms"], "activations")


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw one row a cell, one column a place; a column's panels share their axis, to be compared."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import cells_in

    cells = cells_in(frame, labels)[::-1]  # as in the paper: without ScaleNorm on top
    size = (9.4, 1.9 * len(cells) + 0.4)
    figure, axes = plt.subplots(len(cells), len(PLACES), figsize=size, squeeze=False, sharex="col")
    for row, (name, cell, arm) in zip(axes, cells, strict=True):
        for axis, place in zip(row, PLACES, strict=True):
            bars = arm[arm["place"] == place]
            if bars.empty:
                axis.set_axis_off()
                continue
            mean, std = bars["mean"].iloc[0], bars["std"].iloc[0]
            edges = [*bars["left"], bars["right"].iloc[-1]]
            axis.stairs(bars["density"], edges, fill=True, color="#9db4cf", edgecolor="#1f4e8c")
            axis.axvline(mean, color="black", linewidth=1, linestyle="--")
            axis.set_title(f"${place}$: mean {mean:.2f}, std {std:.2f}".replace("-", "\N{MINUS SIGN}"))
            axis.tick_params(labelbottom=True)
            axis.set_yticks([])
        row[0].set_ylabel(f"{name}\n{cell}\nseed {arm['seed'].iloc[0]}")
    return figure
