"""The entry for the public list of private results: private-machinelearning.github.io, "Submit Report"."""

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from dpvision.evidence.kept import Kept, price_of, same
from dpvision.files import read_json
from dpvision.looking.text import counted

HEAD = """# Entries in the form of the public list of private image classification (Private-MachineLearning on GitHub): made by
# `python -m dpvision evidence` of trainings that are private; simulated ones are not. Fill in who you are. The noise is from a
# seed that is known: results of research, and no released weights.
"""


def leaderboard(kept: Sequence[Kept]) -> str:
    """Return the entries, one a paper and data set, each with a claim for each network and ε."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in kept:
        for artifact, row in each.trained():
            if row["metric"] == "top1" and not same(row["epsilon"], None) and same(row.get("simulated"), None):
                claims = found.setdefault(
                    (each.labels[artifact]["paper"], each.called(artifact, "dataset", row["dataset"])), []
                )
                claims += [claim for claim in _claims(each, artifact, row) if claim not in claims]
    entries = [
        {"name": paper, "authors": None, "paper": None, "code": None, "venue": None, "venue_date": None}
        | {"private_data": dataset, "claims": claims}
        for (paper, dataset), claims in found.items()
        if claims
    ]
    return HEAD + yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=128)


def _claims(kept: Kept, artifact: str, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the claim of a row, if its trainings are private on their own."""
    runs = kept.runs(artifact, row)
    ledgers = [read_json(run / "ledger.json") for run in runs]
    if not ledgers or not all(ledger.get("private") for ledger in ledgers):
        return
    searched = [price_of(ledger) for ledger in ledgers if ledger.get("searches")]
    choice = f"hyper-parameters chosen on the private data; with all trials ε = {max(searched):.2f}" if searched else "none"
    yield {
        "public_data": _public(kept, read_json(runs[0] / "spec.json")),
        "model": kept.called(artifact, "model", row["model"]),
        "epsilon": ledgers[0]["epsilon"].get("target") or ledgers[0]["epsilon"][ledgers[0]["accountant"]],
        "delta": row["delta"],
        "private_accuracy": f"{row['ours']:.2f}% ({row['statistic']} of {counted('training', 'trainings', int(row['n']))})",
        "dp_accountant": ledgers[0]["accountant"].upper(),
        "not_in_epsilon": choice,
    }


def _public(kept: Kept, spec: dict[str, Any]) -> str:
    """Name what the network was trained on that a training began with, or whose features it saw."""
    start = spec.get("start", {})
    before = spec["data"].get("weights") or start.get("weights") or start
    if "name" in before:
        return kept.plan.weights[before["name"].rsplit("-", 1)[0]]["title"]
    return _shown_to(kept, before["run"]) if before else "none"


def _shown_to(kept: Kept, run: str) -> str:
    """Name the data of a training that was not private; the training itself, where it is not kept."""
    file = kept.folder / "runs" / run / "spec.json"
    name = read_json(file)["data"]["name"] if file.exists() else None
    return next((of["datasets"][name] for of in kept.labels.values() if name in of["datasets"]), f"weights of {run}")
