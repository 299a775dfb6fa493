"""A table of what searches found: the best trial, the ten best, and what trainings with the found values reach."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.reporting.kinds import accuracy, search, tuned

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec

TEN = 10


class Options(accuracy.Options):
    """Accuracies of trainings with the values that searches found; beside them the best trial and the mean of the ten best."""

    kind: Literal["best_trials"]  # type: ignore[assignment]
    """What it is."""
    statistic: Literal["median", "mean", "best"] = "mean"
    """Over the seeds."""
    spread: Literal["standard_deviation", "standard_error"] | None = "standard_deviation"
    """Over the seeds, shown behind ±: the standard deviation with n - 1, or that divided by the root of n; null: none."""

    READS: ClassVar = {
        **accuracy.Options.READS,
        "provenance": ("train/provenance.json", "search/provenance.json"),
        "studies": ("search/best.json",),
        "trials": ("search/trials.csv",),
    }

    def faults(self, models: dict, groups: list) -> Any:
        yield from search.of_searches(models, groups)


DECIMALS = accuracy.DECIMALS
NOTE = (
    "Best trial, and mean of the ten best or of as many as there are (n): of the trials of a cell's search that were not given "
    "up, by their {by}; accuracies in per cent of the held-out examples, after the last step. Each trial trained with the "
    "search's seed at the search's ε."
)
BY = {
    "validation_top1": "accuracy on the held-out examples",
    "averaged_validation_top1": "accuracy on the held-out examples with averaged weights",
    "validation_loss": "loss on the held-out examples",
}


def notes(spec: "Spec", inputs: dict[str, list[str]], frame: "pd.DataFrame") -> list[str]:
    from dpvision.reporting.tables import by_folder

    studies = by_folder(inputs["studies"])
    by = " or ".join(BY[objective] for objective in dict.fromkeys(map(_objective, studies.values())))
    return [*accuracy.notes(spec, inputs, frame), NOTE.format(by=by), *tuned.found_note(spec, inputs)]


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    import pandas as pd

    from dpvision.reporting.tables import by_folder

    studies = by_folder(inputs["studies"])
    tables = {Path(file).parent.name: pd.read_csv(file) for file in inputs["trials"]}

    def beside(cell: dict, weights: str | None, metric: str) -> dict[str, Any]:
        """Return the columns of a cell's search; none where it has no search, or none of its trials has such a number."""
        column = f"{'averaged_' if weights == 'averaged' else ''}validation_{metric}"
        for study in cell["work"].get("search", {}).values():
            if column in tables[study]:
                best = _best(tables[study], _objective(studies[study]))[column]
                return {
                    "best_trial": 100 * best.iloc[0],
                    "ten_best": 100 * best.mean(),
                    "ten_best_n": len(best),
                    "found": tuned.found_values(studies[study]),
                }
        return {}

    return accuracy.frame(spec, inputs, beside)


def _best(trials: "pd.DataFrame", objective: str) -> "pd.DataFrame":
    """Return the ten best of the trials that were not given up, or as many as there are, the best first."""
    from dpvision.plan import specs  # which imports the kinds

    complete = trials[trials["state"] == "complete"]
    scores = complete[objective].map(lambda value: specs.score(objective, value))
    return complete.loc[scores.sort_values(ascending=False, kind="stable").index[:TEN]]


def _objective(best: dict[str, Any]) -> str:
    """Return what a search chose by, as its best.json says."""
    return next(name for name in BY if name in best)
