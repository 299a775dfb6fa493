"""A full disk, said in one message: where, how much is free, what to do."""

import errno
import shutil
import sys
from pathlib import Path

NEARLY_FULL = 10_000_000
"""Bytes: with less than that free, even Snakemake's own notes cannot be written."""


def is_full_disk(error: BaseException | None) -> bool:
    """Tell whether an error, or one that led to it, says that a disk or a quota is full.

    Libraries in other languages (safetensors) raise errors of their own with the system's text.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "No space left on device" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def full_disk_message(folder: Path) -> str:
    free = shutil.disk_usage(folder).free / 1e6
    return (
        f"the disk is full: {free:.1f} MB are free under {folder.absolute()}. Free some space (a quota counts, too) and give "
        "the same command again: it goes on where it was"
    )


def warn_if_full(folder: Path) -> None:
    """Say on stderr if the disk of a folder is nearly full: what failed then failed of that."""
    if shutil.disk_usage(folder).free < NEARLY_FULL:
        print(full_disk_message(folder), file=sys.stderr)
