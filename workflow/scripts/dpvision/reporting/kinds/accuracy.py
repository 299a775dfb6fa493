"""A table of accuracies, or of minutes: a row a cell and metric."""

import statistics
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import Table

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """A table of accuracies."""

    kind: Literal["accuracy"]
    """What it is."""

    READS: ClassVar = {
        "metrics": ("train/metrics.json",),
        "ledgers": ("train/ledger.json",),
        "provenance": ("train/provenance.json",),
    }


DECIMALS = 2
NOTE = (
    "Accuracies in per cent of the test examples. Ours, and each seed's, which the CSV has: at the last step, σ the least for "
    "the ε; held-out training examples steered a learning rate that follows the loss, and whatever a search chose. ε (RDP) and "
    "ε (PRV): spent by one training, by two accountants, neighbours differing in one example; not counted: searches and the "
    "held-out examples (ledger.json of each run). n: trainings, one a seed."
)
AVERAGED = "Averaged: the moving average of the weights instead of those of the last step."
PAPER = (
    "Protocol paper: trained as the authors' code does, with nothing held out, and the test split steering the learning rate "
    "and picking the best epoch, which is what the paper prints; their ε is what that spent. Selection: by how much the best "
    "epoch exceeds the last step, the mean over the seeds: gained by choosing on the test split."
)
MINUTES = "Minutes: of one training, on the machine that its provenance.json describes."


def notes(spec: "Spec", inputs: dict[str, list[str]], frame: "pd.DataFrame") -> list[str]:
    said = {AVERAGED: "averaged" in frame, PAPER: "selection" in frame, MINUTES: "minutes" in set(frame["metric"])}
    return [NOTE, *(text for text, so in said.items() if so)]


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    from dpvision.reporting.tables import by_folder, frame_of, metrics_of, row, summary

    records = {name: by_folder(inputs[name]) for name in ("metrics", "ledgers", "provenance")}
    rows = []
    for cell in spec["cells"]:
        chosen = cell["at"]["protocol"] == "paper"
        for metric in metrics_of(spec, cell):
            values = _of_seeds(cell, records, metric, "best_epoch" if chosen else "last_step")
            found = row(spec, cell, metric, values, metric) | _spent(cell, records["ledgers"])
            if metric != "minutes" and all("averaged" in records["metrics"][run] for run in _runs(cell)):
                found["averaged"] = summary(spec, _of_seeds(cell, records, metric, "averaged").values()).value
            if metric != "minutes" and chosen:
                last = _of_seeds(cell, records, metric, "last_step")
                found["last_step"] = summary(spec, last.values()).value
                found["selection"] = statistics.mean(values[seed] - last[seed] for seed in values)
            rows.append(found)
    return frame_of(spec, rows)


def _runs(cell: dict) -> list[str]:
    return list(cell["work"]["train"].values())


def _of_seeds(cell: dict, records: dict[str, dict], metric: str, weights: str) -> dict[str, float]:
    """Return by seed a training's accuracy with these weights, or its minutes."""
    runs = cell["work"]["train"].items()
    if metric == "minutes":
        seconds = {seed: records["provenance"][run]["sessions"] for seed, run in runs}
        return {seed: sum(session["seconds"] for session in sessions) / 60 for seed, sessions in seconds.items()}
    return {seed: 100 * records["metrics"][run][weights]["test"][metric] for seed, run in runs}


def _spent(cell: dict, ledgers: dict[str, dict]) -> dict[str, Any]:
    """Return the ε of the training that spent most."""
    spent = [ledgers[run]["epsilon"] or {} for run in _runs(cell)]
    return {f"epsilon_{by}": max((e[by] for e in spent if by in e), default=None) for by in ("rdp", "prv")}
