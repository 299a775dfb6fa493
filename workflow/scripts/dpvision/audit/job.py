"""All designs of an audit, shared out among processes; one record: verdict, tests, bounds, curves."""

import logging
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from dpvision.audit import designs
from dpvision.audit.designs import Result
from dpvision.audit.judge import CONSISTENT, judged
from dpvision.audit.subject import Subject, engine_run
from dpvision.errors import UserError
from dpvision.files import write_csv, write_json
from dpvision.logs import clock
from dpvision.looking.text import aligned, counted
from dpvision.plan.audits import audit_name
from dpvision.plan.specs import Spec, device_count, modules_of
from dpvision.privacy.fast import Choices
from dpvision.privacy.ledger import NEIGHBOURS, NOISE, NOT_ACCOUNTED, SAMPLING
from dpvision.provenance import Origin
from dpvision.training.devices import PACKAGES, Devices, together

CLAIM = {"neighbours": NEIGHBOURS, "sampling": SAMPLING, "noise": NOISE, "not_accounted": NOT_ACCOUNTED}
THRESHOLDS = "chosen before any data, from the claim alone: the best expected bound of ε at δ, and the best of μ"
BOUNDS = (
    "each lower bound of ε is one statement at the confidence. Canaries are independent samples if the claim holds, so what "
    "exceeds the claim refutes it; as a bound of another program they assume that independence, and those of one run do not"
)
VIEWS = {"pad": 4, "flip": 0.5, "views": 4, "include_original": False}

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Part:
    """A run that is attacked by some designs, on as many devices as its recipe asks for."""

    what: str
    run: Spec
    attack: Callable[[Subject], Result]

    def done(self) -> Result:
        """Attack; every process of a run on several devices does the same as this one."""
        with together(device_count(self.run), self.done_on) as devices:
            return self.done_on(devices)

    def done_on(self, devices: Devices) -> Result:
        return self.attack(Subject(self.run, devices))


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
    own = "a recipe's own" if networks else "the run's own"
    found: list[Part] = []
    if run:
        found += [_canaries(run, own, runs, confidence)]
    if networks:
        smallest = networks[0]["model"]
        found += [_canaries(engine_run(smallest, epsilon), f"ε = {epsilon:g}", runs, confidence) for epsilon in spec["levels"]]
        others = [_replay(engine_run(one["model"]), one["name"], one is networks[0]) for one in networks]
        found += [*reversed(others), _replay(engine_run(smallest, precision="bfloat16"), networks[0]["name"], True)]
        if torch.cuda.device_count() != 1:  # one card cannot be two devices
            found += [_replay(engine_run(smallest, gpus=2), networks[0]["name"], True)]
        found += [_around(engine_run(smallest, augmentation=VIEWS, divide_by_clip=True), "views")]
    if run:
        found += [_around(run, own, alone=not networks, clipping=spec.get("clipping"))]
    return found


def _canaries(run: Spec, name: str, runs: int, confidence: float) -> Part:
    return Part(f"canaries of {name}", run, partial(designs.canaries, name=name, runs=runs, confidence=confidence))


def _replay(run: Spec, name: str, tied: bool) -> Part:
    devices = counted("device", "devices", device_count(run))
    return Part(f"replay of {name}, {run['recipe']['precision']}, {devices}", run, partial(_replayed, name=name, tied=tied))


def _replayed(subject: Subject, name: str, tied: bool) -> Result:
    found = designs.replay(subject, name)
    return found + designs.tied_and_frozen(subject) if tied else found


def _around(run: Spec, name: str, alone: bool = False, clipping: Choices | None = None) -> Part:
    return Part(f"coins and pairs of {name}", run, partial(_looked_around, alone=alone, clipping=clipping))


def _looked_around(subject: Subject, alone: bool, clipping: Choices | None) -> Result:
    """Look at coins and pairs; of a run that is audited by itself at its network, too."""
    found = designs.coins(subject) + designs.pairs(subject)
    return found + designs.replay(subject, subject.run["model"]["slug"], clipping=clipping) if alone else found


def _done(work: list[Part], processes: int) -> list[Result]:
    """Do the parts, shared out among processes of one thread each; results in the order of the parts."""
    results: dict[int, Result] = {}
    begun = time.monotonic()

    def note(i: int, found: Result) -> None:
        results[i] = found
        log.info("%s  %d of %d: %s", clock(time.monotonic() - begun), len(results), len(work), work[i].what)

    def share(mine: range) -> None:
        for i, found in zip(mine, _elsewhere([work[i] for i in mine]), strict=True):
            note(i, found)

    if processes == 1:
        for i, part in enumerate(work):
            note(i, part.done())
    else:
        with ThreadPoolExecutor(processes) as pool:
            list(pool.map(share, (range(i, len(work), processes) for i in range(processes))))
    return [results[i] for i in range(len(work))]


def _elsewhere(work: list[Part]) -> Iterator[Result]:
    """Do parts in a process of its own: torch's threads and forks do not go together."""
    paths = os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "dpvision.audit.part"]
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None and process.stdout is not None
        with process.stdin:
            pickle.dump(work, process.stdin)
        for part in work:
            try:
                yield pickle.load(process.stdout)
            except EOFError:
                code = process.wait()
                said = f"the lines above say why: {' '.join(command)} ended with {code}"
                raise UserError(f"{part.what}: this part of the audit failed; {said}") from None


def _modules(spec: Spec) -> list[str]:
    """Name the modules that are found by name: of all networks, and of the run."""
    found = [f"dpvision.models.{one['model']['family']}.network" for one in spec["networks"]]
    runs = [spec["run"]] if spec["run"] else []
    runs += [engine_run(one["model"]) for one in spec["networks"]]
    return list(dict.fromkeys([*found, *(module for run in runs for module in modules_of(run))]))


def _counts(numbers: dict[str, Any]) -> dict[str, Any]:
    return {key: numbers.get(key) for key in ("inside", "out", "fn", "fp", "threshold")}
