"""Files that processes hold, one or several; the kernel lets go of them when a process ends, however it ends."""

import fcntl
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


@contextmanager
def held(path: Path, wait: bool = True) -> Iterator[TextIO]:
    """Yield the open file while this process holds it; without `wait`, raise BlockingIOError if another one does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        _lock(file, wait)
        yield file


def _lock(file: TextIO, wait: bool) -> None:
    """Lock a file by fcntl: shared file systems pass that on to other machines, but some, like GPFS, keep flock to one.

    Like a lock by flock, it belongs to the open file, and not to the process.
    """
    if sys.platform == "linux":
        fcntl.fcntl(file, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, _whole(fcntl.F_WRLCK))
    else:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _whole(kind: int) -> bytes:
    return struct.pack("hhqqi", kind, os.SEEK_SET, 0, 0, 0)


def is_held(path: Path) -> bool:
    try:
        with held(path, wait=False):
            return False
    except BlockingIOError:
        return True


def show_in_use(file: TextIO) -> None:
    """Show the file in use while this process or a child has it open; several may. Some file systems know no locks."""
    with suppress(OSError):
        if sys.platform == "linux":
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _whole(fcntl.F_RDLCK))
        else:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def in_use(path: Path) -> bool:
    """Tell whether a process holds the file or shows it in use. On Linux asking changes nothing; read access is enough."""
    try:
        with open(path, encoding="utf-8") as file:
            if sys.platform == "linux":
                found = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _whole(fcntl.F_WRLCK))
                return struct.unpack("hhqqi", found)[0] != fcntl.F_UNLCK
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
