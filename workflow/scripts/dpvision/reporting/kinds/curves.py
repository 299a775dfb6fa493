"""Accuracy by epoch."""

from itertools import cycle
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import FigureOfCells
from dpvision.config.metrics import NO_AVERAGE, NOTHING_HELD_OUT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec

Metric = Literal[
    "test_top1",
    "test_top5",
    "validation_top1",
    "validation_top5",
    "averaged_test_top1",
    "averaged_test_top5",
    "averaged_validation_top1",
    "averaged_validation_top5",
]


class Options(FigureOfCells):
    """Accuracy by epoch."""

    kind: Literal["curves"]
    """What it is."""
    metric: Metric = "test_top1"
    """The column of history.csv that is drawn; averaged_: of the moving average of the weights at the end of the epoch."""

    READS: ClassVar = {"histories": ("train/history.csv",)}


NOTE = "line: median over the seeds, band: their range"


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    from dpvision.reporting.coordinates import coordinates_of
    from dpvision.reporting.figures import stacked

    frame = stacked(spec, inputs["histories"], "train")
    metric = spec.get("metric", "test_top1")
    drawn = ["validation_top1", metric] if metric == "test_top1" else [metric]
    frame = frame.reindex(columns=[*coordinates_of(spec["cells"]), "seed", "epoch", "step", *drawn])
    if "validation" in metric:  # in the authors' protocol it is the test split's number that stands there
        frame[metric] = frame[metric].where(frame["protocol"] != "paper")
    return frame


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw the median over the seeds of the last column, and their range as a band; a panel a data set and ε."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import ARMS, add_legend_below, cells_in

    metric = frame.columns[-1]
    panels: dict[str, list] = {}
    for name, cell, arm in cells_in(frame, labels):
        panels.setdefault(cell, []).append((name, arm))
    # One legend explains all panels, so that an arm looks the same in each.
    names = dict.fromkeys(name for arms in panels.values() for name, _ in arms)
    looks = dict(zip(names, cycle(ARMS), strict=False))
    figure, axes = plt.subplots(1, len(panels), figsize=(1.2 + 3.8 * len(panels), 3.0), squeeze=False)
    for axis, (cell, arms) in zip(axes[0], panels.items(), strict=True):
        for name, arm in arms:
            style = looks[name]
            seeds = (100 * arm.pivot(index="epoch", columns="seed", values=metric)).agg(["median", "min", "max"], axis=1)
            axis.plot(seeds.index, seeds["median"], label=f"{name} ({_count(arm, metric)})", **style)
            axis.fill_between(seeds.index, seeds["min"], seeds["max"], color=style["color"], alpha=0.15, linewidth=0)
        axis.set(title=cell, xlabel="epoch", ylabel=_called(metric))
    add_legend_below(figure)
    return figure


def _count(arm: "pd.DataFrame", metric: str) -> str:
    """Say of how many seeds an arm is, or why there is nothing to draw."""
    if count := arm.loc[arm[metric].notna(), "seed"].nunique():
        return f"n = {count}"
    reasons = {NO_AVERAGE: metric.startswith("averaged_"), NOTHING_HELD_OUT: "validation" in metric}
    return " or ".join(reason for reason, may_be in reasons.items() if may_be)


def _called(metric: str) -> str:
    """Call a column of the history as people do."""
    split, name = metric.removeprefix("averaged_").split("_")
    accuracy = "top-5 accuracy" if name == "top5" else "accuracy"
    return f"{split} {accuracy} (%)" + (",\naveraged weights" if metric.startswith("averaged_") else "")
