"""Records of searches, analyses and audits: they are of the specs that their folders name, and their numbers follow."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpvision.audit.judge import VERDICTS
from dpvision.files import read_json
from dpvision.plan import space, specs
from dpvision.plan.stages import STAGES, Key
from dpvision.privacy.accounting import Mechanism
from dpvision.privacy.audit.rates import Counts
from dpvision.privacy.ledger import parts_of, price
from dpvision.verify.finding import ABSENT, Finding, close, equal
from dpvision.verify.place import Place
from dpvision.verify.runs import TOLERANCE, data_of


def missing(place: Place, key: Key) -> list[Finding]:
    """Find what is missing of a record."""
    of = f"part of the record of a {STAGES[key[0]].words[0]}"
    return [
        Finding(place.name(Path(file)), "file missing", of, ABSENT)
        for file in place.plan.record(key)
        if not Path(file).exists()
    ]


def study(place: Place, key: Key) -> Iterator[Finding]:
    """Check that a search's best trial is the best of its trials."""
    if absent := missing(place, key):
        yield from absent
        return
    name, folder = key[1], Path(place.plan.folder(key))
    where = place.name(folder)
    best, provenance = read_json(folder / "best.json"), read_json(folder / "provenance.json")
    yield from equal(
        f"{where}/provenance.json", "digest of the spec, by the folder's name", name.rsplit("-", 1)[1], provenance["spec"]
    )
    yield from equal(f"{where}/best.json", "study", name, best["study"])
    with open(folder / "trials.csv", encoding="utf-8", newline="") as file:
        trials = [row for row in csv.DictReader(file) if row["state"] in ("complete", "pruned")]
    yield from equal(f"{where}/best.json", "trials by trials.csv", len(trials), best["trials"])
    complete = [row for row in trials if row["state"] == "complete"]
    yield from equal(f"{where}/best.json", "pruned by trials.csv", len(trials) - len(complete), best["pruned"])
    objective = next(name for name in specs.OBJECTIVES if name in best)
    scores = [specs.score(objective, float(row[objective])) for row in complete]
    yield from equal(f"{where}/best.json", f"{objective} by trials.csv", specs.score(objective, max(scores)), best[objective])
    winners = [
        {key: row[key] for key in best["values"]} for row, score in zip(complete, scores, strict=True) if score == max(scores)
    ]
    chosen = {key: str(value) for key, value in best["values"].items()}
    if chosen not in winners:
        yield Finding(f"{where}/best.json", "values by trials.csv", " or ".join(map(str, winners)), chosen)
    if spec := place.plan.work[key]:
        yield from equal("plan.json", f"name of the study {name}", specs.study_name(spec), name)
        yield from equal("plan.json", f"what the study {name} chooses by", specs.objective(spec), objective)
        edges = space.edges(spec["space"], best["values"])
        yield from equal(f"{where}/best.json", "edges by the spec", edges, best.get("edges", []))
        yield from _price_of_trials(spec, best, trials, f"{where}/best.json")


def _price_of_trials(spec: specs.Spec, best: dict[str, Any], trials: list[dict[str, str]], where: str) -> Iterator[Finding]:
    """Compare q, σ and steps of the trials with those that their values give."""
    expected, said = price(spec, [_values(spec, row) for row in trials]), best["privacy"]
    if spec["run"]["budget"] is None:
        yield from equal(where, "privacy of trials without a budget", expected, said)
        return
    yield from equal(where, "privacy.trials", best["trials"], said["trials"])
    if "split" in said:  # an older best.json does not say it
        yield from equal(where, "privacy.split by the spec", expected["split"], said["split"])
    yield from _same_mechanisms(where, "privacy", parts_of(expected), parts_of(said))
    if "covered" in expected and "covered" in said:
        one, other = expected["covered"], said["covered"]
        yield from equal(where, "privacy.covered.mean_trials by the spec", one["mean_trials"], other["mean_trials"])
        yield from _same_mechanisms(where, "privacy.covered.possible", parts_of(one["possible"]), parts_of(other["possible"]))
        if "choices" in other:  # an older best.json does not say it
            yield from equal(where, "privacy.covered.choices by the spec", one["choices"], other["choices"])
    else:
        yield from equal(where, "privacy.covered", expected.get("covered", ABSENT), said.get("covered", ABSENT))


def _same_mechanisms(
    where: str, what: str, by_spec: list[tuple[int, Mechanism]], said: list[tuple[int, Mechanism]]
) -> Iterator[Finding]:
    """Compare how many trials have which q, σ and steps."""
    counts = [[count for count, _ in parts] for parts in (by_spec, said)]
    yield from equal(where, f"{what}, trials by q, σ and steps", *counts)
    for (_, trial), (_, found) in zip(by_spec, said, strict=False):
        yield from equal(where, f"{what}.sampling_rate by the spec", trial.q, found.q)
        yield from equal(where, f"{what}.steps by the spec", trial.steps, found.steps)
        if abs(trial.sigma - found.sigma) > TOLERANCE:
            yield Finding(where, f"{what}.noise_multiplier for the spec's budget", trial.sigma, found.sigma)


def _values(spec: specs.Spec, row: dict[str, str]) -> dict[str, Any]:
    """Return a trial's values, which are text in trials.csv."""
    return {key: space.parsed(values, row[key]) for key, values in spec["space"].items()}


def analysis(place: Place, key: Key) -> Iterator[Finding]:
    """Check that an analysis is of the spec that its folder names."""
    if absent := missing(place, key):
        yield from absent
        return
    folder = Path(place.plan.folder(key))
    where = place.name(folder)
    provenance = read_json(folder / "provenance.json")
    name = folder.name.rsplit("-", 1)[1]
    yield from equal(f"{where}/provenance.json", "digest of the spec, by the folder's name", name, provenance["spec"])
    if place.archive:
        spec = place.plan.work[key]
        yield from equal("plan.json", f"name of the analysis {folder.name}", specs.analysis_name(spec), folder.name)
        yield from data_of(place, place.plan.run_of(key), provenance, f"{where}/provenance.json")


def audit(place: Place, key: Key) -> Iterator[Finding]:
    """Check that an audit's verdict is that of its tests, and each lower bound that of its counts."""
    if absent := missing(place, key):
        yield from absent
        return
    folder = Path(place.plan.folder(key))
    where = f"{place.name(folder)}/audit.json"
    about, provenance = read_json(folder / "audit.json"), read_json(folder / "provenance.json")
    yield from equal(where, "digest of the spec, by the folder's name", folder.name.rsplit("-", 1)[1], provenance["spec"])
    found = {row["verdict"] for row in about["tests"]}
    yield from equal(where, "verdict", next(word for word in VERDICTS if word in found), about["verdict"])
    for row in about["bounds"]:
        counts = Counts(*(row[name] for name in ("inside", "out", "false_negatives", "false_positives")))
        bound = counts.bounds(about["confidence"]).epsilon(row["delta"])
        yield from close(where, f"lower bound of {row['setting']}, by its counts", bound, row["lower_bound"])
