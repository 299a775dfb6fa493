"""A process of a training on several devices, other than the first, which starts it (devices.py) and tells it what to do."""

import logging
import os
import pickle
import sys
import threading

from dpvision.errors import Interrupted
from dpvision.training.devices import joined
from dpvision.training.machine import settle
from dpvision.training.run import take_part


def main() -> None:
    rank, count, meeting, threads, work = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_the_first, daemon=True).start()
    words = f"%(asctime)s  process {rank}: %(message)s"
    logging.basicConfig(level=logging.WARNING, format=words, datefmt="%H:%M:%S", force=True)
    settle(threads)
    try:
        with joined(rank, count, meeting) as devices:
            take_part(devices, *work)
    except Interrupted:
        pass  # all processes were interrupted; the first one reports it
    except Exception:
        logging.exception("failed:")
        sys.exit(1)


def _end_with_the_first() -> None:
    """End this process with the first one: the pipe, through which nothing more comes, ends however that came to die."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    main()
