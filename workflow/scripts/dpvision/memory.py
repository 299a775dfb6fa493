"""Peak memory of a piece of work, measured."""

import ctypes
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

RESET, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@contextmanager
def peak_mb(device: torch.device) -> Iterator[list[float]]:
    """Yield a list that gets the peak use of memory in MB at the end: the device's, or on a CPU the whole process's.

    Where the system keeps no mark that can be reset, this is the peak since the process began.
    """
    found: list[float] = []
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif RESET.exists():
        if give_back := getattr(ctypes.CDLL(None), "malloc_trim", None):  # memory that was freed before does not count
            give_back(0)
        RESET.write_text("5")
    yield found
    if device.type == "cuda":
        found.append(torch.cuda.max_memory_allocated(device) / 2**20)
    elif STATUS.exists():
        found.append(next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("VmHWM")) / 2**10)
    else:
        found.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)


def limit_mb(device: torch.device, memory_mb: float) -> float:
    """Return what a job that was given `memory_mb` may use of its device's memory: of a card, at most nine tenths."""
    if device.type == "cuda":
        return min(memory_mb, 0.9 * torch.cuda.get_device_properties(device).total_memory / 2**20)
    return memory_mb
