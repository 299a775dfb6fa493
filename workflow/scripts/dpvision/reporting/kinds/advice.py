"""A page of advice from whatever was tuned: at this batch size and network, which σ, how many steps, which learning rate."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import Table
from dpvision.reporting.kinds import search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """The best settings that searches found, and what they say of the paper's three findings; it needs no further training."""

    kind: Literal["advice"]
    """What it is."""

    READS: ClassVar = {
        "studies": ("search/best.json",),
        "trials": ("search/trials.csv",),
        "provenance": ("search/provenance.json",),
    }

    def faults(self, models: dict, groups: list) -> Any:
        yield from search.of_searches(models, groups)
        if any(not any("recipe.batch" in point for point in (*(cells.points or []), cells.vary or {})) for cells in groups):
            yield "cells", "each of its groups needs recipe.batch among what it varies, be it of one value"


DECIMALS = 2
NOTE = (
    "A row: the best of all trials at this batch size, by the accuracy on held-out examples that the search chose by, with one "
    "seed. Points: searches that it is the best of. At an edge: better values may lie beyond what was searched. "
    "A finding on batches holds if the setting grows with a power of the batch of at least 0.5 in the half where it should, "
    "and of less than 0.5 either way in the other."
)
FINDINGS = {
    "an optimal noise multiplier": "§5: at a fixed batch size there is an optimal σ, and with it an optimal number of steps",
    "epochs grow with the batch": "§5: the best number of epochs is constant for small batches, then grows in proportion",
    "the rate follows the batch, then stays": "§5: the best rate grows in proportion for small batches, then is constant",
}
GROWS, STAYS = 0.5, 0.5  # the power of the batch from which a setting grows with it, and up to which it stays
SETTINGS = ("dataset", "model", "epsilon", "recipe.augmentation.views", "recipe.batch")


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each search: its best trial."""
    import pandas as pd

    from dpvision.reporting.points import best_trial, by_folder, edges_of, read_by_folder, studies_of

    studies, tables = read_by_folder(inputs["studies"]), by_folder(inputs["trials"])
    rows = []
    for cell in spec["cells"]:
        at = cell["at"]
        for study in studies_of(cell):
            found = studies[study]
            best = best_trial(pd.read_csv(tables[study]), found["values"])
            rate = found["values"].get("recipe.optimizer.learning_rate", at.get("recipe.optimizer.learning_rate"))
            by = next(name for name in ("averaged_validation_top1", "validation_top1", "validation_loss") if name in found)
            accuracy = best[by.replace("_loss", "_top1")]
            row = {**dict.fromkeys(SETTINGS), **at, "best_sigma": best["sigma"], "best_steps": best["steps"]}
            row |= {"best_epochs": best["steps"] * best["sampling_rate"], "best_rate": rate, "accuracy": 100 * accuracy}
            rows.append(
                row | {"trials": found["trials"], "edges": edges_of(cell, studies), "varied_sigma": "budget.sigma" in at}
            )
    return pd.DataFrame(rows)


COLUMNS = {"recipe.augmentation.views": "augmult", "recipe.batch": "batch size"}


def shown(frame: "pd.DataFrame", spec: "Spec", labels: dict[str, Any]) -> "pd.DataFrame":
    """Return the best point of each network, ε, number of views and batch size."""
    import pandas as pd

    from dpvision.reporting.markup import number

    rows = []
    for _, points in frame.groupby(list(SETTINGS), sort=False, dropna=False):
        best = points.loc[points["accuracy"].idxmax()]
        row = {"data set": best["dataset"], "model": labels["models"].get(best["model"], best["model"])}
        row |= {"ε": number(best["epsilon"])} | {head: number(best[name]) for name, head in COLUMNS.items()}
        row |= {"σ": number(best["best_sigma"]), "steps": number(best["best_steps"], 0)}
        row |= {"epochs": number(best["best_epochs"], 0), "learning rate": number(best["best_rate"])}
        row |= {"accuracy": number(best["accuracy"], 2), "trials": number(points["trials"].sum(), 0)}
        rows.append(row | {"points": str(len(points)), "at an edge": "yes" if best["edges"] else "no"})
    return pd.DataFrame(rows)


# --- the paper's findings, by these points ---


def notes(spec: "Spec", inputs: dict[str, list[str]], frame: "pd.DataFrame") -> list[str]:
    """Return what rows are, and a sentence on each finding with the points that it rests on."""
    said = [f"{finding} ({FINDINGS[finding]}): {verdict}." for finding, verdict in judged(frame)]
    edges = sorted({edge for edge in frame["edges"] if edge})
    return [NOTE, *said, *([f"At an edge: {'; '.join(edges)}."] if edges else [])]


def judged(frame: "pd.DataFrame") -> "Iterator[tuple[str, str]]":
    """Yield each finding with what the points say of it, for each network and ε."""
    judges: dict[str, Callable[[pd.DataFrame], str]] = {
        "an optimal noise multiplier": _of_noise,
        "epochs grow with the batch": lambda points: _of_batch(points, "best_epochs", grows="large"),
        "the rate follows the batch, then stays": lambda points: _of_batch(points, "best_rate", grows="small"),
    }
    keys = ["dataset", "model", "epsilon", "recipe.augmentation.views"]
    for finding, judge in judges.items():
        verdicts = []
        for place, points in frame.groupby(keys, sort=False, dropna=False):
            if verdict := judge(points):
                views = "" if place[3] != place[3] or place[3] is None else f", {place[3]:g} views"
                verdicts.append(f"{place[1]} on {place[0]} at ε = {place[2]:g}{views}: {verdict}")
        yield finding, "; ".join(verdicts) or "no points that could say so"


def _of_noise(points: "pd.DataFrame") -> str:
    """Say at each batch size whether the best of at least three σ lies between the others."""
    said = []
    for batch, of_batch in points[points["varied_sigma"]].groupby("recipe.batch"):
        if len(of_batch) < 3:
            said.append(f"undecided at batch {batch:g}, with {len(of_batch)} values of σ")
            continue
        best = of_batch.loc[of_batch["accuracy"].idxmax()]
        inside = of_batch["best_sigma"].min() < best["best_sigma"] < of_batch["best_sigma"].max()
        each = ", ".join(
            f"σ {row.best_sigma:g} {row.accuracy:.1f} %" for row in of_batch.sort_values("best_sigma").itertuples()
        )
        said.append(f"{'holds' if inside else 'not seen, the best is at an end,'} at batch {batch:g} ({each})")
    return " and ".join(said)


def _of_batch(points: "pd.DataFrame", setting: str, grows: str) -> str:
    """Say whether a setting grows with the batch among small ones and stays among large ones, or the other way about."""
    import math

    best = points.loc[points.groupby("recipe.batch")["accuracy"].idxmax()].sort_values("recipe.batch")
    sizes, values = best["recipe.batch"].tolist(), best[setting].tolist()
    if len(sizes) < 2:
        return ""
    each = ", ".join(f"{value:.4g} at {size:g}" for size, value in zip(sizes, values, strict=True))
    if len(sizes) < 4:
        return f"undecided, {len(sizes)} batch sizes ({each})"
    middle = len(sizes) // 2

    def power(low: int, high: int) -> float:
        return math.log(values[high] / values[low]) / math.log(sizes[high] / sizes[low])

    halves = {"small": power(0, middle), "large": power(middle, len(sizes) - 1)}
    other = {"small": "large", "large": "small"}[grows]
    holds = halves[grows] >= GROWS and abs(halves[other]) < STAYS
    return (
        f"{'holds' if holds else 'does not hold'}, powers of the batch {halves['small']:.2f} and {halves['large']:.2f} ({each})"
    )
