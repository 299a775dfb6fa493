"""Files that are whole or absent, and JSON with one canonical form."""

import contextlib
import csv
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dpvision.errors import UserError


def canonical_json(value: Any) -> str:
    """Return the one text for a value: sorted keys, no spaces. Digests are taken of it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any, length: int = 12) -> str:
    """Return a name for a JSON value; 12 hex digits keep 10,000 specs apart with odds of 5 million to 1."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def file_digest(path: Path | str, algorithm: str = "sha256") -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


@contextlib.contextmanager
def replacing(path: Path | str, may: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """Yield a path beside `path` to write to; rename it over `path` at the end, or remove it after an error.

    The name keeps the suffix, since many writers choose their format by it. `may()` runs just before the rename;
    raise in it to cancel.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        with open(beside, "rb") as file:
            os.fsync(file.fileno())
        beside.chmod(0o666 & ~_umask())
        may()
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def rights(folder: Path, owner_alone: bool) -> Iterator[None]:
    """Give a folder, and what this process writes meanwhile, rights for their owner alone; or leave rights as they are.

    Args:
        folder: Folder that is made if it is missing.
        owner_alone: Whether nobody else may read it.
    """
    if not owner_alone:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: Path | str, text: str) -> None:
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any, sort_keys: bool = True) -> None:
    """Write JSON for people and diffs: sorted, indented, one value a line."""
    write_text(path, _json(value, sort_keys))


def _json(value: Any, sort_keys: bool = True) -> str:
    return json.dumps(value, sort_keys=sort_keys, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def write_csv(path: Path | str, rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV; the first row's keys are the columns."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_if_changed(path: Path | str, value: Any) -> None:
    """Write JSON with its keys in their own order; a file that says the same already keeps its date."""
    if not is_file_of(path, value):
        write_json(path, value, sort_keys=False)


def is_file_of(path: Path | str, value: Any) -> bool:
    """Tell whether a file is this JSON value with its keys in their own order."""
    return Path(path).exists() and Path(path).read_text(encoding="utf-8") == _json(value, sort_keys=False)


def read_json(path: Path | str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} is not the JSON that it was written as ({error}); delete it so that it is made again"
        ) from error
