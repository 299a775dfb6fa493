"""The record of an attack: its choice follows from phase one, thresholds from models set aside, bounds from the scores."""

import csv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpvision.audit import attack as made
from dpvision.errors import UserError
from dpvision.files import read_json
from dpvision.plan import specs
from dpvision.plan.stages import Key
from dpvision.privacy.accounting import Mechanism
from dpvision.privacy.audit.claim import Scores
from dpvision.verify.finding import Finding, close, equal
from dpvision.verify.place import Place
from dpvision.verify.records import missing
from dpvision.verify.runs import data_of

MOST_BYTES = 1 << 30
"""Limit on the scores of an attack; those of 100,000 models need some megabytes."""


def attack(place: Place, key: Key) -> Iterator[Finding]:
    """Check an attack's record against itself, and against its spec where that is there."""
    if absent := missing(place, key):
        yield from absent
        return
    folder = Path(place.plan.folder(key))
    where = place.name(folder)
    about, provenance = read_json(folder / "attack.json"), read_json(folder / "provenance.json")
    yield from equal(f"{where}/attack.json", "name", folder.name, about["name"])
    yield from equal(
        f"{where}/provenance.json",
        "digest of the spec, by the folder's name",
        folder.name.rsplit("-", 1)[1],
        provenance["spec"],
    )
    spec = _spec_of(about)
    _refuse_large_arrays(folder / "scores.npz")
    with np.load(folder / "scores.npz") as scores:
        reserved = made.Reserved(scores["reserved_out"], scores["reserved_inside"])
        seen = made.Seen(scores["out"], scores["inside"], (about["threshold"], about["threshold_of_mu"]), reserved)
    mechanism = Mechanism(about["q"], about["sigma"], about["steps"])
    by = reserved if about["by"] == "models" else Scores.of(mechanism)
    thresholds = made.thresholds_of(by, (len(seen.out) + len(seen.inside)) // 2, spec)
    for expected, found in zip(thresholds, seen.thresholds, strict=True):
        yield from close(f"{where}/attack.json", "threshold, by what chose it", expected, found)
    if about["by"] == "models":
        yield from _choice(folder / "tried.csv", f"{where}/tried.csv", about["chosen"])
    again = made.found(seen, spec, mechanism)
    for name, value in again.items():
        yield from close(f"{where}/attack.json", f"{name}, by the scores", value, about[name])
    if planned := place.plan.work[key]:
        yield from equal("plan.json", f"name of the attack {folder.name}", specs.attack_name(planned), folder.name)
        yield from equal(f"{where}/attack.json", "δ by the spec", planned["run"]["budget"]["delta"], about["delta"])
        yield from data_of(place, planned["run"], provenance, f"{where}/provenance.json")


def _spec_of(about: dict[str, Any]) -> specs.Spec:
    """Return as much of the spec as counts and bounds follow from."""
    budget = {"delta": about["delta"], "epsilon": about["nominal"]}
    return {"by": about["by"], "confidence": about["confidence"], "run": {"budget": budget}}


def _refuse_large_arrays(file: Path) -> None:
    """Raise if a file of scores would be unpacked to more than any attack writes."""
    with zipfile.ZipFile(file) as arrays:
        size = sum(member.file_size for member in arrays.infolist())
    if size > MOST_BYTES:
        raise UserError(f"{file.name} would be unpacked to {size} bytes, and at most {MOST_BYTES} are read")


def _choice(file: Path, where: str, chosen: dict[str, Any]) -> Iterator[Finding]:
    """Check that what was chosen has the largest total variation of all that was tried."""
    with open(file, encoding="utf-8", newline="") as lines:
        tried = list(csv.DictReader(lines))
    if len(tried) == 1:
        return
    best = max(tried, key=lambda row: float(row["total_variation"]))
    for name, value in {"target": chosen["target"], **chosen["values"]}.items():
        yield from equal(where, f"{name} of the largest total variation", str(value), best[name])
