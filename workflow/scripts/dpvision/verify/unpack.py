"""Unpack an archive that somebody sent: into its own folder alone, and to no more than its own size.

Imports nothing but the standard library: `envs/reproduce.py` calls it from the system's Python.
"""

import shutil
import stat
import unicodedata
import zipfile
from pathlib import Path

from dpvision.errors import UserError

MOST_FILES = 500_000
"""Limit on the files of an archive; one of all papers at the scale paper has about 10,000 of results."""
CHUNK = 1 << 20

Damage = tuple[str, Exception]
"""The name of a file that cannot be unpacked, and the error."""


def unpack(path: Path, folder: Path) -> list[Damage]:
    """Unpack an archive into a folder that is its own.

    The pipeline stores files without compression. So what is unpacked is never larger than the archive, and the archive's
    own size is the limit: it is compared with the directory of the zip before anything is written, and again with the bytes
    that are written.

    Args:
        path: The archive, a zip file.
        folder: Where its files go; it has none of them yet.

    Returns:
        The files that are damaged; all others are unpacked.

    Raises:
        UserError: It is no zip file, or the pipeline packs none like it (names, links, number, size), or the disk is too small.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UserError(f"{path} is not an archive that can be opened: {error}") from None
    limit = path.stat().st_size
    damages: list[Damage] = []
    with archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        refuse_members(path, members, limit)
        refuse_small_disk(path, members, folder)
        written = 0
        for member in members:
            try:
                written += _extract(archive, member, folder, limit - written)
            except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
                damages.append((member.filename, error))
    return damages


def refuse_members(path: Path, members: list[zipfile.ZipInfo], limit: int) -> None:
    """Raise if the directory of a zip lists what the pipeline never packs.

    Args:
        path: The archive, for the message.
        members: The files that its directory lists.
        limit: The most bytes that they may have together.
    """
    unpack_it = "nothing was unpacked. The pipeline packs no such archive: ask for it anew where you have it from"
    if len(members) > MOST_FILES:
        raise UserError(f"{path} has {len(members)} files, and at most {MOST_FILES} are unpacked: {unpack_it}")
    seen: dict[str, str] = {}
    for member in members:
        name = member.filename
        if not is_inside(name):
            raise UserError(f"{path} has a file named {name!r}, which may lie outside of its folder: {unpack_it}")
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise UserError(f"{path} has a link or a device named {name!r}: {unpack_it}")
        # a disk that does not tell cases apart would write one over the other
        same = unicodedata.normalize("NFC", name).casefold()
        if same in seen:
            raise UserError(f"{path} has two files named {seen[same]!r} and {name!r}: {unpack_it}")
        seen[same] = name
    size = sum(member.file_size for member in members)
    if size > limit:
        raise UserError(
            f"{path} has {limit} bytes and would be unpacked to {size}: it is compressed, which the pipeline's archives are "
            "not, and nothing was unpacked. If you trust it, unpack it yourself and give the folder"
        )


def refuse_small_disk(path: Path, members: list[zipfile.ZipInfo], folder: Path) -> None:
    """Raise if the disk has less room than the files of an archive need."""
    size, free = sum(member.file_size for member in members), shutil.disk_usage(folder).free
    if size > free:
        raise UserError(
            f"{path} would be unpacked to {size / 1e9:.1f} GB, and {folder.parent} has {free / 1e9:.1f} GB free: nothing was "
            "unpacked. Name a folder with more room: TMPDIR=/large/folder"
        )


def is_inside(name: str) -> bool:
    """Tell whether a name is that of a file below the folder it is joined to, on Windows too."""
    parts = name.split("/")
    return name.isprintable() and not {"\\", ":"} & set(name) and not {"", ".", ".."} & set(parts)


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, limit: int) -> int:
    """Write one file, and return its size; stop at more bytes than the limit, whatever the directory says."""
    target = folder / member.filename
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive.open(member) as packed, open(target, "xb") as file:
        while chunk := packed.read(CHUNK):
            written += len(chunk)
            if written > limit:
                raise ValueError("it is larger than the directory of the archive says")
            file.write(chunk)
    return written
