"""A file that one process holds at a time; the kernel lets go of it when that process ends, however it ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def held(path: Path, wait: bool = True) -> Iterator[TextIO]:
    """The open file while it is ours. Without `wait`, BlockingIOError where another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield file


def is_held(path: Path) -> bool:
    try:
        with held(path, wait=False):
            return False
    except BlockingIOError:
        return True
