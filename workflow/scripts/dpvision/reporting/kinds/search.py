"""A search's trials: accuracy by value of what was searched, and the history."""

from itertools import cycle
from pathlib import Path
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


NOTE = "accuracy on held-out training examples at the last epoch trained"


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    import pandas as pd

    tables = {Path(file).parent.name: pd.read_csv(file) for file in inputs["trials"]}
    models = {study: cell["at"]["model"] for cell in spec["cells"] for study in cell["work"]["search"].values()}
    return pd.concat([tables[study].assign(model=model) for study, model in models.items()], ignore_index=True)


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw each trial, and the best so far."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import ARMS

    keys = [key for key in frame.columns if "." in key]  # model.groups and the like
    finished = frame[frame["state"].isin(["complete", "pruned"])].assign(accuracy=100 * frame["validation_top1"])
    figure, axes = plt.subplots(1, len(keys) + 1, figsize=(3.9 * (len(keys) + 1), 3.0), squeeze=False, sharey=True)
    for i, ((model, trials), style) in enumerate(zip(finished.groupby("model", sort=False), cycle(ARMS), strict=False)):
        name = labels["models"][str(model)]
        trials = trials.sort_values("trial")
        best = trials["accuracy"].where(trials["state"] == "complete").cummax().ffill()
        axes[0, -1].step(trials["trial"], best, where="post", label=f"{name}, best so far", **style)
        for axis, key in zip(axes[0], [*keys, "trial"], strict=True):
            at = trials["trial"] if key == "trial" else _places(axis, key, finished[key], trials[key]) + 0.12 * (i - 0.5)
            for state, marker in (("complete", "os^D"[i % 4]), ("pruned", "x")):
                there = trials["state"] == state
                label = f"{name}{', given up' if state == 'pruned' else ''}"
                shown = label if there.any() and key != "trial" else None
                axis.plot(at[there], trials["accuracy"][there], marker, color=style["color"], markersize=5, label=shown)
    axes[0, 0].set_ylabel("validation accuracy (%)")
    axes[0, -1].set_xlabel("trial")
    axes[0, -1].xaxis.get_major_locator().set_params(integer=True)
    for axis in axes[0]:
        axis.legend(loc="best")
    return figure


def _places(axis: Any, key: str, every: "pd.Series", values: "pd.Series") -> "pd.Series":
    """Return where the values stand on an axis that has one place for each value: numbers in order, then words."""
    order = sorted(every.astype(str).unique(), key=lambda v: (not v.isdigit(), int(v) if v.isdigit() else 0))
    axis.set(xticks=range(len(order)), xticklabels=order, xlabel=key)
    return values.astype(str).map(order.index)
