"""Effects with their intervals beside those in print: one row for each comparison, under its claim, one panel for each unit."""

import itertools
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from dpvision.files import write_csv
from dpvision.reporting.figures import STYLE, add_legend_below, save, wrap_to_figure
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
ROW = 0.26  # inches
WIDE = 60  # letters of a line


@dataclass(frozen=True)
class Row:
    """A comparison on the figure."""

    claim: str
    """The claim that it decides; of several, their names."""
    text: str
    """What is compared."""
    outcome: Any
    """What came of it (reporting/claims.py)."""


def write_forest(rows: list[Row], title: str, csv: Path) -> None:
    """Draw the effects beside their CSV, which has all of them. Drawn is what was run, or else what is in print."""
    write_csv(csv, [_tidy(row) for row in rows])
    rows = [row for row in rows if panel_of(row.outcome) in AXES]
    run = [row for row in rows if row.outcome.found]
    if run and len(run) < len(rows):
        title += f"; {len(rows) - len(run)} of {len(rows)} comparisons were not run and are not drawn"
    printed = [row for row in rows if row.outcome.published is not None]
    with plt.style.context(STYLE):
        figure = draw(run or printed or rows)
        figure.suptitle(wrap_to_figure(figure, title, 10), fontsize=10)
        save(figure, csv)


def _tidy(row: Row) -> dict[str, Any]:
    outcome = row.outcome
    effect, low, high = outcome.found or (None, None, None)
    numbers = {"effect": effect, "low": low, "high": high, "published": outcome.published}
    numbers["source"] = outcome.comparison.get("source")
    named = {"claim": row.claim, "comparison": row.text}
    return named | {"unit": outcome.unit, "verdict": outcome.verdict, "n": len(outcome.values), **numbers}


def merge_rows(rows: list[Row]) -> list[Row]:
    """Return the rows, those that several claims share as one with all their names; rows of the same claims together."""
    merged: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = (row.text, str(row.outcome.claimed), row.outcome.published)
        before = merged.get(key)
        if before is None:
            merged[key] = row
        elif row.claim not in before.claim.split("; "):
            merged[key] = replace(before, claim=f"{before.claim}; {row.claim}")
    order = list(dict.fromkeys(row.claim for row in merged.values()))
    return sorted(merged.values(), key=lambda row: order.index(row.claim))


def draw(rows: list[Row]) -> Figure:
    panels = {name: merge_rows([row for row in rows if panel_of(row.outcome) == name]) for name in AXES}
    panels = {name: in_panel for name, in_panel in panels.items() if in_panel}
    heights = [_heights(in_panel)[-1] + 2 for in_panel in panels.values()]
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(9.4, ROW * sum(heights) + 0.7), squeeze=False, height_ratios=heights, sharex=False
    )
    for axis, (name, in_panel) in zip(axes[:, 0], panels.items(), strict=True):
        _panel(axis, in_panel, name)
    verdicts = {row.outcome.verdict for row in rows}
    marks: list[Line2D | Patch] = [
        Line2D([], [], label=name, **mark) for name, mark in MARKERS.items() if name != NOT_HERE or name in verdicts
    ]
    places = dict.fromkeys(row.outcome.printed_in for row in rows if row.outcome.published is not None)
    marks += [Line2D([], [], label=place, **_printed_mark(place)) for place in places]
    marks += [Patch(color="0.92", label="where the claim puts it")]
    add_legend_below(figure, marks)
    return figure


def _printed_mark(place: str) -> dict[str, Any]:
    """Return the mark of an effect by the authors' numbers, by where these stand."""
    return PRINTED if place == IN_PRINT else ELSEWHERE


def label_of(text: str) -> str:
    """Return what a comparison is called on lines that leave the drawing its place."""
    broken = text.replace(" = ", "\u00a0=\u00a0").replace(") − (", ")\n− (").split("\n")
    return "\n".join(line for part in broken for line in textwrap.wrap(part, WIDE))


def height_of(text: str) -> float:
    """Return the height of a row; each further line of its small letters needs half as much."""
    return 1 + label_of(text).count("\n") / 2


def panel_of(outcome: Any) -> str:
    numbers = [number for number in (outcome.published, outcome.found and outcome.found.effect) if number is not None]
    far = outcome.unit == "points" and any(abs(number) > FAR for number in numbers)
    return "many points" if far else outcome.unit


def _heights(rows: list[Row]) -> list[float]:
    """Return how far down each row of a panel ends; above the first of a claim there is a line for its name."""
    own = [height_of(row.text) for row in rows]
    named = [0 if before and before.claim == row.claim else height_of(row.claim) for before, row in _with_previous(rows)]
    return list(itertools.accumulate(map(sum, zip(own, named, strict=True))))


def _with_previous(rows: list[Row]) -> Iterator[tuple[Row | None, Row]]:
    return zip([None, *rows], rows, strict=False)


def _panel(axis: Axes, rows: list[Row], name: str) -> None:
    """Draw the rows of one unit, each claim's name in bold above its own."""
    ends = _heights(rows)
    # A row is as high as its text.
    places = [end - height_of(row.text) / 2 - 0.5 for end, row in zip(ends, rows, strict=True)]
    for y, row in zip(places, rows, strict=True):
        outcome = row.outcome
        if outcome.published is not None:
            axis.plot(outcome.published, y, markersize=7, zorder=6, **_printed_mark(outcome.printed_in))
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
    _label_rows(axis, rows, places)
    axis.grid(visible=False, axis="y")
    if not axis.get_lines()[:-1]:  # nothing there but the line of no effect
        axis.set_xlim(none - 0.9, none + 0.9)
    left, right = axis.get_xlim()
    for y, row in zip(places, rows, strict=True):
        claimed = row.outcome.claimed
        low = left if claimed["above"] is None else max(left, claimed["above"])
        high = right if claimed["below"] is None else min(right, claimed["below"])
        axis.barh(y, high - low, left=low, height=0.8, color="0.92", zorder=0)
    axis.set_xlim(left, right)


def _label_rows(axis: Axes, rows: list[Row], places: list[float]) -> None:
    """Write the names of claims and what is compared to the left of a panel."""
    ticks: list[tuple[float, str, str]] = []
    for (before, row), place in zip(_with_previous(rows), places, strict=True):
        if before is None or before.claim != row.claim:
            above = place - height_of(row.text) / 2 - height_of(row.claim) / 2
            ticks.append((above, label_of(row.claim), "bold"))
        n = f"n = {len(row.outcome.values)}" if row.outcome.found else "not run"
        ticks.append((place, f"{label_of(row.text)}   {n}", "normal"))
    axis.set_yticks([place for place, _, _ in ticks], [text for _, text, _ in ticks], fontsize=7.5)
    axis.tick_params(axis="y", length=0)
    for label, (_, _, weight) in zip(axis.get_yticklabels(), ticks, strict=True):
        label.set_fontweight(weight)
