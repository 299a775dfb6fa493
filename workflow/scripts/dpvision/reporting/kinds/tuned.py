"""A table of tuned cells: the best trial beside the printed number, then trainings with what was found, and the price."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import Table

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec

TEN = 10


class Options(Table):
    """The best of each search's trials, trainings with its values, their parameters, and what the search costs in ε."""

    kind: Literal["tuned"]
    """What it is."""

    LAYOUT: ClassVar = {"panels": ["dataset"], "columns": ["metric", "split", "statistic"]}
    READS: ClassVar = {
        "metrics": ("train/metrics.json",),
        "ledgers": ("train/ledger.json",),
        "weights": ("train/weights.safetensors",),
        "studies": ("search/best.json",),
        "trials": ("search/trials.csv",),
        "provenance": ("train/provenance.json", "search/provenance.json"),
    }


DECIMALS = 2
NOTE = "Accuracies in per cent, after the last step."
UNTUNED = "Of trainings, one a seed, with the values of the recipe, without a search."
TUNED = (
    "Best trial: the highest accuracy on the held-out examples among the trials that were not given up, which is what is "
    "printed; mean of the ten best: by the same, or of as many as there are (n). The others are of trainings, one a seed, with "
    "the values that the search's objective found best, or, where there was no search, the recipe's. ε with search: all "
    "trials and one training as one composition, which no printed number counts. It counts held-out examples, which chose "
    "the values, as public."
)
FOUND = "Found: {}."


def notes(spec: "Spec", inputs: dict[str, list[str]], frame: "pd.DataFrame") -> list[str]:
    is_tuned = any(cell["work"].get("search") for cell in spec["cells"])
    return [f"{NOTE} {TUNED if is_tuned else UNTUNED}", *found_note(spec, inputs)]


def found_note(spec: "Spec", inputs: dict[str, list[str]]) -> list[str]:
    """Say which values the searches found for the cells, and which of them lie at an end of what was searched."""
    from dpvision.reporting.coordinates import cell_name, telling
    from dpvision.reporting.tables import by_folder

    studies = by_folder(inputs["studies"])
    names = dict.fromkeys(["model", *telling([cell["at"] for cell in spec["cells"]])])
    found: dict[str, None] = {}
    for cell in spec["cells"]:
        for study in cell["work"].get("search", {}).values():
            edges = "".join(f" ({edge})" for edge in studies[study].get("edges", []))
            found[f"{cell_name(cell['at'], names)}: {found_values(studies[study])}{edges}"] = None
    return [FOUND.format("; ".join(found))] if found else []


def found_values(best: dict[str, Any]) -> str:
    """Write what a search found, as its best.json says: clip 3.25, epochs 90."""
    values = {key.rpartition(".")[2]: value for key, value in best["values"].items()}
    return ", ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items())


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    from dpvision.reporting.records import Records
    from dpvision.reporting.tables import by_folder, frame_of, row

    metrics, ledgers, networks = by_folder(inputs["metrics"]), by_folder(inputs["ledgers"]), Records({"": inputs["weights"]})
    rows = []
    for cell in spec["cells"]:
        runs, best = cell["work"]["train"], best_trials(cell, inputs["trials"])
        spent = [ledgers[run]["epsilon"] or {} for run in runs.values()]
        about = {f"epsilon_{by}": max((one[by] for one in spent if by in one), default=None) for by in ("rdp", "prv")}
        if best is not None:
            printed = row(spec, cell, "top1", {}, "top1", "last_step", "validation")
            rows.append(_of_trials(printed, f"best of {len(best)} trials", best[:1]) | about)
            ten = row(spec, cell, "top1", {}, None, "last_step", "validation")
            rows.append(_of_trials(ten, "mean of the ten best", best[:TEN]) | about)
        for split in ("validation", "test"):
            values = {seed: 100 * metrics[run]["last_step"][split]["top1"] for seed, run in runs.items()}
            printed_of = "top1" if best is None and split == "validation" else None
            rows.append(row(spec, cell, "top1", values, printed_of, "last_step", split) | {"split": split} | about)
        counted = {seed: count / 1e6 for seed, run in runs.items() if (count := networks.parameters(run))}
        if counted or not runs:  # kept records have no weights to count
            of_parameters = row(spec, cell, "million_parameters", counted, "million_parameters", "last_step", "test")
            rows.append(of_parameters | {"split": None})
        if best is not None:
            price = {seed: _price(ledgers[run]) for seed, run in runs.items()}
            rows.append(row(spec, cell, "epsilon_with_search", price, None) | {"split": None} | about)
    return frame_of(spec, rows)


def best_trials(cell: dict, tables: list[str]) -> "pd.Series | None":
    """Return the accuracies of a cell's trials that were not given up, the best first; None: it has no search."""
    import pandas as pd

    files = {Path(file).parent.name: file for file in tables}
    for study in cell["work"].get("search", {}).values():
        trials = pd.read_csv(files[study])
        found = 100 * trials.loc[trials["state"] == "complete", "validation_top1"]
        return found.sort_values(ascending=False, kind="stable")
    return None


def _of_trials(row: dict[str, Any], statistic: str, trials: "pd.Series") -> dict[str, Any]:
    """Return a row with the mean of some trials in place of that over seeds."""
    ours = trials.mean()
    difference = None if row["published"] is None else ours - row["published"]
    of = {"statistic": statistic, "n": len(trials), "ours": ours, "difference": difference, "state": "run"}
    return row | of | {"split": "validation"}


def _price(ledger: dict[str, Any]) -> float | None:
    """Return ε of a search and the training that it chose for: as a theorem covers it, or of all trials composed."""
    searches = ledger.get("searches") or []
    return max((each.get("epsilon_covered") or each["epsilon_all_composed"] for each in searches), default=None)
