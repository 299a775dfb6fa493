"""Accuracy at several ε of one training: read from its history, as every step's weights may be shown at what it spent."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import FigureOfCells
from dpvision.config.base import Distinct, Epsilon
from dpvision.config.metrics import Metric

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec


class Options(FigureOfCells):
    """Accuracy at the last epoch that had spent at most each ε, of trainings that go on to a large one."""

    kind: Literal["by_epsilon"]
    """What it is."""
    levels: Distinct[Epsilon]
    """The ε at which trainings are read."""
    lines: str = "model.depth"
    """The coordinate that tells lines apart."""
    panels: str = "recipe.augmentation.views"
    """The coordinate that tells panels apart."""
    metric: Metric
    """What is drawn: on the held-out or the test examples, which histories have."""

    COORDINATES: ClassVar = {"lines": (), "panels": ()}
    READS: ClassVar = {"histories": ("train/history.csv",)}

    def faults(self, models: dict, groups: list) -> Any:
        if self.metric.split == "train" or self.metric.name == "minutes" or self.metric.weights == "best_epoch":
            yield "metric", "no history has it; expected is an accuracy of the last step or the average, validation or test"


NOTE = "at the last epoch that had spent at most this ε; mean and standard error over the seeds"


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each cell and ε that all its trainings reached."""
    import pandas as pd

    from dpvision.reporting.measures import at_epsilon
    from dpvision.reporting.records import Records
    from dpvision.reporting.summary import summarise

    records, metric = Records(inputs), spec["metric"]
    column = f"{'averaged_' if metric['weights'] == 'averaged' else ''}{metric['split']}_{metric['name']}"
    rows = []
    for cell in spec["cells"]:
        histories = [records.rows("history.csv", run) or [] for run in cell["work"]["train"].values()]
        for level in spec["levels"]:
            values = [100 * found for history in histories if (found := at_epsilon(history, column, level)) is not None]
            ours = summarise(values, "mean", "standard_error")
            about = {"panel_is": spec["panels"], "line_is": spec["lines"], "level": level, **metric}
            about |= {"panel": cell["at"].get(spec["panels"]) or 0, "line": cell["at"][spec["lines"]]}
            about |= {"n": ours.n, "statistic": ours.how, "value": ours.value, "spread": ours.spread}
            rows.append(about | cell["at"])
    return pd.DataFrame(rows)


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw a panel for each value of one coordinate, a line for each value of the other, over ε."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import add_legend_below
    from dpvision.reporting.points import called, looks, metric_name, set_axis

    panels = list(frame.groupby("panel"))
    # One legend explains all panels, so that a line looks the same in each.
    look_of = dict(zip(sorted(frame["line"].unique()), looks(), strict=False))
    figure, axes = plt.subplots(1, len(panels), figsize=(1.2 + 3.6 * len(panels), 3.6), squeeze=False, sharey=True)
    for axis, (panel, part) in zip(axes[0], panels, strict=True):
        for line, points in part.groupby("line"):
            bars = {} if points["spread"].isna().all() else {"yerr": points["spread"]}
            name = f"{called(points['line_is'].iloc[0])} {line:g}"
            axis.errorbar(points["level"], points["value"], **bars, capsize=2, markersize=4, label=name, **look_of[line])
        set_axis(axis, "x", part["level"])
        said = "none" if panel == 0 else f"{panel:g}"
        axis.set(xlabel="ε spent", title=f"{called(part['panel_is'].iloc[0])}: {said}")
    axes[0, 0].set_ylabel(f"accuracy (%)\n{metric_name(frame.iloc[0].to_dict())}")
    add_legend_below(figure)
    return figure
