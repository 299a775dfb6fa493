"""A training's record: it is of the run that its folder names, and its numbers follow from each other."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpvision.data.prepared import content_digest
from dpvision.files import digest, file_digest, read_json
from dpvision.plan import specs
from dpvision.plan.stages import Key
from dpvision.privacy.accounting import Mechanism
from dpvision.privacy.ledger import FORMAT, price, spent, without_curve
from dpvision.privacy.mechanism import mechanism_of
from dpvision.privacy.wordings import is_known, missing_sentences, unknown_sentences
from dpvision.training.digests import digests_of, frozen_sha256
from dpvision.verify.digests import weights_left
from dpvision.verify.finding import ABSENT, Finding, close, equal
from dpvision.verify.place import Place

TOLERANCE = 1.1e-5  # tolerance of σ: the calibration's own, and a little more
LOSS = 1e-5  # relative: a graphics card may sum the same numbers in another order
SENTENCES = ("not_accounted", "release.needs")  # lists of sentences, of which older ledgers may have fewer
WEIGHTS = {"weights_sha256": "weights.safetensors", "averaged_sha256": "averaged.safetensors"}


def record(place: Place, key: Key) -> Iterator[Finding]:
    """Check a training's record; of one with secret noise what may leave, where the rest was left out on purpose."""
    folder = Path(place.plan.folder(key))
    there = [name for name in specs.RECORD if str(folder / name) not in place.left_out]
    missing = [name for name in there if not (folder / name).exists() and (place.weights or name not in WEIGHTS.values())]
    for name in missing:
        yield Finding(place.name(folder / name), "file missing", "part of the run's record", ABSENT)
    if missing:
        return
    spec = read_json(folder / "spec.json")
    where = place.name(folder)
    yield from _spec(place, key, spec, f"{where}/spec.json")
    best = {study: _best(place, study, spec) for study in sorted(set(spec.get("found_by", {}).values()))}
    yield from _findings(spec, best, f"{where}/spec.json")
    history = None
    if "provenance.json" in there:
        yield from _provenance(place, spec, read_json(folder / "provenance.json"), folder)
    if "history.csv" in there:
        with open(folder / "history.csv", encoding="utf-8", newline="") as file:
            history = list(csv.DictReader(file))
        yield from _history(spec, history, f"{where}/history.csv")
        yield from _metrics(spec, history, read_json(folder / "metrics.json"), f"{where}/metrics.json")
    yield from _ledger(spec, best, history, read_json(folder / "ledger.json"), where)


def _spec(place: Place, key: Key, spec: specs.Spec, where: str) -> Iterator[Finding]:
    """Check that a run's spec is the one that its folder and the plan name."""
    yield from equal(where, "name by the spec's digest", key[1], specs.run_name(specs.as_planned(spec)))
    if place.archive:
        planned = digest(place.plan.work[key])
        yield from equal(where, "digest of the spec in plan.json", planned, digest(specs.as_planned(spec)))
    if "solved" in spec:
        most = mechanism_of(specs.as_planned(spec))
        yield from equal(where, "recipe.steps that the budget allows", most and most.steps, specs.step_count(spec))


def _provenance(place: Place, spec: specs.Spec, provenance: dict[str, Any], folder: Path) -> Iterator[Finding]:
    """Check that a run's weights, start and data are those that its provenance names."""
    where = place.name(folder)
    yield from equal(f"{where}/provenance.json", "digest of the spec", digest(spec), provenance["spec"])
    for said, name in WEIGHTS.items():
        if said in provenance and place.weights:
            sha = file_digest(folder / name) if (folder / name).exists() else ABSENT
            yield from equal(f"{where}/{name}", "SHA-256 by provenance.json", provenance[said], sha)
    yield from _start(place, spec, provenance, f"{where}/provenance.json")
    if "train" in spec:
        yield from _frozen(place, spec, provenance, folder)
    yield from data_of(place, spec, provenance, f"{where}/provenance.json")


def _best(place: Place, study: str, spec: specs.Spec) -> dict[str, Any]:
    """Return a search's best.json; of one that was left out, what the run's values and the search's spec say."""
    file = place.plan.product(("search", study))
    if file not in place.left_out:
        best: dict[str, Any] = read_json(file)
        return best
    values = {key: specs.value_at(spec, key) for key, name in spec["found_by"].items() if name == study}
    return {"values": values, "privacy": price(place.plan.work["search", study], [values])}


def data_of(place: Place, spec: specs.Spec, provenance: dict[str, Any], where: str) -> Iterator[Finding]:
    """Check that a result was made with the data that are described here."""
    description = Path(place.plan.product(specs.data_key(spec)))
    if not description.exists():
        return
    there = content_digest(read_json(description))
    for session in [provenance, *provenance.get("sessions", [])]:
        yield from equal(where, f"digest of the data {spec['data']['prepared']}", there, session.get("data", there))


def _start(place: Place, spec: specs.Spec, provenance: dict[str, Any], where: str) -> Iterator[Finding]:
    """Check that a run began with the weights that are recorded of what it starts from."""
    for key in specs.start_key(spec):
        if expected := weights_left(place, key, spec["start"].get("take")):
            yield from equal(where, f"start_sha256 by {key[1]}", expected, provenance.get("start_sha256", ABSENT))


def _frozen(place: Place, spec: specs.Spec, provenance: dict[str, Any], folder: Path) -> Iterator[Finding]:
    """Check that what was frozen is in the weights as it was before the training, to the bit."""
    said, where = provenance.get("trained", ABSENT), f"{place.name(folder)}/provenance.json"
    if not isinstance(said, dict):
        yield Finding(where, "trained", "what moved, and that the rest did not", ABSENT)
        return
    yield from equal(where, "trained.part by the spec", spec["train"], said["part"])
    frozen = said["frozen_sha256"]
    yield from equal(where, "trained.frozen_sha256, before and after", frozen["before"], frozen["after"])
    if place.weights:
        from safetensors.numpy import load_file  # who verifies results without weights need not have it

        there = frozen_sha256(digests_of(load_file(folder / "weights.safetensors")), said["trained"])
        yield from equal(where, "trained.frozen_sha256 by weights.safetensors", there, frozen["after"])


def _findings(spec: specs.Spec, found: dict[str, dict], where: str) -> Iterator[Finding]:
    """Compare what searches decided for it with what it was trained with."""
    for key, study in spec.get("found_by", {}).items():
        yield from equal(where, f"{key}, as {study} found it", found[study]["values"][key], specs.value_at(spec, key))


def _history(spec: specs.Spec, history: list[dict[str, str]], where: str) -> Iterator[Finding]:
    ends, losses = specs.epoch_ends(spec), [_number(row["validation_loss"]) for row in history]
    made = next((epoch for epoch in range(1, len(ends)) if specs.is_stopped(spec, losses[:epoch])), len(ends))  # type: ignore[arg-type]
    yield from equal(where, "steps at the ends of epochs", ends[:made], [int(row["step"]) for row in history])
    if specs.chooser(spec) is None:
        said = [f"{key} at epoch {row['epoch']}" for row in history for key in row if "validation_" in key and row[key]]
        yield from equal(where, "numbers of validation examples, none being held out", [], said)


def _metrics(spec: specs.Spec, history: list[dict[str, str]], metrics: dict[str, Any], where: str) -> Iterator[Finding]:
    """Compare the last step's metrics with the history's last line, and the best epoch's with its line, if one was chosen."""
    parts = {"last_step": (history[-1], ""), "averaged": (history[-1], "averaged_")}
    yield from equal(where, "last_step.step by history.csv", int(history[-1]["step"]), metrics["last_step"]["step"])
    if specs.chooser(spec):
        best = max(history, key=lambda row: (_number(row["validation_top1"]) or 0.0, -int(row["epoch"])))
        yield from equal(where, "best_epoch.epoch by history.csv", int(best["epoch"]), metrics["best_epoch"]["epoch"])
        parts["best_epoch"] = (best, "")
    else:
        yield from equal(where, "best_epoch, nothing being held out", ABSENT, metrics.get("best_epoch", ABSENT))
    for part, (row, prefix) in parts.items():
        for split in ("validation", "test"):
            for key, value in metrics.get(part, {}).get(split, {}).items():
                expected = _number(row[f"{prefix}{split}_{key}"])
                yield from close(where, f"{part}.{split}.{key} by history.csv", expected, value, LOSS if key == "loss" else 0.0)


def _ledger(
    spec: specs.Spec, found: dict[str, dict], history: list[dict[str, str]] | None, ledger: dict[str, Any], folder: str
) -> Iterator[Finding]:
    """Compute ε from its own q, σ and steps, and compare those with the spec's.

    Args:
        spec: The run's spec.
        found: The best.json of each search that chose for the run, by the search's name.
        history: The rows of the history, or None if it was left out on purpose.
        ledger: The run's ledger.
        folder: The run's folder, for messages.
    """
    where, planned = f"{folder}/ledger.json", mechanism_of(spec)
    if planned is None:
        yield from equal(where, "what a run without a budget says", spent(spec, None, {}), ledger)
        return
    written = ledger.get("format", 1)
    if written not in range(1, FORMAT + 1):
        yield Finding(where, "format", f"one of 1 to {FORMAT}", written)
        return
    divisor = specs.simulated(spec)
    yield from equal(where, "private", divisor == 1, ledger["private"])
    numbers = ledger["simulated"] if divisor > 1 else ledger
    says = Mechanism(numbers["sampling_rate"], numbers["noise_multiplier"], numbers["steps"]["made"])
    expected = spent(spec, says, found, written)
    tells_all = written > 1 or "pld" in numbers["epsilon"] or "curve" in numbers
    yield from _compared(where, expected if tells_all else without_curve(expected), ledger, written)
    yield from equal(where, "sampling_rate by the spec", planned.q, says.q)
    if history:
        yield from equal(where, "steps made by history.csv", int(history[-1]["step"]), says.steps)
    elif not spec["recipe"].get("stop"):
        yield from equal(where, "steps made by the spec", specs.step_count(spec), says.steps)
    yield from close(where, "noise_multiplier by the spec", planned.sigma, says.sigma, TOLERANCE / says.sigma)
    column = "simulated_epsilon" if divisor > 1 else "epsilon"
    for row in history or []:
        epsilon = Mechanism(says.q, says.sigma, int(row["step"])).epsilon(spec["budget"]["delta"])
        what = f"epoch {row['epoch']}: {column} after {row['step']} steps"
        yield from close(f"{folder}/history.csv", what, epsilon, _number(row[column]))


def _compared(where: str, expected: Any, found: Any, written: int, path: str = "") -> Iterator[Finding]:
    """Compare every number, name and sentence of a ledger.

    Args:
        where: The ledger's file.
        expected: The ledger as it would be written now in its format, or a part of it.
        found: The ledger that is there, or the same part of it.
        written: The ledger's format: older ones may say a thing in other words.
        path: The dotted key of the part.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            below = f"{path}.{key}" if path else key
            yield from _compared(where, expected.get(key, ABSENT), found.get(key, ABSENT), written, below)
    elif path in SENTENCES:
        yield from _compared_sentences(where, expected, found, written, path)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, pair in enumerate(zip(expected, found, strict=True)):
            yield from _compared(where, *pair, written, f"{path}[{number}]")
    elif isinstance(expected, str) and " " in expected:
        if not is_known(found, expected, written):
            yield Finding(where, f"{path}, in the words of ledgers", expected, found)
    else:
        yield from close(where, f"{path}, recomputed", expected, found)


def _compared_sentences(where: str, expected: Any, found: Any, written: int, path: str) -> Iterator[Finding]:
    """Compare a list of sentences, in any order: each is one that ledgers have, and none is missing."""
    should, has = (sentences if isinstance(sentences, list) else [] for sentences in (expected, found))
    for sentence in missing_sentences(has, should, written):
        yield Finding(where, f"{path}, sentence missing", sentence, ABSENT)
    for sentence in unknown_sentences(has, should, written):
        yield Finding(where, f"{path}, in the words of ledgers", "a sentence that ledgers have of such a run", sentence)


def _number(text: str) -> float | None:
    return float(text) if text else None
