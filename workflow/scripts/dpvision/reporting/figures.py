"""Figures: drawn from a tidy frame that is kept beside them, as SVG, PDF and PNG.

Arms differ in line style and shade, not in hue alone: a figure can be printed in black and white.
"""

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from dpvision.config.cells import COORDINATES
from dpvision.files import replacing
from dpvision.plan.specs import Spec
from dpvision.reporting.coordinates import cell_name, coordinates_of, telling
from dpvision.reporting.kinds import KINDS
from dpvision.reporting.left_out import read_trainings, whole_notes
from dpvision.reporting.words import simulation

STYLE = Path(__file__).with_name("figures.mplstyle")
ARMS: list[dict[str, Any]] = [{"color": "#1f4e8c", "linestyle": "-"}, {"color": "#e07b00", "linestyle": "--"}]
ARMS += [{"color": "#4d4d4d", "linestyle": ":"}, {"color": "#7a9a01", "linestyle": "-."}]


# Pixels: a page of claims of a hundred lines would be a picture of megabytes.
TALLEST = 5000
# The width of a letter, as a share of its size, on average over our titles and notes in DejaVu Sans.
LETTER = 0.56
# The width of a legend's mark with the space around it, in letters.
LEGEND_MARK = 8


def write_figure(spec: Spec, labels: dict[str, Any], inputs: dict[str, list[str]], csv: Path) -> None:
    kind = KINDS[spec["kind"]]
    frame = kind.read(spec, inputs)
    with replacing(csv) as beside:
        frame.to_csv(beside, index=False)
    with plt.style.context(STYLE):
        figure = kind.draw(frame, labels)
        how = simulation(spec)
        scale = "" if spec["scale"] == "paper" else f"  (scale {spec['scale']}{': ' + how if how else ''})"
        figure.suptitle(wrap_to_figure(figure, f"{labels['title']}{scale}", 10), fontsize=10)
        whole = whole_notes(read_trainings(spec["cells"], inputs))
        add_note_below(figure, ". ".join([kind.NOTE, *whole]))
        save(figure, csv)


def wrap_to_figure(figure: Figure, text: str, size: float) -> str:
    """Break a text into lines of like length that are no wider than the figure.

    Args:
        figure: The figure that the text stands above or below.
        text: One line. Formulas between dollars are never broken, and count by their letters.
        size: The size of its letters in points.
    """
    lines = _lines(text, letters_across(figure, size))
    width = len(text) // len(lines)
    while len(_lines(text, width)) > len(lines):
        width += 1
    return "\n".join(_lines(text, width))


def _lines(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def letters_across(figure: Figure, size: float) -> int:
    """Return how many letters of a size in points fit beside each other into a figure's width."""
    return int(figure.get_figwidth() * 72 / (LETTER * size))


def add_legend_below(figure: Figure, handles: Iterable[Artist] | None = None, size: float = 7) -> None:
    """Put one legend below all panels of a figure, where it can hide no data.

    Args:
        figure: The figure with its panels.
        handles: What the legend explains; otherwise whatever its panels have labels for, each label once.
        size: The size of its letters in points.
    """
    if handles is None:
        by_label: dict[str, Artist] = {}
        for axis in figure.axes:
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                by_label.setdefault(label, handle)
        labels, handles = list(by_label), list(by_label.values())
    else:
        handles = list(handles)
        labels = [str(handle.get_label()) for handle in handles]
    if not labels:
        return
    widths = [len(label) + LEGEND_MARK for label in labels]
    across = letters_across(figure, size)
    columns = len(labels) if sum(widths) <= across else across // max(widths)
    # Below the canvas: it takes no room from the panels, and a file is cut to what is drawn.
    figure.legend(
        handles=handles,
        labels=labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=figure.transFigure,
        borderaxespad=0,
        ncols=max(1, columns),
        fontsize=size,
    )


def add_note_below(figure: Figure, note: str, size: float = 7) -> None:
    """Write a note in small letters below a figure and its legend."""
    figure.draw_without_rendering()
    lowest = min((legend.get_window_extent().y0 for legend in figure.legends), default=0.0)
    place = lowest / figure.bbox.height - 0.01
    figure.text(0.5, place, wrap_to_figure(figure, note, size), fontsize=size, ha="center", va="top")


def save(figure: Figure, csv: Path) -> None:
    """Write a figure beside its CSV, without dates, so that the same figure is the same file; none is TALLEST pixels high."""
    dpi = min(plt.rcParams["savefig.dpi"], TALLEST / figure.get_figheight())
    for kind in ("svg", "pdf", "png"):
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        with replacing(csv.with_suffix(f".{kind}")) as beside:
            figure.savefig(beside, metadata=metadata, dpi=dpi)
    plt.close(figure)


def stacked(spec: Spec, files: list[str], stage: str) -> pd.DataFrame:
    """Stack the CSV files of a stage's work, with the coordinates of its cell and the seed before each row."""
    by_folder, coordinates = {Path(file).parent.name: file for file in files}, coordinates_of(spec["cells"])
    frames = []
    for cell in spec["cells"]:
        for seed, name in cell["work"][stage].items():
            frame = pd.read_csv(by_folder[name]).drop(columns=coordinates, errors="ignore")  # what was spent
            about = {key: cell["at"].get(key) for key in coordinates} | {"seed": int(seed)}
            frames.append(pd.DataFrame([about] * len(frame)).join(frame))
    return pd.concat(frames, ignore_index=True)


def cells_in(frame: pd.DataFrame, labels: dict[str, Any]) -> list[tuple[str, str, pd.DataFrame]]:
    """Split a frame by cell: its arm, which is its model and what else tells it from others; data set and ε; its rows."""
    coordinates = list(frame.columns[: frame.columns.get_loc("seed")])
    parts = list(frame.groupby(coordinates, sort=False, dropna=False))
    places = [{name: None if pd.isna(at) else at for name, at in zip(coordinates, key, strict=True)} for key, _ in parts]
    said = {*telling(places), *(name for name in coordinates if name not in COORDINATES)} - {"dataset", "model", "epsilon"}
    others = [name for name in coordinates if name in said]  # what tells cells apart, and whatever their groups vary
    found = []
    for at, (_, part) in zip(places, parts, strict=True):
        arm = ", ".join(filter(None, [labels["models"][str(at["model"])], cell_name(at, others)]))
        dataset = labels.get("datasets", {}).get(at["dataset"], at["dataset"])
        found.append((arm, cell_name(at | {"dataset": dataset}), part))
    return found
