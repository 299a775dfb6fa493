"""The status of all work: what is there, what runs, what failed, and why the rest is missing."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dpvision.code import code_digest
from dpvision.files import read_json
from dpvision.locks import in_use
from dpvision.logs import clock, last_words
from dpvision.looking.target import artifacts_of
from dpvision.looking.text import aligned, counted, some
from dpvision.plan import Plan
from dpvision.plan.artifact_state import artifact_state
from dpvision.plan.plan import work_in
from dpvision.plan.stages import STAGES, Key
from dpvision.training.owner import named, owner_of

STATES = ("done", "running", "failed", "missing")


@dataclass
class Found:
    """A piece of work as it is now."""

    stage: str
    name: str
    state: str
    """State: done, running, failed or missing."""
    reason: str = ""
    """Reason why it failed or is missing; of running work the one that does it."""
    log: str | None = None
    progress: dict[str, Any] | None = None
    """Progress of a training that is not done (training/underway.py), and how many seconds ago it was written."""
    other_code: str | None = None
    """Code that it was made by, where that is not the present code."""
    targets: list[str] = field(default_factory=list)
    """Artifacts that rest on it: to have one of them made makes this, too."""


class Status:
    """The work below some artifacts, and the state of these."""

    def __init__(self, plan: Plan, root: Path, targets: Sequence[str] = ("all",)) -> None:
        """Look at all work that the targets rest on: all, papers or artifacts."""
        self.plan, self.root = plan, root
        self.artifacts = artifacts_of(plan, targets, root)
        self.shows_all = "all" in targets
        self.found: dict[Key, Found] = {}
        self._now: dict[str, str] = {}
        for artifact in self.artifacts:
            for key in plan.below(artifact):
                if key not in self.found:
                    self.found[key] = self._look(key)
                self.found[key].targets.append(artifact)
        waited_for = {below for key, found in self.found.items() if found.state != "done" for below in plan.needs(key)}
        for key in [key for key, found in self.found.items() if found.state != "done" and STAGES[key[0]].shared]:
            if key not in waited_for:  # data that was deleted after its last use: nobody misses it
                del self.found[key]

    def _look(self, key: Key) -> Found:
        if self.plan.is_done(key, self.root):
            return Found(*key, "done", other_code=self.other_code(self.plan.folder(key)))
        logs = self.plan.logs(key, self.root)
        found = Found(*key, "missing", log=logs[-1] if logs else None)
        if key[0] == "train":
            found.progress = progress_of(self.root / self.plan.results / "checkpoints" / key[1])
        if who := self._who(key, logs):
            found.state, found.reason = "running", who
        elif failed := next(((log, words) for log in logs if (words := last_words(self.root / log))), None):
            found.state = "failed"
            found.log, found.reason = failed
        else:
            found.reason = self._why_missing(key, found)
        return found

    def _who(self, key: Key, logs: list[str]) -> str:
        """Return who works on it; empty: nobody. A training has an owner, once it has begun; of other jobs their logs tell."""
        if owner := owner_of(self.root / self.plan.folder(key) / ".owner"):
            return named(owner)
        at_work = [log for log in logs if in_use(self.root / log)]
        words = f"as {some(at_work)} {'says' if len(at_work) == 1 else 'say'}"
        trials = f"{self._trials(key)}, " if key[0] == "search" else ""
        return trials + words if at_work else ""

    def _why_missing(self, key: Key, found: Found) -> str:
        """Return the first thing in the way; what was begun says so first."""
        if found.progress and found.progress["kept"]:
            step = f"step {found.progress['kept']} of {found.progress['steps']}"
            if name := found.progress["told"]:
                return f"stopped by {name}; continues from {step}"
            return f"was killed; continues from {step} or a little later"  # than when it last showed how far it was
        for below in self.plan.needs(key):
            if self.found[below].state != "done":
                which = "its training" if below[0] == "train" else f"the {STAGES[below[0]].words[0]} {below[1]}"
                return f"waits for {which} ({self.found[below].state})"
        if key[0] == "search" and self._begun(key):
            return f"{self._trials(key)}, and nobody works on it now"
        if found.log and _ended_well(self.root / found.log):
            return "was made, and deleted since"
        return "was killed or cut off" if found.log else "never started"

    def _trials(self, key: Key) -> str:
        return f"{self._begun(key)} of {self.plan.work[key]['trials']} trials begun"

    def _begun(self, key: Key) -> int:
        return len(list((self.root / self.plan.folder(key) / "trials").glob("*.lock")))

    def other_code(self, folder: str) -> str | None:
        """Return which code made a folder's results, where that is not the code that is here."""
        file = self.root / folder / "provenance.json"
        if not file.exists():
            return None
        made = read_json(file)
        stage = made["stage"]
        if stage not in self._now:
            self._now[stage] = code_digest(*stage.split())
        codes = {made["code"], *(session["code"] for session in made.get("sessions", []))}
        return None if codes == {self._now[stage]} else f"code {' and '.join(sorted(codes))}, now {self._now[stage]}"

    def cells(self, artifact: str) -> dict[str, int]:
        """Count cells by state: done where all of it is, else failed, running or missing where some of it is."""
        counts: Counter[str] = Counter(dict.fromkeys([*STATES, "other_code"], 0))
        for cell in self.plan.artifacts[artifact]["cells"]:
            found = [self.found[key] for key in work_in(cell)]
            states = {one.state for one in found}
            counts[next((state for state in ("failed", "running", "missing") if state in states), "done")] += 1
            counts["other_code"] += any(one.other_code for one in found)
        return dict(counts)

    def stages(self) -> dict[str, dict[str, int]]:
        counts: dict[str, Counter[str]] = {}
        for (stage, _), found in self.found.items():
            counts.setdefault(stage, Counter(dict.fromkeys(STATES, 0)))[found.state] += 1
        return {stage: dict(count) for stage, count in counts.items()}

    def of_other_code(self) -> Iterator[tuple[str, str]]:
        for key, found in self.found.items():
            if found.other_code:
                yield self.plan.folder(key), found.other_code


def _ended_well(log: Path) -> bool:
    """Tell whether a log's job succeeded: Snakemake writes its benchmark after that."""
    benchmark = log.with_suffix(".jsonl")
    return benchmark.exists() and benchmark.stat().st_mtime >= log.stat().st_mtime


def progress_of(checkpoint: Path) -> dict[str, Any] | None:
    file = checkpoint / "progress.json"
    try:
        return {**read_json(file), "age": round(time.time() - file.stat().st_mtime)}
    except FileNotFoundError:  # not begun, or over since
        return None


def as_json(status: Status) -> dict[str, Any]:
    return {
        "scale": status.plan.scale,
        "results": status.plan.results,
        "artifacts": [
            {
                "artifact": name,
                "kind": status.plan.artifacts[name]["kind"],
                "itself": artifact_state(status.plan, name, status.root),
                "cells": status.cells(name),
            }
            for name in status.artifacts
        ],
        "left_out": status.plan.left_out,
        "wanting": status.plan.wanting,
        "work": [asdict(found) for found in status.found.values()],
        "made_by_other_code": [{"folder": folder, "reason": reason} for folder, reason in status.of_other_code()],
    }


def as_text(status: Status) -> str:
    plan = status.plan
    rows: list[tuple[str, ...]] = [("artifact", "kind", "cells", *STATES, "other code", "itself")]
    for name in status.artifacts:
        counts = status.cells(name)
        total = sum(counts[state] for state in STATES)
        state = artifact_state(plan, name, status.root)
        rows.append((name, plan.artifacts[name]["kind"], *map(str, (total, *counts.values())), state))
    lines = [f"scale {plan.scale}: {plan.title}", "", *aligned(rows), ""]
    for stage, states in status.stages().items():
        said = ", ".join(f"{count} {state}" for state, count in states.items() if count)
        lines.append(f"{counted(*STAGES[stage].words, sum(states.values()))}: {said}")
    if plan.left_out and status.shows_all:
        lines.append(f"left out at this scale: {', '.join(plan.left_out)}")
    lines += plan.left_out_for_data() if status.shows_all else []
    return "\n".join([*lines, *_running(status), *_failed(status), *_missing(status), *_other_code(status)])


def _in(status: Status, state: str) -> list[Found]:
    return [found for found in status.found.values() if found.state == state]


def _for(found: Found) -> str:
    return f"for {some(found.targets)}"


def _running(status: Status) -> list[str]:
    rows = []
    for found in _in(status, "running"):
        rows += [f"  {found.name}  {_for(found)}", f"      {how_far(found.progress)}{found.reason}"]
    return ["", "running:", *rows] if rows else []


def how_far(progress: dict[str, Any] | None) -> str:
    if not progress:
        return ""
    parts = [f"epoch {progress['epoch']}/{progress['epochs']}", f"step {progress['step']}/{progress['steps']}"]
    if progress["epsilon"] is not None:
        parts.append(f"{'simulated ' if progress['simulated'] else ''}ε {progress['epsilon']:.2f}")
    if progress["validation_top1"] is not None:
        parts.append(f"validation {progress['validation_top1']:.1%}")
    if progress["seconds_left"] is not None:
        parts.append(f"{clock(max(0, progress['seconds_left'] - progress['age']))} to go")
    return "  ".join(parts) + "  "


def _failed(status: Status) -> list[str]:
    rows = []
    for found in _in(status, "failed"):
        rows += [f"  {found.name}  {_for(found)}", f"      {found.reason.splitlines()[-1]}", f"      {found.log}"]
    return ["", "failed (make the target behind `for` to run it again; it continues where it was):", *rows] if rows else []


def _missing(status: Status) -> list[str]:
    """List missing work by reason, with the artifacts that it keeps back."""
    groups: dict[tuple[str, str], list[Found]] = {}
    for found in _in(status, "missing"):
        groups.setdefault((found.stage, found.reason), []).append(found)
    rows = []
    for (stage, reason), group in groups.items():
        targets = list(dict.fromkeys(target for found in group for target in found.targets))
        rows.append(f"  {counted(*STAGES[stage].words, len(group))} for {some(targets)}: {reason}")
        rows.append(f"      {some([found.name for found in group], 2)}")
    return ["", "missing:", *rows] if rows else []


def _other_code(status: Status) -> list[str]:
    others = [f"  {folder}  ({reason})" for folder, reason in status.of_other_code()]
    if not others:
        return ["", "all results were made by the code that is here"]
    what = "made by other code than what is here now (nothing runs again by itself; delete a folder, and its target"
    return ["", f"{what} makes it anew):", *others]
