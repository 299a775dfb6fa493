"""A metric by two things that are swept, as curves and as a map: the clipping norm and the learning rate, say."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import FigureOfCells
from dpvision.config.metrics import Metric

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec


class Options(FigureOfCells):
    """A metric by two coordinates: curves over the first, a line for each value of the second, and a map of both."""

    kind: Literal["heatmap"]
    """What it is."""
    x: str
    """The coordinate along the curves, and from left to right."""
    y: str
    """The coordinate that tells curves apart, and from below to above."""
    metric: Metric
    """What is drawn, the mean over the seeds."""

    COORDINATES: ClassVar = {"x": (), "y": ()}
    READS: ClassVar = {"metrics": ("train/metrics.json",)}


NOTE = "mean over the seeds; bars: standard error; black frame: the best of a row; white: not there"


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each cell."""
    import pandas as pd

    from dpvision.reporting.points import metric_of, read_by_folder
    from dpvision.reporting.summary import summarise

    metrics, metric = read_by_folder(inputs["metrics"]), spec["metric"]
    rows = []
    for cell in spec["cells"]:
        ours = summarise([metric_of(metrics[run], metric) for run in cell["work"]["train"].values()], "mean", "standard_error")
        about = {"x_is": spec["x"], "y_is": spec["y"], "x": cell["at"][spec["x"]], "y": cell["at"][spec["y"]], **metric}
        rows.append(about | {"n": ours.n, "statistic": ours.how, "value": ours.value, "spread": ours.spread} | cell["at"])
    return pd.DataFrame(rows)


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw curves on the left and the map, with its numbers, on the right."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import add_legend_below
    from dpvision.reporting.points import called, looks, metric_name, set_axis

    x_is, y_is = frame["x_is"].iloc[0], frame["y_is"].iloc[0]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8))
    for (y, line), look in zip(frame.groupby("y"), looks(), strict=False):
        line = line.sort_values("x")
        bars = {} if line["spread"].isna().all() else {"yerr": line["spread"]}
        left.errorbar(line["x"], line["value"], **bars, capsize=2, markersize=4, label=f"{called(y_is)} {y:g}", **look)
    set_axis(left, "x", frame["x"])
    left.set(xlabel=called(x_is), ylabel=f"accuracy (%)\n{metric_name(frame.iloc[0].to_dict())}")
    add_legend_below(figure)
    _draw_map(right, frame.pivot_table(index="y", columns="x", values="value"))
    right.set(xlabel=called(x_is), ylabel=called(y_is))
    return figure


def _draw_map(axis: Any, values: "pd.DataFrame") -> None:
    """Draw a field for each value, darker where it is higher, with its number; the best of each row framed."""
    import pandas as pd
    from matplotlib.patches import Rectangle

    low, high = values.min().min(), values.max().max()
    room = 0.3 * (high - low) or 1  # so that no field is white, as one that is not there, or as black as a frame
    axis.imshow(values, origin="lower", aspect="auto", cmap="Greys", vmin=low - room, vmax=high + 2 * room)
    for row, (_, line) in enumerate(values.iterrows()):
        for column, value in enumerate(line):
            if not pd.isna(value):
                axis.text(column, row, f"{value:.1f}", ha="center", va="center", color="black", fontsize=7)
        best = line.reset_index(drop=True).idxmax()
        axis.add_patch(Rectangle((best - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="black", linewidth=2))
    axis.set_xticks(range(values.shape[1]), [f"{value:g}" for value in values.columns])
    axis.set_yticks(range(values.shape[0]), [f"{value:g}" for value in values.index])
    axis.grid(visible=False)
