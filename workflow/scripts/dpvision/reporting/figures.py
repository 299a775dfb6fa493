"""Figures: drawn from a tidy frame that is kept beside them, as SVG, PDF and PNG.

Arms differ in line style and shade, not in hue alone: a figure can be printed in black and white.
"""

from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from dpvision.config.cells import COORDINATES
from dpvision.files import replacing
from dpvision.plan.specs import Spec
from dpvision.reporting.coordinates import cell_name, coordinates_of, telling
from dpvision.reporting.kinds import KINDS
from dpvision.reporting.words import simulation

STYLE = Path(__file__).with_name("figures.mplstyle")
ARMS: list[dict[str, Any]] = [{"color": "#1f4e8c", "linestyle": "-"}, {"color": "#e07b00", "linestyle": "--"}]
ARMS += [{"color": "#4d4d4d", "linestyle": ":"}, {"color": "#7a9a01", "linestyle": "-."}]


TALLEST = 5000  # pixels: a page of claims of a hundred lines would be a picture of megabytes


def write_figure(spec: Spec, labels: dict[str, Any], inputs: dict[str, list[str]], csv: Path) -> None:
    kind = KINDS[spec["kind"]]
    frame = kind.read(spec, inputs)
    with replacing(csv) as beside:
        frame.to_csv(beside, index=False)
    with plt.style.context(STYLE):
        figure = kind.draw(frame, labels)
        how = simulation(spec)
        scale = "" if spec["scale"] == "paper" else f"  (scale {spec['scale']}{': ' + how if how else ''})"
        figure.suptitle(f"{labels['title']}{scale}", fontsize=10)
        figure.supxlabel(kind.NOTE, fontsize=7)
        save(figure, csv)


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
        found.append((arm, cell_name(at), part))
    return found
