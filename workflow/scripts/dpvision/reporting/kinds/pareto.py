"""Accuracy by ε: the best trial and trainings of each cell, the printed front, and the points of other works."""

from itertools import cycle
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import FigureOfCells
from dpvision.config.base import Name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec


class Options(FigureOfCells):
    """Accuracy by ε, with the numbers of other works."""

    kind: Literal["pareto"]
    """What it is."""
    published: Name | None = None
    """The artifact whose printed numbers stand beside ours; its own where absent."""
    works: dict[Name, str]
    """Other works, by what published.yaml calls their models. A display label."""

    READS: ClassVar = {"metrics": ("train/metrics.json",), "trials": ("search/trials.csv",)}


NOTE = (
    "best trial: by its accuracy on held-out examples; test: trainings with what the search found, the mean and range over "
    "the seeds; points of other works: as quoted"
)
BEST, TEST, PRINTED, OTHER = "best trial, held-out examples", "test examples", "the authors, held-out examples", "other work"


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each point: ours, then the authors' and those of other works."""
    import pandas as pd

    from dpvision.reporting.kinds.tuned import best_trials
    from dpvision.reporting.tables import by_folder

    metrics = by_folder(inputs["metrics"])
    rows = []
    for cell in spec["cells"]:
        about = {"dataset": cell["at"]["dataset"], "model": cell["at"]["model"], "epsilon": cell["at"]["epsilon"]}
        if (best := best_trials(cell, inputs["trials"])) is not None:
            rows.append(about | {"series": BEST, "accuracy": best.iloc[0], "n": len(best)})
        values = [100 * metrics[run]["last_step"]["test"]["top1"] for run in cell["work"]["train"].values()]
        mean = sum(values) / len(values)
        rows.append(about | {"series": TEST, "accuracy": mean, "low": min(values), "high": max(values), "n": len(values)})
    datasets = {cell["at"]["dataset"] for cell in spec["cells"]}
    for row in (row for row in spec["published"] if row["at"].get("dataset") in (None, *datasets)):
        model = row["at"]["model"]
        name = spec["works"].get(model, model)
        rows.append(
            row["at"] | {"model": name, "series": OTHER if model in spec["works"] else PRINTED, "accuracy": row["value"]}
        )
    columns = ["dataset", "model", "epsilon", "series", "accuracy", "low", "high", "n"]
    return pd.DataFrame(rows).reindex(columns=columns)


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw our points and the authors' as lines over ε; other works as lines, too, or as points with their names."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import ARMS, add_legend_below
    from dpvision.reporting.points import set_axis

    figure, axis = plt.subplots(figsize=(6.4, 4.4))
    fronts, others = frame[frame["series"] != OTHER], frame[frame["series"] == OTHER]
    parts = fronts.groupby(["model", "series"], sort=False)
    for ((model, series), part), style, marker in zip(parts, cycle(ARMS), cycle("os^D"), strict=False):
        part = part.sort_values("epsilon")
        name = labels["models"].get(str(model), str(model))
        axis.plot(part["epsilon"], part["accuracy"], marker=marker, label=f"{name}, {series}", **style)
        axis.vlines(part["epsilon"], part["low"], part["high"], color=style["color"], linewidth=1)
    hollow = cycle("*PX")
    for model, part in others.groupby("model", sort=False):
        part = part.sort_values("epsilon")
        x, y = part["epsilon"], part["accuracy"]
        if len(part) > 1:
            axis.plot(x, y, color="black", linestyle=":", marker=next(hollow), fillstyle="none", label=str(model))
        else:
            axis.plot(x, y, "k*", markersize=8)
            axis.annotate(str(model), (x.iloc[0], y.iloc[0]), xytext=(4, 3), textcoords="offset points", fontsize=7)
    set_axis(axis, "x", frame["epsilon"])
    axis.set(xlabel="ε", ylabel="accuracy (%)")
    add_legend_below(figure)
    return figure
