"""Graphics cards of a workstation, each for one job: Snakemake counts them, and does not say which one is whose.

Where a cluster or a person chose, CUDA_VISIBLE_DEVICES is set and stands. torch must not be loaded yet: it looks once.
"""

import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dpvision.locks import held

PAUSE = 1.0  # seconds between two looks at cards that are all taken

log = logging.getLogger(__name__)


def of_machine() -> int:
    """Count the cards by the driver's device files: nothing to start, nothing to parse, and CUDA numbers as many."""
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def of_user() -> Path:
    """Return the folder where a user's jobs here see who has what; not XDG_RUNTIME_DIR, which goes when the user logs out."""
    folder = Path(tempfile.gettempdir()) / f"dpvision-cards-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextmanager
def taken(count: int, there: int | None = None, folder: Path | None = None) -> Iterator[None]:
    """Give this process the first `count` free cards inside, and no others to see; wait until there are so many.

    With fewer than two there is nothing to choose; with fewer than `count` the work says so itself.
    """
    there = of_machine() if there is None else there
    if not count or there < max(2, count) or "CUDA_VISIBLE_DEVICES" in os.environ:
        yield
        return
    folder, said = folder or of_user(), ""
    while True:
        with ExitStack() as ours:
            numbers, holders = _free(folder, count, there, ours)
            if len(numbers) == count:
                os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, numbers))
                log.info("graphics cards of this job: %s", os.environ["CUDA_VISIBLE_DEVICES"])
                yield
                return
        if (waits := f"waiting for graphics cards: {count} needed, {len(numbers)} of {there} free; {holders}") != said:
            log.warning(said := waits)
        time.sleep(PAUSE)


def _free(folder: Path, count: int, there: int, ours: ExitStack) -> tuple[list[int], str]:
    """Return the cards held from now on, and who holds others. One job looks at a time: two could take half each for ever."""
    numbers, holders = [], []
    with held(folder / "looking"):
        for number in range(there):
            path = folder / str(number)
            try:
                file = ours.enter_context(held(path, wait=False))
            except BlockingIOError:
                holders.append(f"{number} is held by process {path.read_text(encoding='utf-8')}")
                continue
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            numbers.append(number)
            if len(numbers) == count:
                break
    return numbers, ", ".join(holders)
