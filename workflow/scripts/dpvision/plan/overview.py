"""What a target would take, as text: artifacts, cells, runs, and which of them are there."""

import itertools
from pathlib import Path

from dpvision.errors import UserError
from dpvision.plan.build import Plan
from dpvision.plan.reading import nearest
from dpvision.plan.specs import searched_keys


def overview(plan: Plan, targets: list[str], root: Path) -> str:
    chosen = artifacts_of(plan, targets)
    runs = {run for name in chosen for run in plan.runs_of(name)}
    made = {run for run in runs if _there(plan.record(run), root)}
    rows: list[tuple[str, ...]] = [("artifact", "what", "cells", "runs", "of them made", "itself")]
    for name in chosen:
        spec = plan.artifacts[name]
        its = set(plan.runs_of(name))
        state = "made" if _there(plan.targets(name), root) else "not made"
        rows.append(
            (name, spec["kind"], str(len(spec["cells"]) or ""), str(len(its) or ""), str(len(its & made) if its else ""), state)
        )
    studies = {study for run in runs for study in searched_keys(plan.runs[run]).values()}
    studies |= {study for name in chosen for study in plan.artifacts[name].get("studies", {})}
    analyses = [
        analysis
        for name in chosen
        for key in ("analyses", "hessians")
        for analysis in plan.artifacts[name].get(key, {}).values()
    ]
    hessians = {analysis for analysis in analyses if analysis in plan.hessians}
    parts = [
        _counted("training", "trainings", len(runs), len(made)),
        _counted("search", "searches", len(studies), sum(_there([plan.best_of(s)], root) for s in studies)),
        _counted("Hessian", "Hessians", len(hessians), sum(_there([plan.hessian_of(h)], root) for h in hessians)),
    ]
    lines = [f"scale {plan.scale}: {plan.title}", "", *_aligned(rows), "", ", ".join(part for part in parts if part)]
    files = [text for name in chosen for group in _by_name(plan.targets(name)) if (text := _shortened(group, root))]
    if files:
        lines += ["", "made:", *(f"  {group}" for group in files)]
    return "\n".join(lines)


def artifacts_of(plan: Plan, targets: list[str]) -> list[str]:
    names = []
    for target in targets:
        if target == "all":
            names += list(plan.artifacts)
        elif target in plan.papers:
            names += plan.papers[target]
        elif target in plan.artifacts:
            names.append(target)
        else:
            known = ["all", *plan.papers, *plan.artifacts]
            raise UserError(f'there is no target "{target}".{nearest(target, known)} Allowed: {", ".join(known)}')
    return list(dict.fromkeys(names))


def _there(files: list[str], root: Path) -> bool:
    return all((root / file).exists() for file in files)


def _counted(one: str, many: str, count: int, made: int) -> str:
    return f"{count} {one if count == 1 else many} ({made} made)" if count else ""


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _by_name(files: list[str]) -> list[list[str]]:
    """Those that differ in their suffix alone, together."""
    return [list(group) for _, group in itertools.groupby(files, lambda file: Path(file).with_suffix(""))]


def _shortened(files: list[str], root: Path) -> str:
    """results/tables/table1.csv .md .tex, of those that are there."""
    there = [Path(file) for file in files if (root / file).exists()]
    return " ".join([str(there[0]), *(path.suffix for path in there[1:])]) if there else ""
