"""Estimates of the cost of work: device-hours, wall time, memory, disk; by what past records took, else by guesses."""

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from dpvision.config.settings import Device
from dpvision.errors import UserError
from dpvision.files import read_json
from dpvision.logs import clock
from dpvision.looking.show import device as device_of
from dpvision.looking.status import progress_of
from dpvision.looking.text import aligned, counted
from dpvision.plan import Plan, cost
from dpvision.plan.cost import Cost
from dpvision.plan.reading import read_yaml, validated
from dpvision.plan.resources import cost_of, limits, megabytes
from dpvision.plan.specs import Spec
from dpvision.plan.stages import STAGES, Key

DAY = 24 * 3600.0
SEASON, YEAR = 90 * DAY, 365 * DAY


@dataclass(frozen=True)
class Kind:
    """Work that has one throughput on one device: a search's trials are trainings."""

    stage: str
    network: str
    multiply_adds: float
    precision: str


@dataclass(frozen=True)
class Past:
    """A past record: what the work took."""

    kind: Kind
    device: str
    cost: Cost
    seconds: float
    """Seconds on all its devices together."""
    started: str
    here: bool
    """True for a record of the scale that is planned."""


@dataclass(frozen=True)
class Job:
    """A piece of work as it would go on from where it is: what it would take, which is nothing where it is done."""

    key: Key
    seconds: float
    """Seconds on all its devices together, for the part that is left."""
    whole: float
    """Seconds of the whole work, from the beginning."""
    longest: float
    """Wall time of the longest of its jobs: the workers of a search share it."""
    devices: int
    megabytes: int
    record: int
    """Bytes that it leaves."""
    checkpoint: int
    """Bytes that it needs meanwhile."""
    by: str
    """Source of the estimate: measured, measured on other networks, guessed, or unknown."""


class Estimator:
    def __init__(self, plan: Plan, root: Path, device: str | None = None, measured: bool = True) -> None:
        """Choose by `device`, a part of the name of one with records or in config/devices.yaml; without, the last one here.

        Without what was `measured` here everybody gets the same guess.
        """
        self.plan, self.root = plan, root
        self.past = [past for past in _past(plan, root) if past.cost.is_known] if measured else []
        self.device, self.speed = self._device(device)
        self.past = [past for past in self.past if past.device == self.device]

    def _device(self, asked: str | None) -> tuple[str | None, float | None]:
        """Return the device's name, and the speed that is guessed of it; without either, what the scale counts on."""
        if asked is None:
            last = max((past for past in self.past if past.here), key=lambda past: past.started, default=None)
            return (last.device if last else None), None
        known: list[Device] = validated(list[Device], [read_yaml(self.root, "config/devices.yaml")])
        measured = {past.device: None for past in self.past if asked.lower() in past.device.lower()}
        guessed = {one.name: one.peak * one.share for one in known if re.search(rf"\b{re.escape(one.name)}\b", asked, re.I)}
        guessed = guessed or {one.name: one.peak * one.share for one in known if asked.lower() in one.name.lower()}
        found: dict[str, float | None] = {**measured} or {**guessed}
        if len(found) != 1:
            names = list(found) or [*{past.device for past in self.past}, *(one.name for one in known)]
            raise UserError(f"--device {asked} {'may be one of' if found else 'is unknown; known are'}: {', '.join(names)}")
        return next(iter(found.items()))

    def job(self, key: Key) -> Job:
        stage = key[0]
        whole, share = (cost_of(self.plan, key, workers) for workers in (1, None))
        if not (whole and share):
            return Job(key, 0, 0, 0, 1, 0, 0, 0, "next to nothing")
        run = self.plan.dearest_run_of(key)
        seconds, by = self.seconds(_kind(stage, run), whole, self.past)
        left = self._left(key)
        trains = stage == "train"
        return Job(
            key,
            left * seconds,
            seconds,
            left * self.seconds(_kind(stage, run), share, self.past)[0] / share.devices,
            share.devices,
            megabytes(self.plan, stage, share),
            cost.record_bytes(run) if trains else 0,
            cost.checkpoint_bytes(run) if trains and left else 0,
            by,
        )

    def _left(self, key: Key) -> float:
        """Return the share that is still to be done."""
        if self.plan.is_done(key, self.root):
            return 0.0
        if key[0] == "search":  # a worker is done when the study has all its trials
            return 0.0 if list((self.root / self.plan.folder(key) / "workers").glob("*.json")) else 1.0
        progress = progress_of(self.root / self.plan.results / "checkpoints" / key[1]) if key[0] == "train" else None
        return 1 - progress["kept"] / progress["steps"] if progress else 1.0

    def seconds(self, kind: Kind, of: Cost, past: list[Past]) -> tuple[float, str]:
        """Return the seconds on all devices together, and what they are known by; uncounted work takes the most it may."""
        if not of.is_known:
            return 60.0 * limits(self.plan, kind.stage).runtime * of.devices, "unknown, taken as the longest allowed"
        same = [one for one in past if one.kind == kind]
        alike = same or [one for one in past if one.kind.stage == kind.stage]
        if alike:
            rate = median(one.cost.work / one.seconds for one in alike)
            return of.work / rate, "measured" if same else "measured on other networks"
        speed = self.speed or limits(self.plan, kind.stage).speed
        return of.work / speed + of.steps * cost.STEP * of.devices, "guessed"

    def errors(self) -> dict[str, list[float]]:
        """Return by stage how far each record was from what the others would have said, as a share of what it took."""
        found: dict[str, list[float]] = {}
        for i, one in enumerate(self.past):
            said, _ = self.seconds(one.kind, one.cost, self.past[:i] + self.past[i + 1 :])
            found.setdefault(one.kind.stage, []).append(abs(said - one.seconds) / one.seconds)
        return found

    def words(self) -> list[str]:
        """Say what the estimate rests on."""
        errors = self.errors()
        if not errors:
            what = (
                f"{self.device}, by config/devices.yaml"
                if self.device
                else f"the `speed` in config/scales/{self.plan.scale}.yaml"
            )
            return [f"guessed with {what}: nothing of it was measured yet"]
        counts = ", ".join(counted(*STAGES[stage].words, len(values)) for stage, values in errors.items())
        lines = [f"on {self.device}, by {counts}; each of them, predicted from the others:"]
        for stage, values in errors.items():
            lines.append(f"  {STAGES[stage].words[1]}: wrong by {median(values):.0%} in the median, {max(values):.0%} at worst")
        return lines


def _kind(stage: str, run: Spec) -> Kind:
    stage = "train" if stage == "search" else stage
    return Kind(stage, run["model"]["slug"], cost.counts_of(run).multiply_adds, run["recipe"].get("precision", "float32"))


def _past(plan: Plan, root: Path) -> Iterator[Past]:
    """Yield trainings of all scales and configurations; of the other stages, whose records hold no specs, the plan's."""
    for made_by in [*root.glob("results/runs/*/provenance.json"), *root.glob("results/*/runs/*/provenance.json")]:
        provenance, run = read_json(made_by), read_json(made_by.with_name("spec.json"))
        try:
            counted = cost.training(run, 1)
        except KeyError:  # an old record, whose spec has other keys
            continue
        seconds = sum(session["seconds"] for session in provenance["sessions"]) * counted.devices
        here = made_by.parents[2] == root / plan.results
        yield Past(_kind("train", run), device_of(provenance), counted, seconds, provenance["started"], here)
    for key, spec in plan.work.items():
        made_by, stage = root / plan.folder(key) / "provenance.json", STAGES[key[0]]
        if stage.analysis and stage.cost and made_by.exists():
            provenance, run = read_json(made_by), plan.dearest_run_of(key)
            taken = stage.cost(spec, run, 1, 1)
            yield Past(
                _kind(key[0], run), device_of(provenance), taken, provenance["seconds"], provenance["started"], here=True
            )


def wall_seconds(plan: Plan, jobs: dict[Key, Job], devices: int) -> float:
    """Return the wall time if jobs start one after the other as devices come free, the longest of a stage first."""
    free = [0.0] * devices
    ends: dict[Key, float] = {}
    for job in sorted(jobs.values(), key=lambda job: (list(STAGES).index(job.key[0]), -job.longest)):
        ready = max((ends.get(key, 0.0) for key in plan.needs(job.key)), default=0.0)
        end = ready
        left = job.seconds / min(job.devices, devices)
        while left > 1e-6 * job.seconds:
            taken = [heapq.heappop(free) for _ in range(min(job.devices, devices))]
            done = max(ready, *taken) + min(left, job.longest)
            left -= job.longest
            for _ in taken:
                heapq.heappush(free, done)
            end = max(end, done)
        ends[job.key] = end
    return max(ends.values(), default=0.0)


def table(plan: Plan, estimator: Estimator, chosen: list[str], devices: int) -> dict[str, Any]:
    """Return what is left and what all takes, by artifact and stage; what is shared counts once in the total."""
    below = {artifact: plan.below(artifact) for artifact in chosen}
    jobs = {key: estimator.job(key) for keys in below.values() for key in keys}
    rows = [{"artifact": artifact, **_sums([jobs[key] for key in keys])} for artifact, keys in below.items()]
    return {
        "scale": plan.scale,
        "device": estimator.device,
        "rests_on": estimator.words(),
        "errors": estimator.errors(),
        "artifacts": rows,
        "total": _sums(jobs.values()),
        "devices": devices,
        "wall_seconds": wall_seconds(plan, {key: job for key, job in jobs.items() if job.seconds}, devices),
        "longest_job_seconds": max((job.longest for job in jobs.values()), default=0),
        "checkpoint_bytes": devices * max((job.checkpoint for job in jobs.values()), default=0),
    }


def _sums(jobs: Iterable[Job]) -> dict[str, Any]:
    jobs = list(jobs)
    left = [job for job in jobs if job.seconds]
    return {
        "stages": {
            name: sum(job.seconds for job in left if job.key[0] == name) for name, stage in STAGES.items() if stage.cost
        },
        "device_seconds_left": sum(job.seconds for job in left),
        "device_seconds": sum(job.whole for job in jobs),
        "megabytes": max((job.megabytes for job in left), default=0),
        "record_bytes_left": sum(job.record for job in left),
        "record_bytes": sum(job.record for job in jobs),
        "by": sorted({job.by for job in left}),
    }


def as_text(plan: Plan, found: dict[str, Any]) -> str:
    planned = [name for name, stage in STAGES.items() if stage.cost and plan.of(name)]
    words = [STAGES[name].words[1] for name in planned]
    rows: list[tuple[str, ...]] = [("device-hours", *words, "left", "of all", "memory a job", "disk", "")]
    for row in [*found["artifacts"], {"artifact": "all of it", **found["total"]}]:
        hours = [*(row["stages"][name] for name in planned), row["device_seconds_left"], row["device_seconds"]]
        sizes = f"{row['megabytes'] / 1000:.1f} GB" if row["megabytes"] else "", f"{row['record_bytes_left'] / 1e6:.0f} MB"
        rows.append((row["artifact"], *(f"{seconds / 3600:.2f}" for seconds in hours), *sizes, ", ".join(row["by"])))
    devices = counted("device", "devices", found["devices"])
    return "\n".join(
        [
            f"scale {plan.scale}: {plan.title}",
            *found["rests_on"],
            "",
            *aligned(rows),
            "",
            f"what artifacts share counts once in the last line; on {devices}: {clock(found['wall_seconds'])}, "
            f"the longest job {clock(found['longest_job_seconds'])}, {found['checkpoint_bytes'] / 1e6:.0f} MB of checkpoints",
            *too_long(found["total"]["device_seconds_left"]),
        ]
    )


def too_long(seconds: float) -> list[str]:
    """Warn of what would take one device more than a season."""
    if seconds < SEASON:
        return []
    took = f"{seconds / YEAR:.1f} years" if seconds >= YEAR else f"{seconds / DAY:.0f} days"
    advice = "python -m dpvision plan --budget 48h picks what is affordable; the scale simulate predicts accuracies"
    return [f"one device would take {took}: {advice}"]
