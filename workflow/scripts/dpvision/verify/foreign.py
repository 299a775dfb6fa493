"""A plan that somebody else wrote: each name in it is looked at before a path is made of it."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpvision.errors import UserError
from dpvision.plan import Plan
from dpvision.plan.specs import Spec
from dpvision.plan.stages import STAGES, Key

NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,199}")
"""Names of scales, papers, artifacts, data sets and pieces of work: never a folder above, never a path."""
RESULTS = re.compile(r"results(/[a-z0-9_]+)?")
"""Folder of a scale's results in an archive."""


class ForeignPlan(Plan):
    """A plan that an archive or a folder of results gives.

    Guarantees: no path that it returns lies outside of the folders of its results, whatever its specs say.
    """

    def folder(self, key: Key) -> str:
        refuse_name(key[1], "a spec")
        return super().folder(key)

    def targets(self, name: str) -> list[str]:
        refuse_name(name, "an artifact")
        return super().targets(name)

    def _files_read(self, spec: Spec, reads: list[str]) -> Iterator[str]:
        for cell in spec["cells"]:
            for read in cell.get("reads", reads):
                stage, _, file = read.partition("/")
                if file not in STAGES[stage].record:
                    raise UserError(f"an artifact reads {read!r}, which is no part of a record")
        return super()._files_read(spec, reads)


def refuse_name(name: Any, where: str) -> None:
    """Raise unless a value can be the name of a folder or of an artifact.

    Args:
        name: Whatever stands where a name is expected.
        where: The place where it stands, for the message.
    """
    if not (isinstance(name, str) and NAME.fullmatch(name)):
        raise UserError(
            f"{where} names {name!r:.200}: a name has small letters, digits, '_', '.' and '-' alone. The pipeline writes no "
            "such name, and nothing was read or written by it"
        )


def refuse_names_of_plan(plan: dict[str, Any]) -> None:
    """Raise if plan.json of an archive has a name that is none, or a folder of results that is no such folder."""
    if not (isinstance(plan["results"], str) and RESULTS.fullmatch(plan["results"])):
        raise UserError(f"plan.json says that the results lie in {plan['results']!r:.200}, not in results or results/SCALE")
    refuse_name(plan["scale"], "plan.json, scale")
    for part in ("papers", "artifacts", "labels", "sources"):
        for name in plan[part]:
            refuse_name(name, f"plan.json, {part}")
    for paper, artifacts in plan["papers"].items():
        for name in artifacts:
            refuse_name(name, f"plan.json, papers.{paper}")
    for stage, specs in plan["work"].items():
        if stage not in STAGES:
            raise UserError(f"plan.json, work: there is no stage {stage!r:.200}; stages are {', '.join(STAGES)}")
        for name in specs:
            refuse_name(name, f"plan.json, work.{stage}")
    for name, spec in plan["artifacts"].items():
        refuse_names_of_artifact(spec, f"plan.json, artifacts.{name}")


def refuse_names_of_artifact(spec: Spec, where: str) -> None:
    """Raise if an artifact's spec has work of no stage, or under a name that is none.

    Args:
        spec: The artifact's spec, from plan.json or from a file in plan/.
        where: The place where it stands, for the message.
    """
    for cell in spec["cells"]:
        for stage, names in cell["work"].items():
            if stage not in STAGES:
                raise UserError(f"{where} has work of {stage!r:.200}: there is no such stage")
            for name in names.values():
                refuse_name(name, f"{where}, work.{stage}")


def refuse_special_files(folder: Path) -> None:
    """Raise if a folder has a pipe or a device, or a link to one: reading it would never end."""
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            if path.exists() and not stat.S_ISREG(path.stat().st_mode):
                raise UserError(f"{path} is neither a file nor a folder, and is not read: take it away")
