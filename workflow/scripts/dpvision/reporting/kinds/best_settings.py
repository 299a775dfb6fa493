"""What tuning found by what is swept: the best steps, epochs and learning rate, read off the trials of the searches."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import FigureOfCells
from dpvision.reporting.kinds import search

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec


class Options(FigureOfCells):
    """The steps, the epochs and the learning rate of each search's best trial; it needs no training beyond the trials."""

    kind: Literal["best_settings"]
    """What it is."""
    x: str = "recipe.batch"
    """The coordinate that is swept."""
    lines: str = "model"
    """The coordinate that tells lines apart."""

    COORDINATES: ClassVar = {"x": (), "lines": ()}
    READS: ClassVar = {"studies": ("search/best.json",), "trials": ("search/trials.csv",)}

    def faults(self, models: dict, groups: list) -> Any:
        yield from search.of_searches(models, groups)


NOTE = "of each search's best trial; hollow: at an end of its grid; dotted: in proportion to the batch (steps: to its inverse)"
GUIDES = {"steps": (-1, 0), "epochs": (1, -1), "learning_rate": (1, 0)}  # power of the batch, and through which point
PANELS = {"steps": "best number of steps", "epochs": "best number of epochs", "learning_rate": "best learning rate"}


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each search."""
    import pandas as pd

    from dpvision.reporting.points import best_trial, by_folder, edges_of, read_by_folder, studies_of

    studies, tables = read_by_folder(inputs["studies"]), by_folder(inputs["trials"])
    rows = []
    for cell in spec["cells"]:
        for study in studies_of(cell):
            best = best_trial(pd.read_csv(tables[study]), studies[study]["values"])
            rate = best.get("recipe.optimizer.learning_rate", cell["at"].get("recipe.optimizer.learning_rate"))
            found = {"steps": best["steps"], "epochs": best["steps"] * best["sampling_rate"], "learning_rate": rate}
            found |= {"sigma": best["sigma"], "edges": edges_of(cell, studies), "trials": studies[study]["trials"]}
            place = {"x_is": spec["x"], "x": cell["at"].get(spec["x"]) or 0, "line_is": spec["lines"]}
            rows.append(place | {"line": cell["at"].get(spec["lines"])} | found | cell["at"])
    return pd.DataFrame(rows)


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw a panel for each setting, both axes by powers of two."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import add_legend_below
    from dpvision.reporting.points import called, line_name, looks, on_axis, set_axis

    figure, axes = plt.subplots(1, 3, figsize=(10.8, 3.4))
    for axis, (column, title) in zip(axes, PANELS.items(), strict=True):
        for (line, points), look in zip(frame.groupby("line", sort=False), looks(), strict=False):
            points = points.dropna(subset=[column]).sort_values("x")
            if points.empty:
                continue
            x, values = on_axis(points["x"], frame["x"]), points[column].astype(float)
            axis.plot(
                x, values, label=line_name({points["line_is"].iloc[0]: line}, [points["line_is"].iloc[0]], labels), **look
            )
            edge = _at_edge(points, column)
            axis.plot(x[edge], values[edge], look["marker"], color="white", markeredgecolor=look["color"], zorder=3)
            if len(points) > 1 and (points["x"] > 0).all():
                way, at = GUIDES[column]
                guide = values.iloc[at] * (x / x.iloc[at]) ** way
                axis.plot(x, guide, color="0.6", linestyle=":", linewidth=1, zorder=0)
        top = frame[column].astype(float).max()
        set_axis(axis, "x", frame["x"])
        axis.set_yscale("log", base=2)
        axis.set_ylim(frame[column].astype(float).min() / 2, 2 * top)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set(xlabel=called(frame["x_is"].iloc[0]), title=title)
    add_legend_below(figure)
    return figure


def _at_edge(points: "pd.DataFrame", column: str) -> "pd.Series":
    """Say of each point whether the setting that it shows is at an end of its grid."""
    key = "learning_rate =" if column == "learning_rate" else "steps ="
    return points["edges"].str.contains(key, regex=False)
