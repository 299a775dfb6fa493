"""All designs of an audit, shared out among processes; one record: verdict, tests, bounds, curves."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from dpvision.audit import designs
from dpvision.audit.designs import Result
from dpvision.audit.judge import CONSISTENT, judged
from dpvision.audit.subject import Subject, engine_run
from dpvision.errors import UserError
from dpvision.files import write_csv, write_json
from dpvision.looking.text import aligned, counted
from dpvision.plan.audits import audit_name
from dpvision.plan.specs import Spec, modules_of
from dpvision.privacy.ledger import NEIGHBOURS, NOISE, NOT_ACCOUNTED, SAMPLING
from dpvision.provenance import Origin
from dpvision.training.devices import PACKAGES

CLAIM = {"neighbours": NEIGHBOURS, "sampling": SAMPLING, "noise": NOISE, "not_accounted": NOT_ACCOUNTED}
THRESHOLDS = "chosen before any data, from the claim alone: the best expected bound of ε at δ, and the best of μ"
BOUNDS = (
    "each lower bound of ε is one statement at the confidence. Canaries are independent samples if the claim holds, so what "
    "exceeds the claim refutes it; as a bound of another program they assume that independence, and those of one run do not"
)
VIEWS = {"pad": 4, "flip": 0.5, "views": 4, "include_original": False}

Part = Callable[[], Result]


def audit(spec: Spec, folder: Path, processes: int = 1) -> dict[str, Any]:
    """Audit as `spec` says, leave the record, and return what audit.json says."""
    origin = Origin(" ".join(["dpvision.audit.job", *_modules(spec)]))
    found = Result([])
    for result in _done(parts(spec), processes):
        found += result
    verdict, level, rows = judged(found.tests, spec["confidence"])
    about = {
        "name": audit_name(spec),
        "verdict": verdict,
        "confidence": spec["confidence"],
        "level_of_each_test": level,
        "claim": CLAIM,
        "thresholds": THRESHOLDS,
        "bounds_are": BOUNDS,
        "bounds": found.bounds,
        "tests": rows,
    }
    write_json(folder / "audit.json", about)
    flat = [{**{k: v for k, v in row.items() if k != "numbers"}, **_counts(row["numbers"])} for row in rows]
    write_csv(folder / "tests.csv", flat)
    write_csv(folder / "roc.csv", found.roc)
    write_csv(folder / "steps.csv", found.steps)
    write_json(folder / "provenance.json", origin.provenance(spec))
    return about


def listing(about: dict[str, Any], folder: Path) -> str:
    """Return the verdict for a terminal: what is not consistent, the bounds, where the record is."""
    lines = [f"{about['verdict']} at {about['confidence']:.1%}: {counted('test', 'tests', len(about['tests']))}"]
    for row in about["tests"]:
        if row["verdict"] != CONSISTENT:
            said = f"{row['value']:.6g}" if row["value"] is not None else "no number"
            lines.append(
                f"  {row['verdict']}: {row['design']}, {row['of']}: {row['looks_at']} {said}, expected {row['expected']:.6g}"
            )
    rows = [("ε at least", "expected", "claimed", "δ", "observations", "runs", "setting")]
    for row in about["bounds"]:
        bounds = (f"{row[key]:.2f}" for key in ("lower_bound", "expected", "claimed"))
        counts = (f"{row['delta']:g}", f"{row['inside'] + row['out']:,}", str(row["runs"]), row["setting"])
        rows.append((*bounds, *counts))
    return "\n".join([*lines, "", *aligned(rows), "", str(folder / "audit.json")])


def parts(spec: Spec) -> list[Part]:
    """Return the work of an audit, the longest parts first."""
    confidence, runs, run = spec["confidence"], spec["runs"], spec["run"]
    networks = spec["networks"]
    found: list[Part] = []
    if run:
        found += [partial(_canaries, run, "a recipe's own" if networks else "the run's own", runs, confidence)]
    if networks:
        smallest = networks[0]["model"]
        found += [
            partial(_canaries, engine_run(smallest, epsilon), f"ε = {epsilon:g}", runs, confidence)
            for epsilon in spec["levels"]
        ]
        others = [partial(_replay, engine_run(one["model"]), one["name"], one is networks[0]) for one in networks]
        found += [*reversed(others), partial(_replay, engine_run(smallest, precision="bfloat16"), networks[0]["name"], True)]
        found += [partial(_around, engine_run(smallest, augmentation=VIEWS, divide_by_clip=True))]
    return [*found, partial(_around, run, alone=not networks)] if run else found


def _canaries(run: Spec, name: str, runs: int, confidence: float) -> Result:
    return designs.canaries(Subject(run), name, runs, confidence)


def _replay(run: Spec, name: str, tied: bool) -> Result:
    subject = Subject(run)
    found = designs.replay(subject, name)
    return found + designs.tied_and_frozen(subject) if tied else found


def _around(run: Spec, alone: bool = False) -> Result:
    """Look at coins and pairs; of a run that is audited by itself at its network, too."""
    subject = Subject(run)
    found = designs.coins(subject) + designs.pairs(subject)
    return found + designs.replay(subject, run["model"]["slug"]) if alone else found


def _done(work: list[Part], processes: int) -> list[Result]:
    """Do the parts, shared out among processes of one thread each; results in the order of the parts."""
    if processes == 1:
        return [part() for part in work]
    results: list[Result] = [Result([])] * len(work)
    shares = [work[i::processes] for i in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        for i, found in enumerate(pool.map(_elsewhere, shares)):
            results[i::processes] = found
    return results


def _elsewhere(work: list[Part]) -> list[Result]:
    """Do parts in a process of its own: torch's threads and forks do not go together."""
    paths = os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "dpvision.audit.part"]
    done = subprocess.run(command, input=pickle.dumps(work), stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths})
    if done.returncode:
        raise UserError(f"a part of the audit failed, as the lines above say: {' '.join(command)} ended with {done.returncode}")
    found: list[Result] = pickle.loads(done.stdout)
    return found


def _modules(spec: Spec) -> list[str]:
    """Name the modules that are found by name: of all networks, and of the run."""
    found = [f"dpvision.models.{one['model']['family']}.network" for one in spec["networks"]]
    runs = [spec["run"]] if spec["run"] else []
    runs += [engine_run(one["model"]) for one in spec["networks"]]
    return list(dict.fromkeys([*found, *(module for run in runs for module in modules_of(run))]))


def _counts(numbers: dict[str, Any]) -> dict[str, Any]:
    return {key: numbers.get(key) for key in ("inside", "out", "fn", "fp", "threshold")}
