"""Accuracy by one component of a network, private beside not private: equal networks but for it are joined by a line."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import FigureOfCells
from dpvision.config.base import Name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec


class Options(FigureOfCells):
    """Accuracy by a component of networks, with the numbers that the authors have."""

    kind: Literal["components"]
    """What it is."""
    x: Literal["ratio", "connection", "norm", "activation", "pool", "privacy"]
    """The component: width to depth, how layers are connected, normalisation, activation, pooling; or private or not."""
    published: Name | None = None
    """The artifact whose numbers stand beside ours; its own where absent."""

    READS: ClassVar = {"metrics": ("train/metrics.json",), "trials": ("search/trials.csv",)}


NOTE = (
    "accuracy on held-out examples: the mean of the ten best trials, or over the seeds where there was no search; "
    "a line joins networks that are equal but for this; the authors' notebook: the best trial"
)
OURS, AUTHORS = "ours", "authors' notebook"
LOOKS: dict[str, dict[str, Any]] = {
    OURS: {"marker": "o", "linestyle": "-", "color": "#1f4e8c", "linewidth": 0.8, "markersize": 4},
    AUTHORS: {"marker": "x", "linestyle": ":", "color": "#e07b00", "linewidth": 0.8, "markersize": 4},
}
MARKS = {"none": "o", "skip": "v", "residual": "s", "dense": "D"}
NO_PAIR = "the authors' notebook has no two that differ in this alone"
ELSEWHERE = "the authors' numbers are of another data set"
NONE_OF = "the authors' notebook has no pair with: {}"
OPTIONS = ("connection", "width", "depth", "pool", "norm", "activation")
PRIVACY = {True: "private", False: "not private"}
# What people call a component and its values. A simulation is not private, so that panels say what was trained with noise.
CALLED = {
    "ratio": "width to depth",
    "connection": "connection between layers",
    "norm": "normalisation",
    "activation": "activation",
    "pool": "pooling",
    "privacy": "",
}
VALUES = {"relu": "ReLU", "leaky_relu": "leaky ReLU", "selu": "SELU", "private": "with noise", "not private": "without noise"}
ORDER = {
    "connection": ["none", "skip", "residual", "dense"],
    "norm": ["none", "instance", "layer", "group", "batch"],
    "activation": ["relu", "leaky_relu", "selu"],
    "pool": ["none", "average", "max"],
    "privacy": ["not private", "private"],
}
GROUPS = {8: "group", 1: "layer", "channels": "instance"}  # what torchvision's networks have in the place of a norm
TEN = 10


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each network and way of training, ours and the authors', with what it is built of."""
    import pandas as pd

    from dpvision.reporting.kinds.tuned import best_trials
    from dpvision.reporting.tables import by_folder

    metrics = by_folder(inputs["metrics"])
    datasets = {cell["at"]["dataset"] for cell in spec["cells"]}
    rows = []
    for cell in spec["cells"]:
        best = best_trials(cell, inputs["trials"])
        if best is None:
            values = [100 * metrics[run]["last_step"]["validation"]["top1"] for run in cell["work"]["train"].values()]
        else:
            values = list(best[:TEN])
        ours = {"of": OURS, "accuracy": sum(values) / len(values), "best": max(values), "n": len(values)}
        rows.append(_network(cell["at"]) | ours)
    for row in spec["published"]:
        if row["at"]["dataset"] in datasets:
            rows.append(_network(row["at"]) | {"of": AUTHORS, "accuracy": row["value"]})
    frame = pd.DataFrame(rows)
    frame["ratio"] = frame["width"].astype(float) / frame["depth"].astype(float)
    return frame.assign(x=frame[spec["x"]], component=spec["x"])


def _network(at: dict[str, Any]) -> dict[str, Any]:
    """Return what a network is built of, by its coordinates; a standard one has no width and depth of its own."""
    options = {name: at.get(f"model.{name}") for name in OPTIONS}
    if (groups := at.get("model.groups")) is not None:
        options["norm"] = GROUPS.get(groups, f"{groups} groups")
    return {"model": at["model"], "privacy": PRIVACY[at["epsilon"] is not None], **options}


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw a panel each for private and not private; of privacy itself one with both."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import add_legend_below

    x = frame["component"].iloc[0]
    panels = [(str(name), part) for name, part in frame.groupby("privacy", sort=False)] if x != "privacy" else [("", frame)]
    panels = [panel for panel in panels if x == "ratio" or any(_lines(panel[1], x))] or panels[:1]
    figure, axes = plt.subplots(1, len(panels), figsize=(1.2 + 4.4 * len(panels), 3.6), squeeze=False)
    for axis, (title, part) in zip(axes[0], panels, strict=True):
        notice = _draw_panel(axis, part, x, elsewhere=AUTHORS not in set(frame["of"]))
        axis.set(title=VALUES.get(title, title), xlabel="\n".join(filter(None, [CALLED[x], notice])))
    axes[0, 0].set_ylabel("validation accuracy (%)")
    add_legend_below(figure)
    return figure


def _draw_panel(axis: Any, part: "pd.DataFrame", x: str, elsewhere: bool) -> str:
    """Draw our networks and those of the authors' notebook.

    Args:
        axis: The panel.
        part: The rows of the networks in this panel.
        x: The component.
        elsewhere: The authors have no number of these data.

    Returns:
        A sentence on what the authors have no number of; empty if nothing is missing.
    """
    networks = part[part["x"].notna()]
    if x == "ratio":
        _draw_ratios(axis, networks)
        return ""
    lines = list(_lines(networks, x))
    in_lines = {value for _, line in lines for value in line["x"]}
    # A value in no line has no point: as a tick it would look like one that lines pass over.
    values = [value for value in ORDER[x] if value in in_lines]
    of_authors = {value for of, line in lines if of == AUTHORS for value in line["x"]}
    for of, line in lines:
        places = line["x"].map(values.index).sort_values(kind="stable")
        first = of not in axis.get_legend_handles_labels()[1]
        axis.plot(places, line.loc[places.index, "accuracy"], label=of if first else None, **LOOKS[of])
    axis.set_xticks(range(len(values)), [VALUES.get(value, value) for value in values])
    axis.set_xlim(-0.5, len(values) - 0.5)
    absent = [VALUES.get(value, value) for value in values if value not in of_authors]
    if not absent:
        return ""
    if elsewhere:
        return ELSEWHERE
    return NONE_OF.format(", ".join(absent)) if of_authors else NO_PAIR


def _lines(part: "pd.DataFrame", x: str) -> "Iterator[tuple[str, pd.DataFrame]]":
    """Yield the networks that are equal but for one component, with whose they are."""
    same = [name for name in ("model", "privacy", *OPTIONS) if name != x]
    for of, rows in part[part["x"].notna()].groupby("of", sort=False):
        for _, line in rows.groupby(same, sort=False, dropna=False):
            if len(line) > 1:
                yield str(of), line


def _draw_ratios(axis: Any, there: "pd.DataFrame") -> None:
    """Draw a mark for each network, by its connection; the authors' are hollow."""
    for (of, connection), rows in there.groupby(["of", "connection"], sort=False):
        look = {"color": LOOKS[str(of)]["color"], "linestyle": "none", "fillstyle": "none" if of == AUTHORS else "full"}
        name = "no connection" if connection == "none" else connection
        axis.plot(rows["x"].astype(float), rows["accuracy"], MARKS[str(connection)], label=f"{name}, {of}", **look)
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.axvline(1, color="0.6", linewidth=0.8, zorder=0)
