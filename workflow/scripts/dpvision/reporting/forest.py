"""Effects with their intervals beside those in print, one row a comparison, one panel a unit."""

import itertools
import textwrap
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from dpvision.files import write_csv
from dpvision.reporting.figures import STYLE, save
from dpvision.reporting.verdicts import NOT_HERE

FAR = 5  # points from which effects have a panel of their own: beside them the others would be dots at zero
AXES = {
    "points": "percentage points of accuracy",
    "many points": "percentage points of accuracy, larger effects",
    "ratio": "ratio",
    "epochs": "epochs",
    "ε": "ε spent",
    "activation": "moments of activations (shares, units of activation)",
    "power": "power of the coordinate (0: constant, 1: proportional)",
}
# Verdicts differ in shape and filling, not in hue alone.
MARKERS: dict[str, dict[str, Any]] = {
    "supported": {"marker": "o", "color": "#1f4e8c"},
    "contradicted": {"marker": "s", "color": "#c04000"},
    "undecided": {"marker": "o", "color": "#4d4d4d", "markerfacecolor": "white"},
    NOT_HERE: {"marker": "x", "color": "#9a9a9a"},
}
PRINTED: dict[str, Any] = {"marker": "D", "color": "black", "markerfacecolor": "none", "linestyle": "none"}
IN_PRINT = "in print"
ELSEWHERE = PRINTED | {"marker": "^"}  # the authors have it, and no paper prints it
ROW = 0.24  # inches
WIDE = 110  # letters of a line


def write_forest(rows: list[tuple[str, Any]], title: str, csv: Path) -> None:
    """Draw the effects beside their CSV; `rows`: what is compared, and its outcome (reporting/claims.py).

    The CSV has all of them. Drawn is what was run, or else what is in print.
    """
    write_csv(csv, [_tidy(name, outcome) for name, outcome in rows])
    rows = [row for row in rows if panel_of(row[1]) in AXES]
    run = [row for row in rows if row[1].found]
    if run and len(run) < len(rows):
        title += f"; {len(rows) - len(run)} of {len(rows)} comparisons were not run and are not drawn"
    with plt.style.context(STYLE):
        figure = draw(run or [row for row in rows if row[1].published is not None] or rows)
        figure.suptitle(textwrap.fill(title, WIDE), fontsize=10)
        save(figure, csv)


def _tidy(name: str, outcome: Any) -> dict[str, Any]:
    effect, low, high = outcome.found or (None, None, None)
    numbers = {"effect": effect, "low": low, "high": high, "published": outcome.published}
    numbers["source"] = outcome.comparison.get("source")
    return {"comparison": name, "unit": outcome.unit, "verdict": outcome.verdict, "n": len(outcome.values), **numbers}


def draw(rows: list[tuple[str, Any]]) -> Figure:
    panels = {name: [row for row in rows if panel_of(row[1]) == name] for name in AXES}
    panels = {name: there for name, there in panels.items() if there}
    heights = [sum(height_of(text) for text, _ in there) + 2 for there in panels.values()]
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(9.4, ROW * sum(heights) + 0.7), squeeze=False, height_ratios=heights, sharex=False
    )
    for axis, (name, there) in zip(axes[:, 0], panels.items(), strict=True):
        _panel(axis, there, name)
    marks: list[Line2D | Patch] = [
        Line2D([], [], label=name, **mark)
        for name, mark in MARKERS.items()
        if name != NOT_HERE or name in {outcome.verdict for _, outcome in rows}
    ]
    places = dict.fromkeys(outcome.printed_in for _, outcome in rows if outcome.published is not None)
    marks += [Line2D([], [], label=place, **_printed_mark(place)) for place in places]
    marks += [Patch(color="0.92", label="where the claim puts it")]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), fontsize=7)
    return figure


def _printed_mark(place: str) -> dict[str, Any]:
    """Return the mark of an effect by the authors' numbers, by where these stand."""
    return PRINTED if place == IN_PRINT else ELSEWHERE


def label_of(text: str) -> str:
    """Return what a comparison is called on lines that leave the drawing its place."""
    broken = text.replace(") − (", ")\n− (").split("\n")
    return "\n".join(line for part in broken for line in textwrap.wrap(part, WIDE))


def height_of(text: str) -> float:
    """Return the height of a row; each further line of its small letters needs half as much."""
    return 1 + label_of(text).count("\n") / 2


def panel_of(outcome: Any) -> str:
    numbers = [number for number in (outcome.published, outcome.found and outcome.found.effect) if number is not None]
    far = outcome.unit == "points" and any(abs(number) > FAR for number in numbers)
    return "many points" if far else outcome.unit


def _panel(axis: Axes, rows: list[tuple[str, Any]], name: str) -> None:
    ends = list(itertools.accumulate(height_of(text) for text, _ in rows))
    places = [
        end - height_of(text) / 2 - 0.5 for end, (text, _) in zip(ends, rows, strict=True)
    ]  # a row is as high as its text
    for y, (_, outcome) in zip(places, rows, strict=True):
        if outcome.published is not None:
            axis.plot(outcome.published, y, markersize=5, zorder=4, **_printed_mark(outcome.printed_in))
        if outcome.found is None:
            continue
        mark = MARKERS[outcome.verdict]
        effect, low, high = outcome.found
        if low is not None:
            axis.plot([low, high], [y, y], color=mark["color"], linewidth=1.4, zorder=3)
        axis.plot(effect, y, markersize=6, zorder=5, **mark)
    axis.set(ylim=(ends[-1] - 0.4, -0.6), xlabel=AXES[name])
    none = 0
    if name == "ratio":
        axis.set_xscale("log")
        left, right = axis.get_xlim()
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if right < 1000 * left else (1,), numticks=12))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_locator(NullLocator())
        none = 1
    axis.axvline(none, color="0.6", linewidth=0.8, zorder=1)
    numbers = [f"n = {len(outcome.values)}" if outcome.found else "not run" for _, outcome in rows]
    texts = [f"{label_of(text)}   {number}" for (text, _), number in zip(rows, numbers, strict=True)]
    axis.set_yticks(places, texts, fontsize=6.5)
    axis.grid(visible=False, axis="y")
    if not axis.get_lines()[:-1]:  # nothing there but the line of no effect
        axis.set_xlim(none - 0.9, none + 0.9)
    left, right = axis.get_xlim()
    for y, (_, outcome) in zip(places, rows, strict=True):
        claimed = outcome.claimed
        low = left if claimed["above"] is None else max(left, claimed["above"])
        high = right if claimed["below"] is None else min(right, claimed["below"])
        axis.barh(y, high - low, left=low, height=0.8, color="0.92", zorder=0)
    axis.set_xlim(left, right)
