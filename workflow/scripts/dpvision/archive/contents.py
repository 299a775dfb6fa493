"""The contents of an archive: which files, by their names in it."""

import atexit
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from dpvision.archive.names import here
from dpvision.errors import UserError
from dpvision.files import digest, file_digest
from dpvision.plan import Plan
from dpvision.plan.plan import FORMAT
from dpvision.plan.specs import Spec
from dpvision.plan.stages import STAGES
from dpvision.plan.withheld import RELEASED, all_withheld_files, is_withheld, refuse_own_pictures, withheld_artifacts
from dpvision.source import NAME, NOTE, VERSION, Source, source

MANIFEST = "manifest-sha256.txt"
Contents = dict[str, Path | bytes]
"""Files by their name in the archive: a path, or the content itself."""


def files_to_archive(plan: Plan) -> list[str]:
    """Return the files that an archive rests on, for Snakemake's plan of jobs.

    Raises:
        UserError: The plan has papers on pictures of the user's own. Snakemake puts a traceback below it, so it is printed
            once more when the command ends.
    """
    try:
        refuse_own_pictures(plan, "an archive")
    except UserError as error:
        atexit.register(print, error, file=sys.stderr)
        raise
    return plan.kept_files()


def archive_spec(plan: Plan) -> Spec:
    """Return what decides an archive beside the results: which are shown, and the source."""
    found = source()
    return {"config": configuration(plan), "plan": digest(specs_of(plan)), "source": found and found.identity()}


def configuration(plan: Plan) -> dict[str, Any]:
    """Return what config/config.yaml and the command line came to; the rest of the configuration is in the source."""
    settings = {"scale": plan.scale, "papers": list(plan.papers)} | ({"artifacts": "selection"} if plan.selection else {})
    return settings | ({"own_leaves": plan.own_leaves} if plan.own else {})


def contents(plan: Plan, root: Path, project: Path, found: Source) -> Contents:
    """Return all files but crate and manifest: of the results in `root`, and of the source in `project`."""
    withheld = set(all_withheld_files(plan))
    results = {file: root / file for file in [*plan.kept_files(), *_where_there(plan, root)] if file not in withheld}
    missing = [file for file, path in results.items() if not path.exists()]
    if missing:
        raise UserError(f"{missing[0]} is not there, and {len(missing) - 1} others; `snakemake archive` makes them first")
    code: dict[str, Path] = {f"source/{file}": project / file for file in found.files}
    names = here()
    for file, path in (results | code).items():
        names.refuse(file.removeprefix("source/"), path.read_bytes())
    logs: Contents = {
        file: names.cleaned((root / file).read_text(encoding="utf-8", errors="replace")).encode() for file in _logs(plan, root)
    }
    made: Contents = {
        f"source/{NOTE}": _json(_source_note(found, code)),
        "archive.json": _json(about(plan, found)),
        "config.json": _json(configuration(plan)),
        "plan.json": _json(specs_of(plan)),
    }
    return dict(sorted({**results, **code, **logs, **made}.items()))


def about(plan: Plan, found: Source) -> dict[str, Any]:
    made_of = {"commit": found.commit, "date": found.date, "changed": found.changed}
    return {
        "format": FORMAT,
        "name": NAME,
        "version": VERSION,
        "scale": plan.scale,
        "title": plan.title,
        "results": plan.results,
        **made_of,
    }


def specs_of(plan: Plan) -> dict[str, Any]:
    """Return the specs of what is kept. Not the user's folders, nor what jobs ask a machine for."""
    kept = plan.kept()
    work = {stage: {name: plan.work[of, name] for of, name in kept if of == stage} for stage in STAGES}
    sources = {spec["name"]: plan.sources[spec["name"]] for spec in work["data"].values()}
    whole = {"papers": plan.papers, "artifacts": plan.artifacts, "labels": plan.labels, "sources": sources, "work": work}
    return {"scale": plan.scale, "title": plan.title, "results": plan.results, **whole}


def _where_there(plan: Plan, root: Path) -> list[str]:
    """Return of each record what not every one has, and what it can do without."""
    found = [
        sorted((root / plan.folder(key)).glob(file))
        for key in plan.kept()
        for file in STAGES[key[0]].optional
        if file in RELEASED or not is_withheld(plan, key)
    ]
    return [file.relative_to(root).as_posix() for files in found for file in files]


def _logs(plan: Plan, root: Path) -> list[str]:
    """Return logs and benchmarks of the jobs that made what leaves: those whose name, or whose folder's, is of it."""
    kept = {name for stage, name in plan.kept() if not is_withheld(plan, (stage, name))}
    names = {*plan.artifacts, *plan.sources, *kept}.difference(withheld_artifacts(plan))
    found = []
    for folder in (f"{plan.results}/logs", f"{plan.shared}/logs"):
        for file in sorted((root / folder).rglob("*")):
            if file.is_file() and names & {file.parent.name, file.stem}:
                found.append(file.relative_to(root).as_posix())
    return found


def _source_note(found: Source, code: dict[str, Path]) -> dict[str, Any]:
    files = {file.removeprefix("source/"): file_digest(path) for file, path in code.items()}
    return {"commit": found.commit, "date": found.date, "changed": found.changed, "files": files}


def sha256(content: Path | bytes) -> str:
    return file_digest(content) if isinstance(content, Path) else hashlib.sha256(content).hexdigest()


def _json(value: Any) -> bytes:
    """Return JSON with its keys in their own order, that of a table's columns: seeds as the configuration lists them."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
