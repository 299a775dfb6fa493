"""The project's source: its files, its commit, and the files that differ from the commit.

In a checkout git says so. In an archive that was unpacked there is no git; the archive put a file beside the source that
says what it was.
"""

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

from dpvision.files import digest, file_digest

ROOT = Path(__file__).parents[3]
NAME, VERSION = "dpvision", "0.1.0"
"""Name and version, the same as in pyproject.toml and CITATION.cff."""
NOTE = "source.json"
"""File in an archive's source: commit, date, changed files, and the SHA-256 of every file."""


class Source(NamedTuple):
    commit: str
    date: str
    """Date of the commit, with its time zone."""
    files: list[str]
    """All files, sorted: those that are committed, and those that are new and not ignored."""
    changed: list[str]
    """Files that are not as committed: changed, new, or gone."""

    @property
    def changed_code(self) -> list[str]:
        """Files that are not as committed, without the configuration: what that says of a result stands in its spec."""
        return [file for file in self.changed if not file.startswith("config/")]

    def identity(self, root: Path = ROOT) -> str:
        """Return a digest of the source: another source has another one."""
        there = [file for file in self.changed if (root / file).is_file()]
        return digest([self.commit, self.changed, [file_digest(root / file) for file in there]])


def source(root: Path = ROOT) -> Source | None:
    """Return the source; None if the folder is neither a checkout of this project nor an unpacked archive."""
    if (root / NOTE).exists():
        return _of_archive(root)
    try:
        if Path(_git(root, "rev-parse", "--show-toplevel").strip()).resolve() != root.resolve():
            return None  # some other project's, around this folder
        commit, date = _git(root, "log", "-1", "--format=%H %cI").split()
        files = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")[:-1]
        status = _git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all").split("\0")[:-1]
    except (OSError, subprocess.CalledProcessError):
        return None
    there = [file for file in set(files) if (root / file).is_file()]
    return Source(commit, date, sorted(there), sorted(line[3:] for line in status))


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout


def _of_archive(root: Path) -> Source:
    said = json.loads((root / NOTE).read_text(encoding="utf-8"))
    there = {file: sha for file, sha in said["files"].items() if (root / file).is_file()}
    touched = {file for file, sha in said["files"].items() if file not in there or file_digest(root / file) != sha}
    return Source(said["commit"], said["date"], sorted(there), sorted({*said["changed"], *touched}))
