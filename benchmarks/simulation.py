"""A test of whether a simulation predicts the training that it stands for: both, on something small enough for both.

    python benchmarks/simulation.py [SEEDS]    -> results/benchmarks/simulation.json, .md, .png

The networks and recipe of the demo on the digits, at ε = 7.42, each as it is (k = 1) and with sample and noise divided by
k, with the same seeds (default 8). Deviations are of means over seeds, with the 95 % confidence interval of a difference of
two means; sampling and noise of every training are its own, so nothing is paired.
"""

import math
import os
import statistics
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # as many trainings side by side as there are cores

import matplotlib.pyplot as plt
from scipy.stats import t

from dpvision import plan
from dpvision.data import download
from dpvision.data.prepare import prepare
from dpvision.files import write_json, write_text
from dpvision.plan import specs

OUT = plan.ROOT / "results" / "benchmarks"
DIVISORS = (1, 4, 8)
EPSILON = 7.42
GROUPS = 8
EPOCHS: int | None = None  # those of the demo


def cells() -> dict[tuple[str, float], specs.Spec]:
    """Return a run without its seed for each model of the demo's Table 1."""
    planned = plan.load({"papers": ["scalenorm"], "scale": "demo"})
    found = {}
    for cell in planned.artifacts["table1"]["cells"]:
        at = cell["at"]
        if at["protocol"] == "clean" and at["epsilon"] == EPSILON:
            run = planned.runs[next(iter(cell["work"]["train"].values()))]
            values = {"model.groups": GROUPS, "recipe.epochs": EPOCHS or run["recipe"]["epochs"]}
            found[at["model"], at["epsilon"]] = specs.with_values(run, values)
    return found


def data(run: specs.Spec, folder: Path) -> Path:
    planned = plan.load({"papers": ["scalenorm"], "scale": "demo"})
    name = run["data"]["name"]
    download.fetch(name, planned.sources[name], None, folder / "raw")
    prepare(planned.of("data")[run["data"]["prepared"]], folder / "raw", folder / "prepared")
    return folder / "prepared"


def accuracy(run: specs.Spec, folder: Path) -> tuple[float, float]:
    """Return the accuracy in per cent of the test examples after the last step; and σ."""
    import torch

    from dpvision.data.prepared import data_part, load
    from dpvision.training.fit import Training

    torch.set_num_threads(1)
    training = Training(run, load(folder, data_part(run)), 512, torch.device("cpu"))
    training.run()
    return 100 * training.history[-1]["test_top1"], training.sigma or 0.0


def measure(seeds: int) -> list[dict]:
    kinds = cells()
    work = [(*key, k, seed) for key in kinds for k in DIVISORS for seed in range(seeds)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = data(next(iter(kinds.values())), Path(scratch))
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
            futures = []
            for model, epsilon, k, seed in work:
                run = specs.with_values(kinds[model, epsilon], {"recipe.simulate": k if k > 1 else None})
                futures.append(pool.submit(accuracy, specs.seeded(run, seed), folder))
            done = []
            for future in futures:
                done.append(future.result())
                print(f"\r{len(done)} of {len(work)} trainings", end="", file=sys.stderr)
    print(file=sys.stderr)
    names = ("model", "epsilon", "k", "seed")
    return [
        dict(zip(names, place, strict=True)) | {"top1": top1, "sigma": sigma}
        for place, (top1, sigma) in zip(work, done, strict=True)
    ]


def difference(a: list[float], b: list[float]) -> tuple[float, float]:
    """Return the difference of the means, b less a, and half the width of its 95 % confidence interval (Welch)."""
    parts = [statistics.variance(values) / len(values) for values in (a, b)]
    if not sum(parts):
        return statistics.mean(b) - statistics.mean(a), 0.0
    freedom = sum(parts) ** 2 / sum(part**2 / (len(v) - 1) for part, v in zip(parts, (a, b), strict=True))
    return statistics.mean(b) - statistics.mean(a), t.ppf(0.975, freedom) * math.sqrt(sum(parts))


def summary(rows: list[dict]) -> list[dict]:
    """Return a row for each cell and k, with how far it is from k = 1."""
    values: dict[tuple, list[float]] = {}
    for row in rows:
        values.setdefault((row["model"], row["epsilon"], row["k"]), []).append(row["top1"])
    found = []
    for (model, epsilon, k), top1 in values.items():
        off, within = difference(values[model, epsilon, 1], top1)
        sigma = next(row["sigma"] for row in rows if (row["model"], row["epsilon"]) == (model, epsilon))
        mean, deviation = statistics.mean(top1), statistics.stdev(top1)
        found.append(
            {"model": model, "epsilon": epsilon, "sigma": sigma, "k": k, "n": len(top1), "mean": mean, "sd": deviation}
            | {"deviation": off, "half_width": within}
        )
    return found


def markdown(found: list[dict]) -> str:
    lines = ["| model | ε | σ | k | n | top-1, mean (sd) | less that of k = 1 |", "|---|---|---|---|---|---|---|"]
    for row in found:
        off = "" if row["k"] == 1 else f"{row['deviation']:+.2f} ± {row['half_width']:.2f}"
        lines.append(
            f"| {row['model']} | {row['epsilon']:g} | {row['sigma'] / row['k']:.3f} | {row['k']} | {row['n']} "
            f"| {row['mean']:.2f} ({row['sd']:.2f}) | {off} |"
        )
    return "\n".join(lines) + "\n"


def draw(found: list[dict], file: Path) -> None:
    figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
    kinds = list(dict.fromkeys((row["model"], row["epsilon"]) for row in found))
    for i, (model, epsilon) in enumerate(kinds):
        rows = [row for row in found if (row["model"], row["epsilon"]) == (model, epsilon) and row["k"] > 1]
        places = [math.log2(row["k"]) + 0.08 * (i - (len(kinds) - 1) / 2) for row in rows]
        bars = {"yerr": [row["half_width"] for row in rows], "fmt": "os^Dvx"[i % 6], "capsize": 2, "markersize": 4}
        axis.errorbar(places, [row["deviation"] for row in rows], label=f"{model}, ε = {epsilon:g}", **bars)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks([math.log2(k) for k in DIVISORS[1:]], [str(k) for k in DIVISORS[1:]])
    axis.set(xlabel="k, which divides sample and noise", ylabel="top-1 less that of the true training")
    axis.legend(fontsize=7, ncols=2)
    figure.savefig(file, dpi=150, metadata={"Software": None})
    plt.close(figure)


def main(seeds: int = 8) -> None:
    rows = measure(seeds)
    found = summary(rows)
    write_json(OUT / "simulation.json", {"rows": rows, "summary": found})
    write_text(OUT / "simulation.md", markdown(found))
    draw(found, OUT / "simulation.png")
    print(markdown(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
