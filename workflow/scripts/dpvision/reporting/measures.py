"""What comparisons share: a number of each side and seed, the effect of a seed's sides, and how both are called; light.

Of a comparison these know what the plan wrote down: its sides, each with its cell's coordinates and its work by seed.
"""

import statistics
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

from dpvision.config.metrics import Weights
from dpvision.plan.specs import Spec
from dpvision.reporting.records import Records

Measure = Callable[[Records, Spec, int, str], float | None]
"""The number of a comparison's side with a seed; none where there is no such record, or no finite number in it."""


class Observed(NamedTuple):
    """The findings of a comparison."""

    values: dict[str, float]
    """The effect by seed, or by the seeds of a group."""
    of_medians: float | None
    """The effect of the medians over the seeds, which is the papers' statistic."""
    points: list[tuple[float, float]] | None = None
    """Logarithms of a coordinate and of a value: the effect is the slope of their line, and they give its interval."""


def work_of(comparison: Spec, side: int) -> dict[str, str]:
    """Return by seed the work that is read of a side."""
    stage = comparison["reads"].split("/")[0]
    return comparison["sides"][side]["work"].get(stage, {})


def of_seeds(comparison: Spec, records: Records, measure: Measure) -> dict[str, list[float]]:
    """Return the numbers of all sides, by the seeds of which none is missing."""
    sides = range(len(comparison["sides"]))
    there = [work_of(comparison, i) for i in sides]
    seeds = [seed for seed in there[0] if all(seed in work for work in there)]
    measured = {seed: [measure(records, comparison, i, seed) for i in sides] for seed in seeds}
    return {seed: [value for value in values if value is not None] for seed, values in measured.items() if None not in values}


def observed_within(comparison: Spec, records: Records, measure: Measure, effect: Callable[..., float]) -> Observed:
    """Return the effect within each seed, and that of the medians."""
    whole = of_seeds(comparison, records, measure)
    values = {seed: effect(comparison, *of_sides) for seed, of_sides in whole.items()}
    medians = [statistics.median(column) for column in zip(*whole.values(), strict=True)]
    return Observed(values, effect(comparison, *medians) if medians else None)


def accuracy(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    """Return an accuracy in per cent, or how far it is above that on other examples, or of other weights."""
    run, split, other = work_of(comparison, side)[seed], comparison.get("split") or "test", comparison.get("less")
    metrics, rows = records.json("metrics.json", run) or {}, records.rows("history.csv", run) or []

    def number(weights: str, split: str) -> float | None:
        name = comparison["metric"]
        if spent := comparison.get("spent"):
            return at_epsilon(rows, f"{'averaged_' if weights == 'averaged' else ''}{split}_{name}", spent)
        found: float | None = metrics.get(weights, {}).get(split, {}).get(name)
        return found

    weights = comparison.get("weights") or ("last_step" if number("averaged", split) is None else "averaged")
    less = (other, split) if other in get_args(Weights) else (weights, other)
    first, second = number(weights, split), number(*less) if other else 0.0
    return None if first is None or second is None else 100 * (first - second)


def at_epsilon(rows: list[dict[str, str]], column: str, level: float) -> float | None:
    """Return a history's number at the last epoch that had spent at most a level of ε.

    None: no epoch is within, it has no such number, or the training ended far below the level.
    """
    spent = [float(row["simulated_epsilon" if "simulated_epsilon" in row else "epsilon"]) for row in rows]
    within = [row for row, epsilon in zip(rows, spent, strict=True) if epsilon <= level]
    if not within or (len(within) == len(rows) and spent[-1] < 0.9 * level):
        return None
    return float(within[-1][column]) if within[-1].get(column) else None


def less(comparison: Spec, first: float, *others: float) -> float:
    return first - sum(others)


def ratio(comparison: Spec, first: float, second: float) -> float:
    return first / second


# --- how they are called ---


class Named(NamedTuple):
    """The sides of a comparison by name."""

    models: list[str]
    cells: list[str]
    """What else tells one side from another."""
    shared: str = ""
    """What all sides share: data set, ε, and what tells them from other cells of the page."""

    @property
    def sides(self) -> list[str]:
        """Return the sides by what tells them apart: their models, their cells, or both."""
        if len(set(self.cells)) == 1:
            return self.models
        if len(set(self.models)) == 1:
            return self.cells
        return [f"{model} ({cell})" for model, cell in zip(self.models, self.cells, strict=True)]

    @property
    def cell(self) -> str:
        """Return the cell of all sides, if they have one."""
        return self.cells[0] if len(set(self.cells)) == 1 else ""

    @property
    def where(self) -> str:
        """Return what all sides share, behind a colon."""
        model = self.models[0] if self.sides == self.cells else ""
        said = [text for text in (model, self.cell, self.shared) if text]
        return f": {', '.join(said)}" if said else ""

    def only(self, *sides: int) -> "Named":
        """Return some of the sides, without what all share."""
        return Named([self.models[i] for i in sides], [self.cells[i] for i in sides])


EXAMPLES = {"train": "training", "validation": "held-out", "test": "test"}
METRICS = {"top1": "accuracy", "top5": "top-5 accuracy"}
WEIGHTS = {"last_step": " at the last step", "averaged": " of averaged weights", "best_epoch": " at the best epoch"}


def called(comparison: Spec) -> str:
    """Call the accuracy that is compared: test accuracy; accuracy of averaged weights, training less held-out."""
    metric, weights = METRICS[comparison["metric"]], WEIGHTS.get(comparison.get("weights", ""), "")
    split = EXAMPLES[comparison.get("split", "test")]
    spent = f" where ε = {comparison['spent']:g} was spent" if "spent" in comparison else ""
    if other := comparison.get("less"):
        return f"{metric}{weights}, {split} less {EXAMPLES.get(other, other.replace('_', ' '))}{spent}"
    return f"{split} {metric}{weights}{spent}"


def text_of(value: Any) -> str:
    """Write the value of a coordinate."""
    return format(value, "g") if isinstance(value, float) else str(value)
