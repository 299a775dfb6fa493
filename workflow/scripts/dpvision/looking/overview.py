"""An overview of what a target needs, as text: artifacts, cells, runs, and which of them are there."""

import itertools
from pathlib import Path

from dpvision.looking.estimate import too_long
from dpvision.looking.target import artifacts_of
from dpvision.looking.text import aligned, counted
from dpvision.plan.artifact_state import MADE, NOT_MADE, OUT_OF_DATE, artifact_state
from dpvision.plan.plan import Plan
from dpvision.plan.resources import cost_of, limits
from dpvision.plan.stages import STAGES, Key

HEADINGS = {MADE: "made:", OUT_OF_DATE: "out of date, made of other settings or records:", NOT_MADE: "made in part:"}
"""What stands above the files of artifacts in a state."""


def overview(plan: Plan, targets: list[str], root: Path) -> str:
    chosen = artifacts_of(plan, targets, root)
    done = _done(plan, chosen, root)
    states = {name: artifact_state(plan, name, root) for name in chosen}
    rows: list[tuple[str, ...]] = [("artifact", "what", "cells", "runs", "of them made", "itself")]
    for name in chosen:
        spec = plan.artifacts[name]
        runs = [done["train", run] for run in plan.runs_of(name)]
        counts = (str(len(spec["cells"]) or ""), str(len(runs) or ""), str(sum(runs) if runs else ""))
        rows.append((name, spec["kind"], *counts, states[name]))
    parts = []
    for stage, entry in STAGES.items():
        if of := [made for key, made in done.items() if key[0] == stage]:
            parts.append(f"{counted(*entry.words, len(of))} ({sum(of)} made)")
    lines = [f"scale {plan.scale}: {plan.title}", "", *aligned(rows), "", ", ".join(parts)]
    lines += plan.left_out_for_data() if "all" in targets else []
    lines += warning(plan, chosen, root)
    for state, heading in HEADINGS.items():
        names = [name for name in chosen if states[name] == state]
        files = [text for name in names for group in _by_name(plan.targets(name)) if (text := _shortened(group, root))]
        if files:
            lines += ["", heading, *(f"  {group}" for group in files)]
    return "\n".join(lines)


def warning(plan: Plan, artifacts: list[str], root: Path) -> list[str]:
    """Warn where what is left of artifacts would take one device more than a season, at the speed that the scale counts on."""
    left = [key for key, made in _done(plan, artifacts, root).items() if not made]
    costs = {key: cost for key in left if (cost := cost_of(plan, key, workers=1)) and cost.is_known}
    return too_long(sum(cost.work / limits(plan, key[0]).speed for key, cost in costs.items()))


def _done(plan: Plan, artifacts: list[str], root: Path) -> dict[Key, bool]:
    """Tell of all work that artifacts rest on, and that no other scale shares, whether it is done."""
    below = dict.fromkeys(key for name in artifacts for key in plan.below(name))
    return {key: plan.is_done(key, root) for key in below if not STAGES[key[0]].shared}


def _by_name(files: list[str]) -> list[list[str]]:
    """Group the files that differ in their suffix alone."""
    return [list(group) for _, group in itertools.groupby(files, lambda file: Path(file).with_suffix(""))]


def _shortened(files: list[str], root: Path) -> str:
    """Return names like `results/tables/table1.csv .md .tex`, of the files that are there."""
    there = [Path(file) for file in files if (root / file).exists()]
    return " ".join([str(there[0]), *(path.suffix for path in there[1:])]) if there else ""
