"""A file that one process holds at a time; the kernel lets go of it when that process ends, however it ends."""

import fcntl
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def held(path: Path, wait: bool = True) -> Iterator[TextIO]:
    """The open file while it is ours. Without `wait`, BlockingIOError where another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        _lock(file, wait)
        yield file


def _lock(file: TextIO, wait: bool) -> None:
    """By fcntl, which a shared file system passes on to its other machines; some, GPFS, keep flock to the one.

    As flock's it belongs to the open file, and not to the process.
    """
    if sys.platform == "linux":
        whole = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, whole)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def is_held(path: Path) -> bool:
    try:
        with held(path, wait=False):
            return False
    except BlockingIOError:
        return True
