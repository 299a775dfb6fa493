"""The entry for the public list of private results: private-machinelearning.github.io, "Submit Report"."""

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from dpvision.evidence.kept import Kept, not_accounted, price_of, same
from dpvision.files import read_json

HEAD = """# Entries in the form of the public list of private image classification (Private-MachineLearning on GitHub): made by
# `python -m dpvision evidence`. They are of private trainings alone. Simulated trainings are not private. Fill in who you are.
# The noise comes from a known seed. So these are results of research, and the weights are not released.
# `epsilon` is of one training. `not_in_epsilon` says what it leaves out.
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
    specs, ledgers = ([read_json(run / f"{name}.json") for run in runs] for name in ("spec", "ledger"))
    if not ledgers or not all(ledger.get("private") for ledger in ledgers):
        return
    spec, ledger, n = specs[0], ledgers[0], int(row["n"])
    statistic = f"{row['statistic']} of {n} trainings" if n > 1 else "one training"
    yield {
        "public_data": _public(kept, spec),
        "model": kept.called(artifact, "model", row["model"]),
        "epsilon": ledger["epsilon"].get("target") or ledger["epsilon"][ledger["accountant"]],
        "delta": row["delta"],
        "epsilon_covers": f"{ledger['examples']:,} of the {spec['data']['train']:,} training examples",
        "private_accuracy": f"{row['ours']:.2f}% ({statistic})",
        "dp_accountant": ledger["accountant"].upper(),
        "not_in_epsilon": [*_outside(kept, spec, ledgers), *not_accounted(spec, ledger)],
    }


def _outside(kept: Kept, spec: dict[str, Any], ledgers: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what ε leaves out of the data, and what the searches for these trainings spend."""
    if held_out := spec["data"]["validation"]:
        yield f"{held_out:,} of the {spec['data']['train']:,} training examples were held out. No ε covers them."
    if searches := ledgers[0]["searches"]:
        scored, trained_on = kept.scored(spec)
        values = " and ".join(sorted(key.rpartition(".")[2] for key in spec["found_by"]))
        covered = ledgers[0]["examples"] - trained_on
        yield f"{' and '.join(_trials(search) for search in searches)} chose {values}, on the private data."
        yield f"With all trials ε = {max(map(price_of, ledgers)):.2f}. This ε covers {covered:,} examples."
        yield f"The trials were scored on {scored:,} held-out examples, without noise. No ε with the trials covers these."
        if trained_on:
            yield f"Afterwards the training was on {trained_on:,} of these held-out examples too."


def _trials(search: dict[str, Any]) -> str:
    """Say how many trials a search had; of one that its sampler covers the number is a secret."""
    return f"{search['trials']} trials" if "trials" in search else f"trials, {search['mean_trials']} on average,"


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
