"""The choice of work that completes the most artifacts within a budget of device-hours, by integer programming."""

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpvision.logs import clock
from dpvision.looking.estimate import Estimator, Job, wall_seconds
from dpvision.looking.text import aligned, counted, some
from dpvision.plan import Plan
from dpvision.plan.plan import work_in
from dpvision.plan.resources import limits
from dpvision.plan.stages import STAGES, Key

Cells = dict[str, list[frozenset[Key]]]
"""Cells of each artifact: the work of each cell, with what that rests on."""


@dataclass(frozen=True)
class Choice:
    artifacts: list[str]
    """Artifacts that are complete then, also those that were before."""
    cells: set[frozenset[Key]]
    work: set[Key]
    """Work that is to be done."""


def choose(jobs: dict[Key, Job], artifacts: Cells, seconds: float, devices: int) -> Choice:
    """Choose the most artifacts, then the most cells, then the least time.

    A cell counts when all its work is done, and work is done for whole cells only; what is shared is paid once, and what
    is done is free. No job may take longer than `seconds`, or more devices than there are.
    """
    import pulp

    left = {key: job for key, job in jobs.items() if job.seconds}
    open_cells = {name: [frozenset(cell & left.keys()) for cell in of] for name, of in artifacts.items()}
    cells = list(dict.fromkeys(cell for of in open_cells.values() for cell in of))
    problem = pulp.LpProblem("budget", pulp.LpMaximize)
    done = [problem.add_variable(f"work{i}", 0, int(fits(job, seconds, devices))) for i, job in enumerate(left.values())]
    made = [problem.add_variable(f"cell{i}", cat="Binary") for i in range(len(cells))]
    complete = [problem.add_variable(f"artifact{i}", cat="Binary") for i in range(len(artifacts))]
    numbers = {key: i for i, key in enumerate(left)}
    time = pulp.lpSum(job.seconds * variable for job, variable in zip(left.values(), done, strict=True))
    worth = (len(cells) + 1) * pulp.lpSum(complete) + pulp.lpSum(made)

    problem += worth
    problem += time <= seconds * devices
    for cell, variable in zip(cells, made, strict=True):
        for key in cell:
            problem += variable <= done[numbers[key]]
    for of, variable in zip(open_cells.values(), complete, strict=True):
        for cell in of:
            problem += variable <= made[cells.index(cell)]
    best = round(_solved(problem, pulp))
    problem += worth >= best - 0.5
    problem.setObjective(-time)
    _solved(problem, pulp)

    chosen = {cell for cell, variable in zip(cells, made, strict=True) if variable.value() > 0.5}
    whole = [name for name, of in open_cells.items() if chosen.issuperset(of)]
    return Choice(whole, chosen, {key for cell in chosen for key in cell})


def fits(job: Job, seconds: float, devices: int) -> bool:
    return job.longest <= seconds and job.devices <= devices


def _solved(problem: Any, pulp: Any) -> float:
    problem.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0, gapAbs=0))
    return pulp.value(problem.objective)


def cells(plan: Plan, artifact: str) -> list[frozenset[Key]]:
    """Return the cells of an artifact, each with all that it rests on."""
    return [frozenset(plan.with_needs(work_in(cell))) for cell in plan.artifacts[artifact]["cells"]]


def within(plan: Plan, estimator: Estimator, chosen: list[str], seconds: float, devices: int) -> dict[str, Any]:
    of = {artifact: cells(plan, artifact) for artifact in chosen}
    jobs = {key: estimator.job(key) for artifact in chosen for key in plan.below(artifact)}
    choice = choose(jobs, of, seconds, devices)
    taken = {key: jobs[key] for key in jobs if key in choice.work}
    left = {key for key, job in jobs.items() if job.seconds}
    return {
        "scale": plan.scale,
        "rests_on": estimator.words(),
        "budget_seconds": seconds,
        "devices": devices,
        "artifacts": [
            {
                "artifact": artifact,
                "complete": artifact in choice.artifacts,
                "cells": len(of[artifact]),
                "cells_complete": sum(cell & left <= choice.work for cell in of[artifact]),
            }
            for artifact in chosen
        ],
        "work": [{"stage": stage, "name": name, "device_seconds": jobs[stage, name].seconds} for stage, name in taken],
        "device_seconds": sum(job.seconds for job in taken.values()),
        "wall_seconds": wall_seconds(plan, taken, devices),
        "too_long": [key[1] for key, job in jobs.items() if not fits(job, seconds, devices)],
        "targets": targets(plan, estimator.root, choice, set(taken)),
    }


def targets(plan: Plan, root: Path, choice: Choice, taken: Set[Key]) -> list[str]:
    """Return the artifacts that are complete then, by name, and a file of each piece of work that they do not rest on."""
    names = [
        name
        for name in choice.artifacts
        if taken & set(plan.below(name)) or not all((root / file).exists() for file in plan.targets(name))
    ]
    rest = taken - {key for name in names for key in plan.below(name)}
    needed = {below for key in rest for below in plan.needs(key)}
    return names + sorted(plan.product(key) for key in rest - needed)


def command(plan: Plan, found: dict[str, Any]) -> str:
    """Return the command that runs just what was chosen; targets stand first, or some options would take them for values."""
    given, devices = limits(plan, "train"), found["devices"]
    cards = f" --resources gpu={devices * given.gpu}" if given.gpu else ""
    settings = f" --config scale={plan.scale}"
    return f"snakemake {' '.join(found['targets'])} --cores {devices * given.threads}{cards}{settings}"


def as_text(plan: Plan, found: dict[str, Any]) -> str:
    rows = [("artifact", "cells then complete", "")]
    for row in found["artifacts"]:
        rows.append((row["artifact"], f"{row['cells_complete']} of {row['cells']}", "complete" if row["complete"] else ""))
    spent, devices = found["device_seconds"] / 3600, found["devices"]
    hours = found["budget_seconds"] / 3600
    counts = [(stage.words, sum(one["stage"] == name for one in found["work"])) for name, stage in STAGES.items()]
    what = ", ".join(counted(*words, count) for words, count in counts if count)
    lines = [*found["rests_on"], "", *aligned(rows), ""]
    if found["too_long"]:
        lines.append(f"too long for {round(hours, 2):g} h, or for the devices: {some(found['too_long'])}")
    if not found["targets"]:
        return "\n".join([*lines, "nothing more is complete within the budget"])
    lines.append(f"{what or 'nothing to compute'}: {spent:.2f} of {round(hours * devices, 2):g} device-hours")
    wall = found["wall_seconds"]
    over = f", {clock(wall - hours * 3600)} longer than the budget, as jobs are not cut" if wall > hours * 3600 else ""
    lines.append(f"on {counted('device', 'devices', devices)}: {clock(wall)}{over}")
    on_cluster = f"on a cluster, --profile slurm --jobs {devices} in place of --cores"
    return "\n".join([*lines, "", f"exactly these ({on_cluster}):", "", command(plan, found)])
