"""The one owner of a run at a time, whatever the machine: two processes that wrote into one run would spoil it.

Owners are files 1, 2, ... in a folder that all machines see; the highest number owns, and no number is given twice. The
next is made by a link that must not exist yet: of many that want it one gets it, by what every file system promises,
NFS too, where a kernel's locks are not to be relied on.

An owner shows life by the date of its file. A process of the same machine is dead when the kernel says so; any is when
its file kept its date at so many looks in a row. No two clocks are compared, and a look that a file server held up
counts as one. Who was taken for dead and lives (suspended, cut off) finds its file gone before it writes.
"""

import errno
import json
import logging
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpvision.errors import UserError
from dpvision.logs import tell

INTERVAL = 5.0  # seconds between two signs of life, and between two looks for them
LOOKS = 12  # without a new sign of life, and the owner is taken for dead

log = logging.getLogger(__name__)


@contextmanager
def owned(folder: Path) -> Iterator[Callable[[], None]]:
    """Wait until the folder is ours. Yield a check to call before a write: it raises if the folder is ours no more."""
    file, text = _taken(folder)

    def still_ours() -> None:
        if _look(file)[0] != text:
            raise UserError(
                f"{file} is gone: this process showed no life for {LOOKS * INTERVAL:.0f} s (suspended, or cut off from the "
                "files), was taken for dead, and the run may belong to another by now. Stopping; nothing was written"
            )

    over = threading.Event()
    life = threading.Thread(target=_show_life, args=(file, over), daemon=True)
    life.start()
    try:
        yield still_ours
    finally:
        over.set()
        life.join()
        if _look(file)[0] == text:
            os.truncate(file, 0)  # nobody's; the number is not given again


def _taken(folder: Path) -> tuple[Path, str]:
    """Wait until no other process owns the run, take it, and return our file and what it says."""
    folder.mkdir(parents=True, exist_ok=True)
    watched, looks, announced = (0, 0), 0, ""
    while True:
        number = _highest(folder)
        owner, shown = _look(folder / str(number))
        looks = looks + 1 if (number, shown) == watched else 0
        watched = number, shown
        if not owner or looks >= LOOKS or _ended(json.loads(owner)):
            if taken := _take(folder, number + 1):
                if owner:
                    log.info("taking over from %s, which is dead", named(json.loads(owner)))
                return taken
            continue
        if owner != announced:
            tell(f"{named(json.loads(owner))} is already training this run; waiting until it ends")
            announced = owner
        time.sleep(INTERVAL)


def _take(folder: Path, number: int) -> tuple[Path, str] | None:
    """Take a number for this process; return None if another one was first."""
    ours, text = folder / str(number), json.dumps(_ourselves())
    beside = folder / f".{uuid.uuid4().hex}"
    beside.write_text(text, encoding="utf-8")
    with suppress(FileExistsError):  # NFS says so of a link that it made, too, when its first answer was lost
        os.link(beside, ours)
    beside.unlink()
    if _look(ours)[0] != text:
        return None
    if _highest(folder) != number:  # we looked long ago: the number was given, and its file is gone by now
        ours.unlink(missing_ok=True)  # the present owner may have done so
        return None
    for other in _numbers(folder):
        if other < number:
            (folder / str(other)).unlink(missing_ok=True)
    return ours, text


def owner_of(folder: Path) -> dict[str, Any] | None:
    """Return who owns the run, for people who look once: by this machine's clock where its kernel cannot say."""
    text, shown = _look(folder / str(_highest(folder)))
    if not text or time.time() - shown / 1e9 > LOOKS * INTERVAL:
        return None
    owner = json.loads(text)
    return None if _ended(owner) else owner


def _numbers(folder: Path) -> list[int]:
    return [int(file.name) for file in folder.glob("[0-9]*")]


def _highest(folder: Path) -> int:
    return max(_numbers(folder), default=0)


def _look(file: Path) -> tuple[str, int]:
    """Return a file's text, and when it last showed life. Opened, it is asked for at NFS's server, and not in its memory."""
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read(), os.fstat(opened.fileno()).st_mtime_ns
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ESTALE):  # the second is NFS', of a file that went while it was open
            raise
        return "", 0


def _show_life(file: Path, over: threading.Event) -> None:
    while not over.wait(INTERVAL):
        with suppress(OSError):  # the file server may be away for a while
            os.utime(file)


def _ourselves() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "machine": _machine(),
        "process": os.getpid(),
        "process_began": _began(os.getpid()),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def named(owner: dict[str, Any]) -> str:
    job = f", SLURM job {owner['slurm_job']}" if owner["slurm_job"] else ""
    return f"process {owner['process']} on {owner['host']}{job} since {owner['since']}"


def _ended(owner: dict[str, Any]) -> bool:
    """Tell whether an owner has ended, as far as this machine's kernel can say."""
    return owner["machine"] == _machine() and owner["process_began"] != _began(owner["process"])


def _machine() -> str | None:
    """Return this boot of this kernel, and the space of our process numbers: containers have their own. None without Linux."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def _began(process: int) -> str | None:
    """Return when a process began, in the kernel's ticks: numbers are given again. None if it has ended, waited for or not."""
    try:
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else rest[18]
