"""Artifacts on the disk beside the plan: does each show what the configuration asks for now?

The job that makes an artifact also leaves its spec, as plan/ARTIFACT.json. So the files say by themselves what they were
made of, also where somebody copied them without Snakemake's own notes (.snakemake).
"""

import time
from pathlib import Path

from dpvision.files import is_file_of, write_text
from dpvision.plan.plan import Plan

MADE, OUT_OF_DATE, NOT_MADE = "made", "out of date", "not made"


def artifact_state(plan: Plan, artifact: str, root: Path) -> str:
    """Return whether an artifact is made, not made, or out of date.

    Args:
        plan: What the configuration asks for now.
        artifact: Its name: table1.
        root: The folder in which the plan's paths begin.

    Returns:
        "out of date" where its files were made of another spec, or where a record that they show is missing or newer.
    """
    files = [root / file for file in plan.targets(artifact)]
    records = [root / file for paths in plan.inputs_of(artifact).values() for file in paths]
    if not all(file.exists() for file in files):
        return NOT_MADE
    if not is_file_of(root / plan.spec_file(artifact), plan.artifacts[artifact]):
        return OUT_OF_DATE
    if not all(record.exists() for record in records):
        return OUT_OF_DATE
    oldest_file = min(file.stat().st_mtime_ns for file in files)
    is_newer = any(record.stat().st_mtime_ns > oldest_file for record in records)
    return OUT_OF_DATE if is_newer else MADE


def mark_changed_spec(plan: Plan, artifact: str) -> list[str]:
    """Return a file of this moment if an artifact on the disk shows another spec than the plan's, and no file otherwise.

    It is an input of the artifact, so that Snakemake makes it again. Snakemake has notes of specs itself, but not where
    results were copied without them. What is not there at all needs no such file.
    """
    exists = any(Path(file).exists() for file in plan.targets(artifact))
    if not exists or is_file_of(plan.spec_file(artifact), plan.artifacts[artifact]):
        return []
    marker = f".snakemake/changed/{artifact}"
    write_text(marker, f"{time.time_ns()}\n")  # other bytes each time: Snakemake compares the content of small files
    return [marker]
