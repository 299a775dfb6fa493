"""What is small of a scale's results, into a folder that can be committed: records without weights, and of these, and of
those that lay there before, all tables and figures and a page that shows them.

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
from dpvision.plan import Plan, specs
from dpvision.plan.build import CLAIMS, FOLDERS, LABELS
from dpvision.plan.specs import Spec
from dpvision.reporting.figures import write_figure
from dpvision.reporting.so_far import write_so_far
from dpvision.reporting.tables import write_table

log = logging.getLogger(__name__)

RECORDS = {
    "runs": [file for file in specs.RECORD if not file.endswith(".safetensors")],
    "hessians": ["hessian.json", "provenance.json"],
    "activations": ["histograms.csv", "provenance.json"],
    "studies": ["best.json", "trials.csv", "provenance.json"],
}
WRITERS = {"tables": write_table, "figures": write_figure}


def keep(plan: Plan, root: Path, folder: Path) -> list[str]:
    """Returns the artifacts that could be made."""
    for kind, files in RECORDS.items():
        for name in getattr(plan, kind):
            source = root / plan.results / kind / name
            if all((source / file).exists() for file in files):
                (folder / kind / name).mkdir(parents=True, exist_ok=True)
                for file in files:
                    shutil.copyfile(source / file, folder / kind / name / file)
    if not (folder / "runs").exists():
        raise UserError(f"there is no whole record of scale {plan.scale}, neither in {root / plan.results} nor in {folder}")
    (folder / "figures").mkdir(exist_ok=True)
    (folder / "tables").mkdir(exist_ok=True)
    write_if_changed(folder / LABELS, plan.labels)
    made = [name for name, spec in plan.artifacts.items() if _make(plan, name, _of_what_is_there(spec, folder), folder)]
    write_text(folder / "README.md", _page(plan, made, folder, root))
    return made


def _of_what_is_there(spec: Spec, folder: Path) -> Spec:
    """The artifact's spec with those cells, seeds and searches alone whose records lie in the folder."""
    if spec["kind"] == CLAIMS:
        return spec
    examined = {"hessian": "hessians", "spectrum": "hessians", "activations": "activations"}.get(spec["kind"])

    def there(run: str) -> bool:
        analysis = examined is None or (folder / examined / spec["analyses"][run]).exists()
        return analysis and (folder / "runs" / run).exists()

    cells = [cell | {"runs": {seed: run for seed, run in cell["runs"].items() if there(run)}} for cell in spec["cells"]]
    cells = [cell for cell in cells if cell["runs"]]
    runs = {run for cell in cells for run in cell["runs"].values()}
    kept: Spec = {**spec, "cells": cells}
    if "analyses" in spec:
        kept["analyses"] = {run: name for run, name in spec["analyses"].items() if run in runs}
    if "studies" in spec:
        kept["studies"] = {name: model for name, model in spec["studies"].items() if (folder / "studies" / name).exists()}
    return kept


def _make(plan: Plan, name: str, spec: Spec, folder: Path) -> bool:
    here = dataclasses.replace(plan, results=str(folder), artifacts={name: spec})
    if name == CLAIMS:  # what has no record is not run
        write_so_far(here, Path())
        write_if_changed(folder / "plan" / f"{name}.json", spec)
        return True
    if not spec["cells"] and not spec.get("studies"):
        return False
    where = FOLDERS[spec["kind"]]
    WRITERS[where](spec, plan.labels[name], here.inputs_of(name), folder / where / f"{name}.csv")
    write_if_changed(folder / "plan" / f"{name}.json", spec)
    log.info("%s", folder / where / f"{name}.csv")
    return True


def _page(plan: Plan, made: list[str], folder: Path, root: Path) -> str:
    missing = [run for run in plan.runs if not (folder / "runs" / run).exists()]
    there = len(plan.runs) - len(missing)
    lines = [
        f"# Results of the scale `{plan.scale}`: {plan.title}",
        "",
        f"{there} of {len(plan.runs)} trainings are here, each with its spec, metrics, history, privacy ledger and "
        "provenance, without its weights.",
        "",
        f"- What is missing is made by: `snakemake all --cores 2 --config scale={plan.scale}`",
        f"- This page, and all tables and figures, are made from the records in this folder, and new ones are taken over, by: "
        f"`python -m dpvision keep {os.path.relpath(folder, root)} --scale {plan.scale}`",
    ]
    for name in made:
        where = FOLDERS.get(plan.artifacts[name]["kind"])
        lines += ["", f"## {name}", ""]
        if name == CLAIMS:
            lines.append(f"[Each sentence of the paper, with a verdict]({name}.md)\n\n![Effects](figures/{name}.png)")
        elif where == "tables":
            lines.append((folder / where / f"{name}.md").read_text(encoding="utf-8").strip())
        else:
            lines.append(f"![{plan.labels[name]['title']}]({where}/{name}.png)")
    if missing:
        lines += ["", "## Not there", "", *(f"- `{run}`" for run in missing)]
    return "\n".join(lines) + "\n"
