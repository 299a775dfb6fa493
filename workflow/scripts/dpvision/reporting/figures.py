"""Figures: drawn from a tidy frame that is kept beside them, as SVG, PDF and PNG.

Arms differ in line style and shade, not in hue alone: a figure can be printed in black and white.
"""

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from dpvision.curvature.spectrum import density
from dpvision.files import read_json, replacing
from dpvision.plan.specs import Spec
from dpvision.reporting.schematic import draw_schematic, read_schematic
from dpvision.reporting.words import simulation

STYLE = Path(__file__).with_name("figures.mplstyle")
ARMS: list[dict[str, Any]] = [{"color": "#1f4e8c", "linestyle": "-"}, {"color": "#e07b00", "linestyle": "--"}]
ARMS += [{"color": "#4d4d4d", "linestyle": ":"}, {"color": "#7a9a01", "linestyle": "-."}]
ROW = ["model", "dataset", "epsilon"]
FLOOR = 1e-10  # of a density on a logarithmic axis; one eigenvalue of millions stands above it
PLACES = ("V_R", "V_F", "V_A", "V_A^S")  # residual path, convolutional path, their sum, the sum after ScaleNorm


NOTES = {
    "activations": "$V_R$: residual path, $V_F$: convolutional path, $V_A$: their sum, $V_A^S$: the sum after ScaleNorm; "
    "on test images, the dashed line is the mean",
    "curves": "line: median over the seeds, band: their range",
    "spectrum": "Ritz values of Lanczos, each widened to a Gaussian of 1/150 of the range",
    "schematic": "$V_R$: residual path, $V_F$: convolutional path, $V_A$: their sum, $V_A^S$: the sum after ScaleNorm",
    "search": "accuracy on held-out training examples at the last epoch trained",
}


def write_figure(spec: Spec, labels: dict[str, str], inputs: dict[str, list[str]], csv: Path) -> None:
    read, draw = KINDS[spec["kind"]]
    frame = read(spec, inputs)
    with replacing(csv) as beside:
        frame.to_csv(beside, index=False)
    with plt.style.context(STYLE):
        figure = draw(frame, labels)
        how = simulation(spec)
        scale = "" if spec["scale"] == "paper" else f"  (scale {spec['scale']}{': ' + how if how else ''})"
        figure.suptitle(f"{labels['title']}{scale}", fontsize=10)
        figure.supxlabel(NOTES[spec["kind"]], fontsize=7)
        for kind in ("svg", "pdf", "png"):
            # without dates, so that the same figure is the same file
            metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
            with replacing(csv.with_suffix(f".{kind}")) as beside:
                figure.savefig(beside, metadata=metadata)
        plt.close(figure)


def cells_of(spec: Spec, files: list[str], names: dict[str, str]) -> pd.DataFrame:
    """The CSV files of an artifact's runs below each other, with model, ε and seed; `names`: run -> file's folder."""
    by_folder = {Path(file).parent.name: file for file in files}
    frames = []
    for cell in spec["cells"]:
        for seed, run in cell["runs"].items():
            frame = pd.read_csv(by_folder[names[run]]).drop(columns="epsilon", errors="ignore")  # the spent one
            about = {"dataset": cell["dataset"], "model": cell["model"], "epsilon": cell["epsilon"], "seed": int(seed)}
            frames.append(pd.DataFrame([about] * len(frame)).join(frame))
    return pd.concat(frames, ignore_index=True)


def _cell(dataset: str, epsilon: float) -> str:
    return f"{dataset}, not private" if pd.isna(epsilon) else f"{dataset}, ε = {epsilon:g}"


def read_curves(spec: Spec, inputs: dict[str, list[str]]) -> pd.DataFrame:
    names = {run: run for cell in spec["cells"] for run in cell["runs"].values()}
    frame = cells_of(spec, inputs["histories"], names)
    return frame[["dataset", "model", "epsilon", "seed", "epoch", "step", "validation_top1", "test_top1"]]


def draw_curves(frame: pd.DataFrame, labels: dict[str, str]) -> Figure:
    """Test accuracy by epoch: the median over the seeds, and their range as a band."""
    panels = list(frame.groupby(["dataset", "epsilon"], sort=False, dropna=False))
    figure, axes = plt.subplots(1, len(panels), figsize=(1.2 + 3.8 * len(panels), 3.0), squeeze=False)
    for axis, (key, panel) in zip(axes[0], panels, strict=True):
        for (model, arm), style in zip(panel.groupby("model", sort=False), cycle(ARMS), strict=False):
            seeds = (100 * arm.pivot(index="epoch", columns="seed", values="test_top1")).agg(["median", "min", "max"], axis=1)
            axis.plot(seeds.index, seeds["median"], label=f"{labels[str(model)]} (n = {arm['seed'].nunique()})", **style)
            axis.fill_between(seeds.index, seeds["min"], seeds["max"], color=style["color"], alpha=0.15, linewidth=0)
        axis.set(title=_cell(*key), xlabel="epoch", ylabel="test accuracy (%)")
        axis.legend(loc="lower right")
    return figure


def read_activations(spec: Spec, inputs: dict[str, list[str]]) -> pd.DataFrame:
    return cells_of(spec, inputs["histograms"], spec["analyses"])


def draw_activations(frame: pd.DataFrame, labels: dict[str, str]) -> Figure:
    """One row a model, one column a place; a column's panels share their axis, to be compared."""
    models = list(frame.groupby(ROW, sort=False, dropna=False))[::-1]  # as in the paper: without ScaleNorm on top
    size = (9.4, 1.9 * len(models) + 0.4)
    figure, axes = plt.subplots(len(models), len(PLACES), figsize=size, squeeze=False, sharex="col")
    for row, ((model, *cell), arm) in zip(axes, models, strict=True):
        for axis, place in zip(row, PLACES, strict=True):
            bars = arm[arm["place"] == place]
            if bars.empty:
                axis.set_axis_off()
                continue
            mean, std = bars["mean"].iloc[0], bars["std"].iloc[0]
            edges = [*bars["left"], bars["right"].iloc[-1]]
            axis.stairs(bars["density"], edges, fill=True, color="#9db4cf", edgecolor="#1f4e8c")
            axis.axvline(mean, color="black", linewidth=1, linestyle="--")
            axis.set_title(f"${place}$: mean {mean:.2f}, std {std:.2f}".replace("-", "\N{MINUS SIGN}"))
            axis.tick_params(labelbottom=True)
            axis.set_yticks([])
        row[0].set_ylabel(f"{labels[str(model)]}\n{_cell(*cell)}\nseed {arm['seed'].iloc[0]}")
    return figure


def read_spectrum(spec: Spec, inputs: dict[str, list[str]]) -> pd.DataFrame:
    hessians = {Path(file).parent.name: read_json(file) for file in inputs["hessians"]}
    rows = []
    for cell in spec["cells"]:
        about = {"dataset": cell["dataset"], "model": cell["model"], "epsilon": cell["epsilon"]}
        for seed, run in cell["runs"].items():
            found = hessians[spec["analyses"][run]]
            pairs = zip(found["ritz_values"], found["ritz_weights"], strict=True)
            rows += [about | {"seed": int(seed), "ritz_value": v, "weight": w} for v, w in pairs]
    return pd.DataFrame(rows)


def draw_spectrum(frame: pd.DataFrame, labels: dict[str, str]) -> Figure:
    """The spectral density by seed, each Ritz value widened to a Gaussian; logarithmic, since most of it is near zero."""
    models = list(frame.groupby(ROW, sort=False, dropna=False))
    low, high = frame["ritz_value"].min(), frame["ritz_value"].max()
    width = (high - low) / 150
    grid = np.linspace(low - 4 * width, high + 4 * width, 1200)
    size = (6.2, 1.7 * len(models) + 0.6)
    figure, axes = plt.subplots(len(models), 1, figsize=size, squeeze=False, sharex=True, sharey=True)
    for axis, ((model, *cell), arm) in zip(axes[:, 0], models, strict=True):
        for (seed, one), style in zip(arm.groupby("seed", sort=False), cycle(ARMS), strict=False):
            heights = density(one["ritz_value"], one["weight"], grid, width)
            axis.plot(grid, np.maximum(heights, FLOOR), label=f"seed {seed}", linewidth=1.2, **style)
        axis.set(yscale="log", ylim=(FLOOR, None), ylabel="density", title=f"{labels[str(model)]}, {_cell(*cell)}")
        axis.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    axes[0, 0].legend(loc="upper right")
    axes[-1, 0].set_xlabel("eigenvalue")
    return figure


def read_search(spec: Spec, inputs: dict[str, list[str]]) -> pd.DataFrame:
    tables = {Path(file).parent.name: pd.read_csv(file) for file in inputs["trials"]}
    return pd.concat([tables[study].assign(model=model) for study, model in spec["studies"].items()], ignore_index=True)


def draw_search(frame: pd.DataFrame, labels: dict[str, str]) -> Figure:
    """Accuracy by value of what was searched, and the history: each trial, and the best so far."""
    keys = [key for key in frame.columns if "." in key]  # model.groups and the like
    finished = frame[frame["state"].isin(["complete", "pruned"])].assign(accuracy=100 * frame["validation_top1"])
    figure, axes = plt.subplots(1, len(keys) + 1, figsize=(3.9 * (len(keys) + 1), 3.0), squeeze=False, sharey=True)
    for i, ((model, trials), style) in enumerate(zip(finished.groupby("model", sort=False), cycle(ARMS), strict=False)):
        trials = trials.sort_values("trial")
        best = trials["accuracy"].where(trials["state"] == "complete").cummax().ffill()
        axes[0, -1].step(trials["trial"], best, where="post", label=f"{labels[str(model)]}, best so far", **style)
        for axis, key in zip(axes[0], [*keys, "trial"], strict=True):
            at = trials["trial"] if key == "trial" else _places(axis, key, finished[key], trials[key]) + 0.12 * (i - 0.5)
            for state, marker in (("complete", "os^D"[i % 4]), ("pruned", "x")):
                there = trials["state"] == state
                label = f"{labels[str(model)]}{', given up' if state == 'pruned' else ''}"
                shown = label if there.any() and key != "trial" else None
                axis.plot(at[there], trials["accuracy"][there], marker, color=style["color"], markersize=5, label=shown)
    axes[0, 0].set_ylabel("validation accuracy (%)")
    axes[0, -1].set_xlabel("trial")
    axes[0, -1].xaxis.get_major_locator().set_params(integer=True)
    for axis in axes[0]:
        axis.legend(loc="best")
    return figure


def _places(axis: Any, key: str, every: pd.Series, values: pd.Series) -> pd.Series:
    """Where the values stand on an axis that has one place for each value: numbers in order, then words."""
    order = sorted(every.astype(str).unique(), key=lambda v: (not v.isdigit(), int(v) if v.isdigit() else 0))
    axis.set(xticks=range(len(order)), xticklabels=order, xlabel=key)
    return values.astype(str).map(order.index)


Reader = Callable[[Spec, dict[str, list[str]]], pd.DataFrame]
Drawer = Callable[[pd.DataFrame, dict[str, str]], Figure]

KINDS: dict[str, tuple[Reader, Drawer]] = {
    "curves": (read_curves, draw_curves),
    "activations": (read_activations, draw_activations),
    "spectrum": (read_spectrum, draw_spectrum),
    "search": (read_search, draw_search),
    "schematic": (read_schematic, draw_schematic),
}
