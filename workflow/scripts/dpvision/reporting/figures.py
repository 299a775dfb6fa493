"""Figures: drawn from a tidy frame that is kept beside them, as SVG, PDF and PNG.

Arms differ in line style and shade, not in hue alone: a figure can be printed in black and white.
"""

from collections.abc import Callable
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

STYLE = Path(__file__).with_name("figures.mplstyle")
ARMS: list[dict[str, Any]] = [{"color": "#1f4e8c", "linestyle": "-"}, {"color": "#e07b00", "linestyle": "--"}]
ARMS += [{"color": "#4d4d4d", "linestyle": ":"}, {"color": "#7a9a01", "linestyle": "-."}]
PLACES = ("V_R", "V_F", "V_A", "V_A^S")  # residual path, convolutional path, their sum, the sum after ScaleNorm


def write_figure(spec: Spec, labels: dict[str, str], inputs: dict[str, list[str]], csv: Path) -> None:
    read, draw = KINDS[spec["kind"]]
    frame = read(spec, inputs)
    with replacing(csv) as beside:
        frame.to_csv(beside, index=False)
    with plt.style.context(STYLE):
        figure = draw(frame, labels)
        scale = "" if spec["scale"] == "paper" else f"  (scale {spec['scale']})"
        figure.suptitle(f"{labels['title']}{scale}", fontsize=10)
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
            if run in names:
                frame = pd.read_csv(by_folder[names[run]])
                about = {"dataset": cell["dataset"], "model": cell["model"], "epsilon": cell["epsilon"], "seed": int(seed)}
                frames.append(pd.DataFrame([about] * len(frame)).join(frame.drop(columns="epsilon", errors="ignore")))
    return pd.concat(frames, ignore_index=True)


def read_curves(spec: Spec, inputs: dict[str, list[str]]) -> pd.DataFrame:
    names = {run: run for cell in spec["cells"] for run in cell["runs"].values()}
    frame = cells_of(spec, inputs["histories"], names)
    return frame[["dataset", "model", "epsilon", "seed", "epoch", "step", "validation_top1", "test_top1"]]


def draw_curves(frame: pd.DataFrame, labels: dict[str, str]) -> Figure:
    """Test accuracy by epoch: the median over the seeds, and their range as a band."""
    panels = list(frame.groupby(["dataset", "epsilon"], sort=False))
    figure, axes = plt.subplots(1, len(panels), figsize=(1.2 + 3.8 * len(panels), 3.0), squeeze=False)
    for axis, ((dataset, epsilon), panel) in zip(axes[0], panels, strict=True):
        for (model, arm), style in zip(panel.groupby("model", sort=False), ARMS, strict=False):
            seeds = (100 * arm.pivot(index="epoch", columns="seed", values="test_top1")).agg(["median", "min", "max"], axis=1)
            axis.plot(seeds.index, seeds["median"], label=f"{labels[model]} (n = {arm['seed'].nunique()})", **style)
            axis.fill_between(seeds.index, seeds["min"], seeds["max"], color=style["color"], alpha=0.15, linewidth=0)
        axis.set(title=f"{dataset}, ε = {epsilon:g}", xlabel="epoch", ylabel="test accuracy (%)")
        axis.legend(loc="lower right")
    return figure


def read_activations(spec: Spec, inputs: dict[str, list[str]]) -> pd.DataFrame:
    return cells_of(spec, inputs["histograms"], spec["analyses"])


def draw_activations(frame: pd.DataFrame, labels: dict[str, str]) -> Figure:
    """One row a model, one column a place."""
    models = list(frame.groupby("model", sort=False))[::-1]  # as in the paper: without ScaleNorm on top
    figure, axes = plt.subplots(len(models), len(PLACES), figsize=(9, 1.9 * len(models) + 0.4), squeeze=False)
    for row, (model, arm) in zip(axes, models, strict=True):
        for axis, place in zip(row, PLACES, strict=True):
            bars = arm[arm["place"] == place]
            if bars.empty:
                axis.set_axis_off()
                continue
            axis.stairs(
                bars["density"], [*bars["left"], bars["right"].iloc[-1]], fill=True, color="#9db4cf", edgecolor="#1f4e8c"
            )
            axis.axvline(bars["mean"].iloc[0], color="black", linewidth=1, linestyle="--")
            axis.set_title(f"${place}$: mean {bars['mean'].iloc[0]:.2f}, std {bars['std'].iloc[0]:.2f}")
            axis.set_yticks([])
        row[0].set_ylabel(f"{labels[model]}\ndensity")
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
    """The spectral density, each Ritz value widened to a Gaussian, on a logarithmic axis: most of it is near zero."""
    figure, axis = plt.subplots(figsize=(5.6, 3.2))
    low, high = frame["ritz_value"].min(), frame["ritz_value"].max()
    width = (high - low) / 150
    grid = np.linspace(low - 4 * width, high + 4 * width, 1200)
    for (model, arm), style in zip(frame.groupby("model", sort=False), ARMS, strict=False):
        for i, (_, one) in enumerate(arm.groupby("seed", sort=False)):
            heights = density(one["ritz_value"], one["weight"], grid, width)
            axis.plot(grid, heights, label=labels[model] if i == 0 else None, **style, alpha=0.8, lw=1.1)
    axis.set(yscale="log", ylim=(1e-7, None), xlabel="eigenvalue", ylabel="density")
    axis.axvline(0, color="0.6", linewidth=0.8)
    axis.legend(title="one line a seed")
    return figure


def read_search(spec: Spec, inputs: dict[str, list[str]]) -> pd.DataFrame:
    tables = {Path(file).parent.name: pd.read_csv(file) for file in inputs["trials"]}
    return pd.concat([tables[study].assign(model=model) for study, model in spec["studies"].items()], ignore_index=True)


def draw_search(frame: pd.DataFrame, labels: dict[str, str]) -> Figure:
    """Above, accuracy by value of what was searched; below, the history: each trial, and the best so far."""
    columns = ["model", "trial", "state", "validation_top1", "epochs", "seconds"]
    keys = [key for key in frame.columns if key not in columns]
    finished = frame[frame["state"].isin(["complete", "pruned"])]
    figure, axes = plt.subplots(1, len(keys) + 1, figsize=(3.9 * (len(keys) + 1), 3.0), squeeze=False)
    for (model, trials), style in zip(finished.groupby("model", sort=False), ARMS, strict=False):
        accuracy = 100 * trials["validation_top1"]
        for axis, key in zip(axes[0], keys, strict=False):
            order = sorted(trials[key].astype(str).unique(), key=lambda v: (not v.isdigit(), int(v) if v.isdigit() else 0))
            at = trials[key].astype(str).map(order.index)
            axis.plot(*zip(*sorted(zip(at, accuracy, strict=True)), strict=True), marker="o", **style)
            axis.set(xticks=range(len(order)), xticklabels=order, xlabel=key, ylabel="validation accuracy (%)")
        complete = trials[trials["state"] == "complete"].sort_values("trial")
        last = axes[0][-1]
        best = 100 * complete["validation_top1"].cummax()
        last.plot(trials["trial"], accuracy, "o", color=style["color"], markersize=4)
        last.step(complete["trial"], best, where="post", label=labels[model], **style)
    axes[0][-1].set(xlabel="trial", ylabel="validation accuracy (%), best so far")
    axes[0][-1].legend(loc="lower right")
    return figure


Reader = Callable[[Spec, dict[str, list[str]]], pd.DataFrame]
Drawer = Callable[[pd.DataFrame, dict[str, str]], Figure]

KINDS: dict[str, tuple[Reader, Drawer]] = {
    "curves": (read_curves, draw_curves),
    "activations": (read_activations, draw_activations),
    "spectrum": (read_spectrum, draw_spectrum),
    "search": (read_search, draw_search),
}
