"""What is worth a try on each kind of device, when clipping is decided by timing: all that depends on the device.

A GPU's entries are guesses that nobody has measured yet; docs/clipping.md says how to measure them.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Candidates:
    """The first entry of each is where the search begins."""

    images: tuple[int, ...]  # at once, a worker; each is tried while the one before was quicker than all before
    memory_formats: tuple[str, ...]
    mish: tuple[str, ...]
    workers: tuple[int, ...]


def candidates(device: torch.device) -> Candidates:
    """Return those of a device: every core of a CPU works on examples of its own, or all cores on the same."""
    if device.type == "cuda":
        return Candidates((64, 256, 1024, 4096), ("channels last", "contiguous"), ("torch", "pieces"), (1,))
    threads = torch.get_num_threads()
    workers = (threads, 1) if threads > 1 else (1,)
    return Candidates((16, 64, 256, 1024, 4096), ("channels last", "contiguous"), ("pieces", "torch"), workers)


def takes_mixed_precision(x: torch.Tensor) -> bool:
    """Say whether group normalisation takes low-precision data with weights in full precision, and is quick at it.

    A GPU's kernel does not; a CPU's takes ten times as long backward where the channels lie last.
    """
    return x.device.type == "cpu" and x.is_contiguous()
