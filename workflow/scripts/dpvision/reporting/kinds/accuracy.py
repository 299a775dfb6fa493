"""A table of accuracies, or of minutes: a row a cell and metric."""

import statistics
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import Table
from dpvision.config.base import Distinct, Name
from dpvision.config.metrics import NO_AVERAGE, NOTHING_HELD_OUT, Metric, measured

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """A table of accuracies."""

    kind: Literal["accuracy"]
    """What it is."""
    metrics: Distinct[Metric] | None = None
    """A row of a cell for each; null: what the paper prints of the data set, on the test examples, at the last step, in the
    authors' protocol at the best epoch."""
    privacy: Distinct[Literal["epsilon_pld", "mu", "true_positives", "advantage", "epsilon_covered"]] | None = None
    """Numbers of the privacy spent that people read beside the accuracies, of the training that spent most: ε by the
    distribution of the privacy loss, μ, true positives at 0.1 % false ones, the advantage, ε with a covered search. The CSV
    has them in any case."""
    works: dict[Name, str] | None = None
    """Other works among the printed numbers, by what published.yaml calls their models. A display label."""

    READS: ClassVar = {
        "metrics": ("train/metrics.json",),
        "ledgers": ("train/ledger.json",),
        "provenance": ("train/provenance.json",),
    }


DECIMALS = 2
CURVE = ("mu", "true_positives", "advantage")
NOTE = "Accuracies in per cent of the {split} examples. Ours: {how}."
SOLVED = "σ the least for the ε"
HELD_OUT = "held-out training examples {roles}"
NOTHING = "where nothing was held out, outside of the protocol paper, nothing was chosen within a training"
AVERAGED = "Averaged: of the moving average of the weights, instead of the weights of the last step."
WEIGHTS = {
    "last_step": "at the last step",
    "averaged": "of the moving average of the weights at the last step",
    "best_epoch": "at the epoch that held-out examples found best, in the protocol paper the test split",
}
PAPER = (
    "Authors' code (the protocol `paper`): trained as that does, with nothing held out, and the test split steering the "
    "learning rate and picking the best epoch, which is what the paper prints; its ε is what that spent."
)
SELECTION = (
    "Of that, choosing the best epoch on the test split gained {least:.2f} to {most:.2f} points (`selection`, in the CSV)."
)
MINUTES = "Minutes: of one training, on the machine that its provenance.json describes."


def notes(spec: "Spec", inputs: dict[str, list[str]], frame: "pd.DataFrame") -> list[str]:
    asked = [metric for metric in spec.get("metrics", []) if metric["name"] != "minutes"]
    splits = dict.fromkeys(metric["split"] for metric in asked)
    weights = dict.fromkeys(WEIGHTS[metric["weights"]] for metric in asked)
    said = {
        AVERAGED: "averaged" in frame,
        PAPER: "selection" in frame or (bool(asked) and any(cell["at"]["protocol"] == "paper" for cell in spec["cells"])),
        MINUTES: "minutes" in set(frame.loc[frame["state"] == "run", "metric"]),
    }
    places = [cell["at"] for cell in spec["cells"]]
    how = [*weights] or [WEIGHTS["last_step"]]
    if any(at["epsilon"] is not None for at in places):
        how.append("σ as the configuration gives it, where it does" if any("sigma" in at for at in places) else SOLVED)
    held_out = [at["held_out"] for at in places if at["protocol"] == "clean"]
    roles = _held_out_roles(spec, inputs) or ["steered nothing"] * any(held_out)
    what = [HELD_OUT.format(roles=" and ".join(roles))] * bool(roles) + [NOTHING] * (not all(held_out))
    note = NOTE.format(split=" and ".join(splits) or "test", how="; ".join([", ".join(how), *what]))
    gained = frame["selection"].dropna() if "selection" in frame else []
    selected = [SELECTION.format(least=min(gained), most=max(gained))] if len(gained) else []
    return [note, *(text for text, so in said.items() if so), *selected]


def _held_out_roles(spec: "Spec", inputs: dict[str, list[str]]) -> list[str]:
    """Say what held-out examples decided in the trainings that are shown, but for the best epoch."""
    from dpvision.reporting.left_out import read_trainings
    from dpvision.training.schedules import follows_validation

    runs = [training.spec for training in read_trainings(spec["cells"], inputs)]
    schedules = {run["recipe"]["schedule"]["name"] for run in runs if run["data"]["validation"]}
    roles = ["steered a learning rate that follows the loss"] * any(map(follows_validation, schedules))
    roles += ["ended trainings"] * any(run["recipe"].get("stop") for run in runs)
    return roles + ["decided what a search found"] * any(run.get("found_by") for run in runs)


Beside = Callable[[dict, str | None, str], dict[str, Any]]
"""What stands beside a number of a cell: by the cell, the weights and the metric."""


def frame(spec: "Spec", inputs: dict[str, list[str]], beside: Beside = lambda cell, weights, metric: {}) -> "pd.DataFrame":
    from dpvision.reporting.tables import by_folder, frame_of, metrics_of, row

    records = {name: by_folder(inputs[name]) for name in ("metrics", "ledgers", "provenance")}
    rows = []
    for cell in spec["cells"]:
        for metric in spec.get("metrics") or [{"name": name} for name in metrics_of(spec, cell)]:
            name = metric["name"]
            weights, split, _ = measured(cell["at"]["protocol"], **metric)
            lacking = _lacking(cell, records["metrics"], weights, split)
            values = dict.fromkeys(cell["work"]["train"]) if lacking else _of_seeds(cell, records, name, weights, split)
            found = row(spec, cell, name, values, name, weights, split, lacking or "no finite value")
            found |= beside(cell, weights, name) | _spent(cell, records["ledgers"])
            if "metrics" not in spec and name != "minutes":
                found |= _beside(spec, cell, records, name, values)
            rows.append(found)
    works = spec.get("works") or {}
    return frame_of(spec, rows).replace({"model": works}) if works else frame_of(spec, rows)


def _lacking(cell: dict, metrics: dict[str, dict], weights: str | None, split: str | None) -> str | None:
    """Say why a cell's records have no such number; nothing where they have."""
    records = [metrics[run] for run in _runs(cell)]
    if weights is None:  # minutes
        return None
    if any(weights not in record for record in records):
        return NO_AVERAGE if weights == "averaged" else NOTHING_HELD_OUT
    by_test = split == "validation" and cell["at"]["protocol"] == "paper"  # it is the test split's number that stands there
    return NOTHING_HELD_OUT if by_test or any(split not in record[weights] for record in records) else None


def _beside(spec: "Spec", cell: dict, records: dict[str, dict], name: str, values: dict[str, Any]) -> dict[str, float | None]:
    """Return the columns beside ours: of averaged weights, and in the authors' protocol what choosing by test gained."""
    from dpvision.reporting.tables import summary

    found: dict[str, float | None] = {}
    if all("averaged" in records["metrics"][run] for run in _runs(cell)):
        found["averaged"] = summary(spec, _of_seeds(cell, records, name, "averaged", "test").values()).value
    if cell["at"]["protocol"] == "paper":
        last = _of_seeds(cell, records, name, "last_step", "test")
        found["last_step"] = summary(spec, last.values()).value
        found["selection"] = statistics.mean(values[seed] - last[seed] for seed in values)
    return found


def _runs(cell: dict) -> list[str]:
    return list(cell["work"]["train"].values())


def _of_seeds(cell: dict, records: dict[str, dict], name: str, weights: str | None, split: str | None) -> dict[str, Any]:
    """Return by seed a training's accuracy with these weights on these examples, or its minutes."""
    runs = cell["work"]["train"].items()
    if name == "minutes":
        seconds = {seed: records["provenance"][run]["sessions"] for seed, run in runs}
        return {seed: sum(session["seconds"] for session in sessions) / 60 for seed, sessions in seconds.items()}
    return {seed: 100 * records["metrics"][run][weights][split][name] for seed, run in runs}


def _spent(cell: dict, ledgers: dict[str, dict]) -> dict[str, Any]:
    """Return the ε of the training that spent most, and the most that an attacker reaches where ledgers say it."""
    of_cell = [ledgers[run] for run in _runs(cell) if ledgers[run]["epsilon"]]
    found = {f"epsilon_{by}": _most(ledger["epsilon"].get(by) for ledger in of_cell) for by in ("rdp", "prv")}
    if any("curve" in ledger for ledger in of_cell):  # those of before 2026-11 have none
        found["epsilon_pld"] = _most(ledger["epsilon"].get("pld") for ledger in of_cell)
        found |= {name: _most(ledger.get("curve", {}).get(name) for ledger in of_cell) for name in CURVE}
    searches = [search for ledger in of_cell for search in ledger.get("searches", [])]
    for name in ("epsilon_all_composed", "epsilon_covered"):
        if (with_search := _most(search.get(name) for search in searches)) is not None:
            found[name] = with_search
    return found


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
