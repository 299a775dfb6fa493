"""All that was made of a folder of pictures: listed, and deleted."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from dpvision import plan
from dpvision.errors import UserError
from dpvision.own_pictures.paper import names_given
from dpvision.own_pictures.try_folder import refuse_taken
from dpvision.plan import own
from dpvision.plan.stages import STAGES

LEFT = ("report.html", "report.zip", "archive")  # in a folder of results: made of all its papers together


def copies_of(name: str, root: Path) -> list[Path]:
    """Return the paper in own/ and everything that was made of its pictures.

    Raises:
        UserError: The name is one of the project's own, or there is nothing of it.
    """
    refuse_taken(name, root)
    names = names_given(name) | set(own.artifact_names(name, root))
    copies = [entry for parent in _parents(root) for entry in sorted(parent.iterdir()) if _first_name(entry) in names]
    folder = root / own.FOLDER / name
    if folder.exists():
        copies.insert(0, folder)
    if not copies:
        existing = ", ".join(own.own_papers(root)) or "none"
        raise UserError(
            f"{name}: there is no such paper in {own.FOLDER}/, and nothing that was made of one. There are: {existing}"
        )
    return copies


def listing(copies: list[Path], root: Path) -> list[str]:
    """Return a line for each folder in which copies lie, with their number and size, and a line for all."""
    by_parent: dict[Path, list[Path]] = {}
    for path in copies:
        by_parent.setdefault(path.parent, []).append(path)
    lines = [f"  {_in_words(paths, root)}: {_size_in_words(sum(map(_size, paths)))}" for paths in by_parent.values()]
    return [*lines, f"together {_size_in_words(sum(map(_size, copies)))}"]


def remove(copies: list[Path], root: Path) -> list[str]:
    """Delete what `copies_of` found; return what is to be said."""
    for path in copies:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    left = [results / file for results in _results(root) for file in LEFT if (results / file).exists()]
    lines = [f"may show it, too, and was not deleted: {path.relative_to(root)}" for path in left if own.SCALE in path.parts]
    return ["deleted. Your own folder of pictures is as it was.", *lines]


def _results(root: Path) -> list[Path]:
    """Return the folders of results of all scales."""
    scales = sorted(path.stem for path in (root / "config/scales").glob("*.yaml"))
    return [root / "results", *(root / "results" / scale for scale in scales)]


def _parents(root: Path) -> Iterator[Path]:
    """Yield the folders whose entries are named after data sets or artifacts."""
    data = root / plan.DATA
    places = [data / kind for kind in ("raw", "prepared", "features")] + sorted((data / "logs").glob("*"))
    stages = {stage.folder for stage in STAGES.values() if not stage.shared}
    for results in _results(root):
        places += [results / kind for kind in sorted({"tables", "figures", "plan", "checkpoints", *stages})]
        places += sorted((results / "logs").glob("*")) + sorted((results / "report").glob("*"))
    yield from (place for place in places if place.is_dir())


def _first_name(entry: Path) -> str:
    """Return the name that an entry begins with: pets_seen of pets_seen-linear-eps1-seed0-0123456789ab."""
    return re.split(r"[-.]", entry.name, maxsplit=1)[0]


def _in_words(paths: list[Path], root: Path) -> str:
    first = paths[0].relative_to(root)
    return f"{first}" if len(paths) == 1 else f"{first.parent}: {paths[0].name} and {len(paths) - 1} more"


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())


def _size_in_words(size: int) -> str:
    for unit, bytes_each in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= bytes_each:
            return f"{size / bytes_each:.1f} {unit}"
    return f"{size} bytes"
