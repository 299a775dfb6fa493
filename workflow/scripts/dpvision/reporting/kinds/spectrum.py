"""The Hessian's spectrum, by seed."""

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import FigureOfCells
from dpvision.files import read_json

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec


class Options(FigureOfCells):
    """The spectrum of the Hessian."""

    kind: Literal["spectrum"]
    """What it is."""

    READS: ClassVar = {"hessians": ("hessian/hessian.json",)}


FLOOR = 1e-10  # of a density on a logarithmic axis; one eigenvalue of millions stands above it
NOTE = "Ritz values of Lanczos, each widened to a Gaussian of 1/150 of the range"


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    import pandas as pd

    from dpvision.reporting.coordinates import coordinates_of

    hessians = {Path(file).parent.name: read_json(file) for file in inputs["hessians"]}
    rows = []
    coordinates = coordinates_of(spec["cells"])
    for cell in spec["cells"]:
        for seed, name in cell["work"]["hessian"].items():
            pairs = zip(hessians[name]["ritz_values"], hessians[name]["ritz_weights"], strict=True)
            about = {key: cell["at"].get(key) for key in coordinates} | {"seed": int(seed)}
            rows += [about | {"ritz_value": v, "weight": w} for v, w in pairs]
    return pd.DataFrame(rows)


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw the spectral density, each Ritz value widened to a Gaussian; logarithmic, since most of it is near zero."""
    import matplotlib.pyplot as plt
    import numpy as np

    from dpvision.curvature.spectrum import density
    from dpvision.reporting.figures import ARMS, add_legend_below, cells_in

    cells = cells_in(frame, labels)
    low, high = frame["ritz_value"].min(), frame["ritz_value"].max()
    width = (high - low) / 150
    grid = np.linspace(low - 4 * width, high + 4 * width, 1200)
    size = (6.2, 1.7 * len(cells) + 0.6)
    figure, axes = plt.subplots(len(cells), 1, figsize=size, squeeze=False, sharex=True, sharey=True)
    for axis, (name, cell, arm) in zip(axes[:, 0], cells, strict=True):
        for (seed, one), style in zip(arm.groupby("seed", sort=False), cycle(ARMS), strict=False):
            heights = density(one["ritz_value"], one["weight"], grid, width)
            axis.plot(grid, np.maximum(heights, FLOOR), label=f"seed {seed}", linewidth=1.2, **style)
        axis.set(yscale="log", ylim=(FLOOR, None), ylabel="density", title=f"{name}, {cell}")
        axis.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    add_legend_below(figure)
    axes[-1, 0].set_xlabel("eigenvalue")
    return figure
