"""Artifacts from the records that there are, without running anything: `python -m dpvision claims` and `... draw`.

What shows all its records leaves its spec beside it, as Snakemake's jobs do. What lacks some leaves none: so it counts as
out of date, and Snakemake makes it anew.
"""

from pathlib import Path

from dpvision.errors import UserError
from dpvision.files import write_json
from dpvision.looking.text import aligned
from dpvision.plan import Plan
from dpvision.plan.plan import folder_of
from dpvision.plan.specs import Spec
from dpvision.reporting.claims import Judged, stand_ins_note, tally, write_claims


def write_so_far(plan: Plan, name: str, root: Path) -> list[Judged]:
    """Write a page of claims from the records that there are now."""
    inputs, there = plan.inputs_of(name), _inputs_there(plan, name, root)
    table, _, *_, figure = (root / file for file in plan.targets(name))
    claims = write_claims(plan.artifacts[name], plan.labels[name], there, table, figure)
    _leave_spec(plan, name, root, whole=sum(map(len, there.values())) == sum(map(len, inputs.values())))
    return claims


def draw_so_far(plan: Plan, name: str, root: Path) -> str:
    """Make a table or figure of the cells and seeds whose records are there now; say of how many."""
    from dpvision.reporting.figures import write_figure
    from dpvision.reporting.tables import write_table

    spec, labels = plan.artifacts[name], plan.labels[name]
    folder = folder_of(spec)
    if not folder:
        raise UserError(f"{name} is a page of claims: python -m dpvision claims writes it from the records that there are now")
    cells = [part for cell in spec["cells"] if (part := _there(plan, spec, cell, root))]
    if spec["cells"] and not cells:
        raise UserError(f"{name}: none of its {len(spec['cells'])} cells has a record yet; python -m dpvision status says more")
    said = f"{len(cells)} of {len(spec['cells'])} cells, so far"
    whole = cells == spec["cells"]
    inputs = _inputs_there(plan, name, root)
    write = {"tables": write_table, "figures": write_figure}[folder]
    title = labels["title"] if whole else f"{labels['title']} ({said})"
    write({**spec, "cells": cells}, {**labels, "title": title}, inputs, root / plan.targets(name)[0])
    _leave_spec(plan, name, root, whole)
    return "all of it" if whole else said


def _inputs_there(plan: Plan, name: str, root: Path) -> dict[str, list[str]]:
    """Return the files that an artifact is made of, those that exist."""
    inputs = plan.inputs_of(name).items()
    return {what: [str(root / file) for file in files if (root / file).exists()] for what, files in inputs}


def _there(plan: Plan, spec: Spec, cell: Spec, root: Path) -> Spec | None:
    """Return a cell with the work whose files are there; None: of one of its stages there is none."""
    work = {}
    for stage, names in cell["work"].items():
        files = {read.split("/")[1] for reads in spec["reads"].values() for read in reads if read.startswith(f"{stage}/")}
        folders = {key: root / plan.folder((stage, name)) for key, name in names.items()}
        there = {key: names[key] for key, folder in folders.items() if all((folder / file).exists() for file in files)}
        if not there:
            return None
        work[stage] = there
    return {**cell, "work": work}


def _leave_spec(plan: Plan, name: str, root: Path, whole: bool) -> None:
    if whole:
        write_json(root / plan.spec_file(name), plan.artifacts[name], sort_keys=False)
    else:
        (root / plan.spec_file(name)).unlink(missing_ok=True)


def listing(claims: list[Judged]) -> list[str]:
    """List the verdicts for a terminal, one claim a line."""
    rows = [(claim.verdict, claim.claim["name"], tally([o.verdict for o in claim.outcomes])) for claim in claims]
    return [*stand_ins_note(claims), *aligned(rows), "", tally([claim.verdict for claim in claims])]
