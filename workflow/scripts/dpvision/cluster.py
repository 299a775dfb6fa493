"""Jobs that a killed snakemake leaves in SLURM's queue, and how the next one ends them."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from dpvision.errors import UserError
from dpvision.locks import held

OWNER = Path(".snakemake/head")
PREFIX = "dpvision_"  # the jobs' names begin with it: slurm-jobname-prefix in slurm/config.yaml
PAUSE = 2.0
PATIENCE = 150.0  # seconds; a job has SLURM's KillWait, 30 s by default, to keep its state

_ours = ExitStack()  # held until this process ends, however it ends


def take_over() -> None:
    """End the jobs that an earlier snakemake submitted from this folder, if that snakemake is gone.

    A new one does not know them and submits the same work again: those that run would refuse their twins, and those
    that wait would do it once more later. A training that is ended keeps its state, and its new job continues from there.
    """
    orphans = _queued()
    try:
        file = _ours.enter_context(held(OWNER, wait=False))
    except BlockingIOError:
        raise UserError(f"another snakemake works in this folder: {OWNER.read_text()}; wait for it or end it") from None
    except OSError as error:  # some file systems of clusters have no locks
        if orphans:
            raise UserError(
                f"jobs of another snakemake in this folder are in the queue, and nothing here shows if it still runs "
                f"({OWNER}: {error}). Wait for them, or end them (a training keeps its state): scancel {' '.join(orphans)}"
            ) from None
        return
    file.truncate(0)
    file.write(f"process {os.getpid()} on {os.uname().nodename}")
    file.flush()
    if not orphans:
        return
    said = f"an earlier snakemake is gone, but its jobs are not: ending {' '.join(orphans)} (a training keeps its state)"
    print(said, file=sys.stderr)
    subprocess.run(["scancel", *orphans], check=False)  # a job that ended meanwhile is no error
    end = time.monotonic() + PATIENCE
    while orphans := _queued():
        if time.monotonic() > end:
            raise UserError(f"jobs of an earlier snakemake do not end: {' '.join(orphans)}; see `squeue --me`")
        time.sleep(PAUSE)


def _queued() -> list[str]:
    """Return the ids of the jobs that were submitted from this folder; none if the controller does not answer."""
    asked = ["squeue", "--noheader", "--user", str(os.getuid()), "--format", "%i|%j|%Z"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    jobs = [line.split("|", 2) for line in answer.splitlines()]
    return [job for job, name, folder in jobs if name.startswith(PREFIX) and Path(folder) == Path.cwd()]
