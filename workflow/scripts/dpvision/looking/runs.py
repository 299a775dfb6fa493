"""Runs by a part of their name: their records of whatever configuration, and those that a plan has and nobody made yet."""

import csv
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpvision.code import code_digest
from dpvision.errors import UserError
from dpvision.files import read_json
from dpvision.looking.status import progress_of
from dpvision.plan import Plan
from dpvision.plan.specs import Spec
from dpvision.privacy.exclusions import list_exclusions, read_searched_data, searches_of
from dpvision.training.owner import named, owner_of

NEAR = 5  # names that an unknown one could have been meant for
CUTOFF = 0.5  # share of its letters that such a name has, too: with fewer it was not meant


@dataclass
class Run:
    """A run as it is now; what it has not left yet is None or empty."""

    folder: str
    """Path below the project's folder."""
    spec: Spec | None
    history: list[dict[str, float | None]]
    metrics: dict[str, Any] | None
    ledger: dict[str, Any] | None
    provenance: dict[str, Any] | None
    progress: dict[str, Any] | None
    owner: str | None
    artifacts: list[str]
    """Artifacts of the present configuration that show it."""
    exclusions: list[str]
    """What its ε leaves out, a sentence each."""

    @property
    def name(self) -> str:
        return Path(self.folder).name

    @property
    def sessions(self) -> list[dict[str, Any]]:
        return self.provenance["sessions"] if self.provenance else []

    @property
    def other_code(self) -> str | None:
        """Return which code it was made by, where that is not the code that is here."""
        if not self.provenance:
            return None
        codes = {self.provenance["code"], *(session["code"] for session in self.sessions)}
        now = code_digest(*self.provenance["stage"].split())
        return None if codes == {now} else f"{' and '.join(sorted(codes))}, now {now}"


def find(root: Path, part: str, plan_of: Callable[[str], Plan], scale: str | None) -> Run:
    """Return the one run with this part in its folder's name, begun if there is one; `plan_of` a scale says what is planned."""
    part, planned = part.rstrip("/"), plan_of(scale or "")
    begun: set[str] = set()
    for runs in (root / planned.results / "runs", *(() if scale else [root / "results/runs", *root.glob("results/*/runs")])):
        begun |= {str(folder.relative_to(root)) for folder in runs.glob("*-*")}
    there = begun | {planned.folder(("train", name)) for name in planned.runs}
    matching = sorted(folder for folder in begun if part in folder) or sorted(folder for folder in there if part in folder)
    exact = [folder for folder in matching if part in (folder, Path(folder).name)]
    if not matching:
        near = difflib.get_close_matches(part, {Path(folder).name for folder in there}, n=NEAR, cutoff=CUTOFF)
        nearest = f"; near it: {', '.join(near)}" if near else ""
        raise UserError(
            f"no run is called {part}{nearest}; of another scale: --scale NAME. "
            f"List those that are made: ls {planned.results}/runs"
        )
    if len(exact or matching) != 1:
        folders = "".join(f"\n  {folder}" for folder in matching)
        raise UserError(f'{len(matching)} runs have "{part}" in their name; say more of it:{folders}')
    (folder,) = exact or matching
    of = Path(folder).parts[1]
    return read(
        root, folder, planned if folder.startswith(f"{planned.results}/runs/") else plan_of("paper" if of == "runs" else of)
    )


def read(root: Path, folder: str, plan: Plan) -> Run:
    whole, name = root / folder, Path(folder).name
    checkpoint = root / plan.results / "checkpoints" / name
    owner = owner_of(whole / ".owner")
    spec = _json(whole / "spec.json") or plan.runs.get(name)
    return Run(
        folder,
        spec,
        _history(whole / "history.csv") or _history(checkpoint / "history.csv"),
        _json(whole / "metrics.json"),
        _json(whole / "ledger.json"),
        _json(whole / "provenance.json"),
        progress_of(checkpoint),
        named(owner) if owner else None,
        [artifact for artifact in plan.artifacts if name in plan.runs_of(artifact)],
        list_exclusions(spec, _searched_data(spec, plan, whole)) if spec else [],
    )


def _searched_data(spec: Spec, plan: Plan, folder: Path) -> list[Spec | None]:
    """Return what the searches for a run held out: by the plan, or by their records where it plans them no more."""
    studies = plan.of("search")
    searches = searches_of(spec)
    if all(name in studies for name in searches):
        return [studies[name]["run"]["data"] for name in searches]
    return read_searched_data(spec, folder)


def _json(file: Path) -> Any:
    return read_json(file) if file.exists() else None


def _history(file: Path) -> list[dict[str, float | None]]:
    if not file.exists():
        return []
    with open(file, newline="", encoding="utf-8") as rows:
        return [{key: float(value) if value else None for key, value in row.items()} for row in csv.DictReader(rows)]


def flat(spec: Spec, prefix: str = "") -> dict[str, Any]:
    """Return the values of a spec by dotted keys."""
    found: dict[str, Any] = {}
    for key, value in spec.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found
