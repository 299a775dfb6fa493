"""Figures of an audit: what an attacker gets for what he risks, and how the bound grows with the steps."""

from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpvision.files import read_json, replacing
from dpvision.reporting.figures import STYLE, save

BLUE, ORANGE, GREY = "#1f4e8c", "#e07b00", "#4d4d4d"
LINES: list[dict[str, Any]] = [{"color": BLUE, "linestyle": "-"}, {"color": ORANGE, "linestyle": "--"}]
LINES += [{"color": GREY, "linestyle": ":"}]


def write_figures(record: Path, folder: Path) -> None:
    """Draw an audit's figures, each with what it shows as CSV beside it."""
    about = read_json(record / "audit.json")
    title = f"{about['name']}: {about['verdict']} at {about['confidence']:.1%}"
    for name, draw in (("roc", draw_roc), ("steps", draw_steps)):
        csv = folder / f"audit_{name}.csv"
        frame = pd.read_csv(record / f"{name}.csv")
        with replacing(csv) as beside:
            frame.to_csv(beside, index=False)
        with plt.style.context(STYLE):
            figure = draw(frame)
            figure.suptitle(title, fontsize=10)
            save(figure, csv)


def _panels(frame: pd.DataFrame) -> tuple[Figure, list[tuple[str, pd.DataFrame, Axes]]]:
    groups = list(frame.groupby("setting", sort=False))
    figure, axes = plt.subplots(1, len(groups), figsize=(1 + 2.9 * len(groups), 3.3), squeeze=False)
    panels = [(str(name), part, axis) for (name, part), axis in zip(groups, axes[0], strict=True)]
    for name, _, axis in panels:
        axis.set_title(name.replace(", ", "\n", 1), fontsize=8)
    return figure, panels


def draw_roc(frame: pd.DataFrame) -> Figure:
    """Draw rates of true over false positives, both logarithmic: scores, the claimed curve, the test with its bounds."""
    figure, panels = _panels(frame)
    for _, part, axis in panels:
        least = part.loc[part["kind"] == "bound", "false_positives"].iloc[0] / 30
        for kind, label, style in (("scores", "scores", LINES[0]), ("claimed", "best attack on what is claimed", LINES[1])):
            curve = part[(part["kind"] == kind) & (part["false_positives"] > 0) & (part["true_positives"] > 0)]
            curve = curve.sort_values("false_positives")
            axis.plot(curve["false_positives"], curve["true_positives"], label=label, linewidth=1, **style)
        axis.plot([least, 1], [least, 1], color="0.7", linewidth=0.8, label="guessing")
        at, bound = (part[part["kind"] == kind].iloc[0] for kind in ("evaluated", "bound"))
        x, y = ([one["false_positives"], one["true_positives"]] for one in (at, bound))
        axis.plot([max(x[0], least), y[0], y[0]], [x[1], x[1], y[1]], color="black", linewidth=1.2)
        axis.plot([max(x[0], least), max(x[0], least), y[0]], [x[1], y[1], y[1]], color="black", linewidth=1.2)
        axis.plot(*[[value] for value in (max(x[0], least), x[1])], "ko", markersize=4, label="the test, with its bounds")
        axis.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.05), xlabel="false positives")
    panels[0][2].set_ylabel("true positives")
    panels[0][2].legend(fontsize=6, loc="lower right")
    return figure


def draw_steps(frame: pd.DataFrame) -> Figure:
    """Draw ε over the steps: what the accountants claim, what is proved, and what this many canaries could prove at most."""
    figure, panels = _panels(frame)
    lines = (
        ("claimed_rdp", "claimed, RDP"),
        ("claimed", "claimed, by convolution"),
        ("perfect_attack", "a perfect attack would prove"),
    )
    for _, part, axis in panels:
        for (column, label), style in zip(lines, cycle(LINES), strict=False):
            axis.plot(part["step"], part[column], label=label, **style)
        axis.plot(part["step"], part["expected"], color="0.6", linewidth=1, label="expected lower bound")
        axis.plot(part["step"], part["lower_bound"], "ko", markersize=4, label="lower bound")
        axis.set(xlabel="step", ylim=(0, None))
    panels[0][2].set_ylabel("ε at the ledger's δ")
    panels[0][2].legend(fontsize=6)
    return figure


SIGNS = {"refuted": ("black", "white"), "loose": ("0.65", "black"), "consistent": ("white", "0.6"), "error": ("white", "black")}


def write_matrix(csv: Path) -> None:
    """Draw which design saw which planted bug; the CSV beside has a row a bug and a column a design."""
    frame = pd.read_csv(csv, keep_default_na=False)
    designs = [name for name in frame.columns if name not in ("bug", "verdict")]
    with plt.style.context(STYLE):
        figure, axis = plt.subplots(figsize=(3.2 + 0.9 * len(designs), 0.6 + 0.22 * len(frame)))
        for y, row in enumerate(frame.to_dict("records")):
            for x, name in enumerate(designs):
                face, ink = SIGNS[row[name] or "error"]
                axis.add_patch(plt.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=face, edgecolor="0.9"))
                axis.text(x, y, row[name] or "–", color=ink, ha="center", va="center", fontsize=6)
        axis.set(xlim=(-0.5, len(designs) - 0.5), ylim=(len(frame) - 0.5, -0.5))
        axis.set_xticks(range(len(designs)), designs, fontsize=7)
        axis.set_yticks(range(len(frame)), frame["bug"], fontsize=7)
        axis.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
        save(figure, csv)
