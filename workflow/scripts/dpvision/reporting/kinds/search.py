"""A search's trials: accuracy by value of what was searched, and the history."""

from itertools import cycle
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import FigureOfCells

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec


class Options(FigureOfCells):
    """The trials of the searches that chose for its cells."""

    kind: Literal["search"]
    """What it is."""

    READS: ClassVar = {"trials": ("search/trials.csv",)}

    def faults(self, models: dict, groups: list) -> Any:
        yield from of_searches(models, groups)


def of_searches(models: dict, groups: list) -> "Iterator[tuple[str, str]]":
    """Yield what is wrong where no search finds anything for the cells that are shown."""
    if models and not any(model.searched() for model in models.values()) and not any(cells.search for cells in groups):
        yield "cells", "none of these leaves anything to a search"


MANY = 8  # values that have a place each
WIDE = 30  # times the least number is the greatest on an axis by orders of magnitude
NOTE = "accuracy on held-out training examples at the last epoch trained"


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Read the trials of each search once, with the coordinates of the last cell that it is of."""
    from dpvision.reporting.figures import stacked

    cells = {study: cell for cell in spec["cells"] for study in cell["work"].get("search", {}).values()}
    return stacked({**spec, "cells": list(cells.values())}, inputs["trials"], "search")


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw each trial, and the best so far."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import ARMS, add_legend_below, cells_in

    columns = frame.columns[frame.columns.get_loc("seed") :]
    keys = [key for key in columns if "." in key]  # model.groups and the like
    finished = frame[frame["state"].isin(["complete", "pruned"])].assign(accuracy=100 * frame["validation_top1"])
    searches = cells_in(finished, labels)
    several = len({cell for _, cell, _ in searches}) > 1
    figure, axes = plt.subplots(1, len(keys) + 1, figsize=(3.9 * (len(keys) + 1), 3.0), squeeze=False, sharey=True)
    for i, ((arm, cell, trials), style) in enumerate(zip(searches, cycle(ARMS), strict=False)):
        name = f"{arm}, {cell}" if several else arm
        trials = trials.sort_values("trial")
        best = trials["accuracy"].where(trials["state"] == "complete").cummax().ffill()
        axes[0, -1].step(trials["trial"], best, where="post", label=f"{name}, best so far", **style)
        for axis, key in zip(axes[0], [*keys, "trial"], strict=True):
            at = trials["trial"] if key == "trial" else _places(axis, key, finished[key], trials[key], 0.12 * (i - 0.5))
            for state, marker in (("complete", "os^D"[i % 4]), ("pruned", "x+1|"[i % 4])):
                there = trials["state"] == state
                label = f"{name}{', given up' if state == 'pruned' else ''}"
                shown = label if there.any() and key != "trial" else None
                look = {"color": style["color"], "markersize": 5 + 2 * (i % 4), "fillstyle": "none"}
                axis.plot(at[there], trials["accuracy"][there], marker, label=shown, **look)
    axes[0, 0].set_ylabel("validation accuracy (%)")
    axes[0, -1].set_xlabel("trial")
    axes[0, -1].xaxis.get_major_locator().set_params(integer=True)
    add_legend_below(figure)
    return figure


def _places(axis: Any, key: str, every: "pd.Series", values: "pd.Series", aside: float) -> "pd.Series":
    """Return where the values stand on an axis: numbers with fractions, and many numbers, at what they are; else each value
    has a place, numbers in order, then words, and the searches stand side by side."""
    import pandas as pd

    from dpvision.reporting.points import called

    axis.set_xlabel(called(key))
    numbers = pd.to_numeric(every.dropna(), errors="coerce")
    if numbers.notna().all() and ((numbers % 1 != 0).any() or numbers.nunique() > MANY):
        if numbers.min() > 0 and numbers.max() > WIDE * numbers.min():
            axis.set_xscale("log")
        return pd.to_numeric(values)
    texts = every.dropna().map(lambda value: f"{value:g}" if isinstance(value, float) else str(value))
    order = sorted(texts.unique(), key=lambda v: (not v.isdigit(), int(v) if v.isdigit() else 0))
    axis.set(xticks=range(len(order)), xticklabels=order)
    return texts.reindex(values.index).map(order.index, na_action="ignore") + aside
