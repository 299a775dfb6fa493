"""The verdict on a place: all checks of it, and what is said of them."""

import csv
import importlib
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dpvision.errors import UserError
from dpvision.files import file_digest, read_json
from dpvision.logs import Progress
from dpvision.looking.text import counted, some
from dpvision.plan.stages import STAGES, Key
from dpvision.provenance import departures
from dpvision.verify import digests
from dpvision.verify.artifacts import artifact
from dpvision.verify.finding import Finding, printable
from dpvision.verify.place import Place, opened

FAULTS = (
    *(OSError, UserError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RuntimeError),
    *(csv.Error, zipfile.BadZipFile, zlib.error),
)
"""Errors that a record may raise where it is read, if somebody has changed it."""

LEFT_OUT = (
    "left out on purpose, since noise is secret or a search is covered: {} of {}. Of such trainings weights, spec and ledger "
    "were looked at"
)


@dataclass
class Verdict:
    of: str
    checked: dict[str, int] = field(default_factory=dict)
    problems: list[dict[str, str]] = field(default_factory=list)
    """Problems, which do not hold: where, what, expected, found."""
    remarks: list[str] = field(default_factory=list)
    """Remarks that a reader of results that hold should know."""
    not_checked: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        return {"holds": self.holds, **asdict(self)}

    def __str__(self) -> str:
        one = {many: one for one, many in (stage.words for stage in STAGES.values())}
        looked_at = [f"{count} {one.get(what, what) if count == 1 else what}" for what, count in self.checked.items()]
        lines = [f"{self.of}: looked at {', '.join(looked_at)}"]
        lines += [f"  note: {remark}" for remark in self.remarks]
        lines += [f"  not checked: {text}" for text in self.not_checked]
        lines += [f"  DOES NOT HOLD  {Finding(**problem)}" for problem in self.problems]
        lines.append("everything that was checked holds" if self.holds else f"{len(self.problems)} things do not hold")
        return "\n".join(map(printable, lines))


def verify(path: Path) -> Verdict:
    with opened(path) as place:
        verdict = Verdict(path.name or str(path))
        verdict.problems += [_text(finding) for finding in place.damaged]
        checks = list(_checks(place))
        progress = Progress("verify", len(checks))
        for done, (kind, name, check) in enumerate(checks, 1):
            verdict.problems += [_text(finding) for finding in careful(name, check)]
            verdict.checked[kind] = verdict.checked.get(kind, 0) + 1
            progress.step(done, partial(str, name))
        progress.close()
        verdict.remarks += _remarks(place)
        verdict.not_checked += _not_checked(place)
        return verdict


def _text(finding: Finding) -> dict[str, str]:
    return {key: str(value) for key, value in finding._asdict().items()}


def _checks(place: Place) -> Iterator[tuple[str, str, Callable[[], Iterator[Finding]]]]:
    """Yield each check with what it is of, by kind and name."""
    if place.archive:
        yield "manifest", "the manifest", partial(digests.manifest, place)
        yield "source", "the source", partial(digests.source, place)
    for key in _by_stage(place):
        stage = STAGES[key[0]]
        if place.left_out.issuperset(place.plan.record(key)):
            continue
        if not stage.shared or place.archive or Path(place.plan.shared).is_dir():
            module, function = stage.verify.split(":")
            check = getattr(importlib.import_module(module), function)
            yield stage.words[1], place.called(place.plan.folder(key)), partial(check, place, key)
    for name in place.plan.artifacts:
        if place.left_out.issuperset(place.plan.targets(name)):
            continue
        yield "artifacts", name, partial(artifact, place, name)


def _by_stage(place: Place) -> list[Key]:
    return sorted(place.plan.work, key=lambda key: list(STAGES).index(key[0]))


def careful(name: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield what a check finds, and what stops it."""
    try:
        yield from check()
    except FAULTS as error:
        yield Finding(name, "cannot be checked to its end", "what the pipeline wrote", f"{type(error).__name__}: {error}")


def _remarks(place: Place) -> list[str]:
    """Return remarks on the archive, and on how its records came about."""
    remarks = []
    lock = commit = None
    if place.unmade:
        records = counted("record", "records", place.unmade_records)
        remarks.append(f"not made: {records} of {counted('artifact', 'artifacts', len(place.unmade))}: {some(place.unmade)}")
    if place.left_out:
        remarks.append(LEFT_OUT.format(counted("file", "files", len(place.left_out)), _of_what(place)))
    if place.about:
        about = place.about
        commit = str(about["commit"])
        remarks.append(f"scale {place.plan.scale}, commit {commit}")
        if about["changed"]:
            changed = f"{len(about['changed'])} files differ: {some(about['changed'], 5)}"
            remarks.append(f"THE SOURCE IN THE ARCHIVE IS NOT AS COMMITTED: {changed}")
        locked = place.root / "source/envs/requirements.lock"
        lock = file_digest(locked)[:12] if locked.exists() else None
    made: Counter[str] = Counter()
    for key in _by_stage(place):
        file = Path(place.plan.folder(key)) / "provenance.json"
        if file.exists() and not STAGES[key[0]].shared:
            try:
                texts = departures(read_json(file), commit, lock)
            except FAULTS:
                continue  # said where the record itself is looked at
            made.update(f"{STAGES[key[0]].words[1]}: {text}" for text in texts)
    return remarks + [f"{count} {text}" for text, count in made.items()]


def _of_what(place: Place) -> str:
    """Return which work and artifacts lack files on purpose, counted."""
    keys = [key for key in place.plan.work if place.left_out.intersection(place.plan.record(key))]
    stages = Counter(key[0] for key in keys)
    parts = [counted(*STAGES[stage].words, count) for stage, count in stages.items()]
    names = [name for name in place.plan.artifacts if place.left_out.intersection(place.plan.targets(name))]
    parts += [f"{counted('artifact', 'artifacts', len(names))} ({some(names, 5)})"] if names else []
    return ", ".join(parts)


def _not_checked(place: Place) -> list[str]:
    drawn = ["figures as drawn (.svg, .pdf, .png): their numbers were, the CSVs beside them"]
    if secret := len(place.plan.unrepeatable(place.plan.work)):
        drawn.append(f"that {secret} trainings and searches come out so again: their noise is secret, nobody can repeat them")
    if place.archive:
        return [*drawn, "that the weights have these accuracies: make reproduce"]
    texts = ["digests of files: a folder of results has no manifest"]
    if place.plan.labels:
        texts.append("README.md, which shows the tables and figures beside it")
    else:
        texts.append("tables as .md and .tex, and claims, whose labels are not kept here")
    texts += [] if place.weights else ["weights: there are none in this folder"]
    if not Path(place.plan.shared).is_dir():
        texts.append(f"digests of the data: there is no {place.plan.shared}")
    return [*drawn, *texts, "the specs of studies and analyses, but for the digests in their names"]
