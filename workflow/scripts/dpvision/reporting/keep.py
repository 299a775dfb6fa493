"""The small files of a scale's results, copied to a folder that can be committed: records without weights. From them, and
from those that lay there before, all tables and figures are made, and a page that shows them.

Runs may be missing: an artifact is made of the cells and seeds that are there. So the results of weeks come together
piece by piece, on one machine or on several, and what is shown is always recomputed from the records beside it.
"""

import dataclasses
import logging
import os
import shutil
from pathlib import Path

from dpvision.errors import UserError
from dpvision.files import write_if_changed, write_text
from dpvision.plan import Plan
from dpvision.plan.plan import LABELS, folder_of
from dpvision.plan.specs import Spec
from dpvision.plan.stages import STAGES, Key
from dpvision.plan.withheld import is_withheld, refuse_own_pictures
from dpvision.reporting.figures import write_figure
from dpvision.reporting.so_far import write_so_far
from dpvision.reporting.tables import write_table

log = logging.getLogger(__name__)

WRITERS = {"tables": write_table, "figures": write_figure}


def keep(plan: Plan, root: Path, folder: Path) -> list[str]:
    """Take over the records that there are, make every artifact that they bear, and return these artifacts."""
    refuse_own_pictures(plan, "a folder of kept results")
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / LABELS).exists())):
        raise UserError(
            f"{folder} holds something else than kept results, which would be written over; name a folder of their own"
        )
    left_out = _left_out(plan)
    for stage, name in plan.work:
        if (stage, name) in left_out:
            continue
        files = [file for file in STAGES[stage].record if not file.endswith(".safetensors")]
        source, kept = root / plan.folder((stage, name)), folder / STAGES[stage].folder / name
        if not STAGES[stage].shared and all((source / file).exists() for file in files):
            kept.mkdir(parents=True, exist_ok=True)
            for file in files:
                shutil.copyfile(source / file, kept / file)
    if not ((folder / "runs").exists() or any(_needs_nothing(spec) for spec in plan.artifacts.values())):
        raise UserError(f"there is no whole record of scale {plan.scale}, neither in {root / plan.results} nor in {folder}")
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    (folder / "tables").mkdir(exist_ok=True)
    write_if_changed(folder / LABELS, plan.labels)
    made = [name for name, spec in plan.artifacts.items() if _make(plan, name, _of_what_is_there(spec, folder), folder)]
    write_text(folder / "README.md", _page(plan, made, folder, root))
    if left_out:
        log.warning(
            "left out: %d records of covered searches and of trainings with secret noise, and all that rests on them. They "
            "were written without noise, and must not leave (docs/privacy.md)",
            len(left_out),
        )
    return made


def _left_out(plan: Plan) -> set[Key]:
    """Return the work whose records must not leave, and what rests on it: its ε could not be verified without them."""
    withheld = {key for key in plan.work if is_withheld(plan, key)}
    return {key for key in plan.work if withheld.intersection(plan.with_needs([key]))}


def _of_what_is_there(spec: Spec, folder: Path) -> Spec:
    """Return the artifact's spec with those cells and seeds alone whose records lie in the folder."""
    if "claims" in spec or _needs_nothing(spec):  # what has no record is not run
        return spec
    cells = [cell | {"work": _there(cell["work"], folder)} for cell in spec["cells"]]
    whole = [bool(cell["work"]) and all(cell["work"].values()) for cell in cells]
    absent = [cell["at"] for cell, there in zip(cells, whole, strict=True) if not there]
    return {**spec, "cells": [cell for cell, there in zip(cells, whole, strict=True) if there]} | (
        {"absent": absent} if absent else {}
    )


def _needs_nothing(spec: Spec) -> bool:
    """Tell whether an artifact follows from the configuration alone."""
    return bool(spec.get("cells")) and not any(cell["work"] for cell in spec["cells"])


def _there(work: dict[str, dict[str, str]], folder: Path) -> dict[str, dict[str, str]]:
    """Return the work of the seeds of which all is there; a search has a seed of its own, its trials'."""
    there = {
        stage: {seed for seed, name in names.items() if (folder / STAGES[stage].folder / name).exists()}
        for stage, names in work.items()
    }
    shared = [seeds for stage, seeds in there.items() if stage != "search"]
    whole = {stage: seeds if stage == "search" else set.intersection(*shared) for stage, seeds in there.items()}
    return {stage: {seed: name for seed, name in names.items() if seed in whole[stage]} for stage, names in work.items()}


def _make(plan: Plan, name: str, spec: Spec, folder: Path) -> bool:
    here = dataclasses.replace(plan, results=str(folder), artifacts={name: spec})
    if "claims" in spec:
        if not any(Path(file).exists() for files in here.inputs_of(name).values() for file in files):
            return False  # nothing of this paper is there
        write_so_far(here, name, Path())
    elif spec["cells"]:
        csv = Path(here.targets(name)[0])
        WRITERS[folder_of(spec)](spec, plan.labels[name], here.inputs_of(name), csv)
        log.info("%s", csv)
    else:
        return False
    write_if_changed(folder / "plan" / f"{name}.json", spec)
    return True


def _page(plan: Plan, made: list[str], folder: Path, root: Path) -> str:
    there = sum((folder / "runs" / run).exists() for run in plan.runs)
    lines = [
        f"# Results of the scale `{plan.scale}`: {plan.title}",
        "",
        f"{there} of {len(plan.runs)} trainings are here, each with its spec, metrics, history, privacy ledger and "
        "provenance, without its weights.",
        "",
        f"- What is missing is listed by `python -m dpvision plan --scale {plan.scale}`, and made by: "
        f"`snakemake all --cores 2 {plan.asked_by()}`",
        f"- This page, and all tables and figures, are made from the records in this folder, and new ones are taken over, by: "
        f"`python -m dpvision keep {os.path.relpath(folder, root)} --scale {plan.scale}`",
    ]
    for name in made:
        where = folder_of(plan.artifacts[name])
        lines += ["", f"## {name}", ""]
        if not where:
            lines.append(f"[Each sentence of the paper, with a verdict]({name}.md)\n\n![Effects](figures/{name}.png)")
        elif where == "tables":
            lines.append((folder / where / f"{name}.md").read_text(encoding="utf-8").strip())
        else:
            lines.append(f"![{plan.labels[name]['title']}]({where}/{name}.png)")
    return "\n".join(lines) + "\n"
