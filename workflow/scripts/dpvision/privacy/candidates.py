"""Candidates worth a try on each kind of device, when clipping is decided by timing: all that depends on the device.

A GPU's entries are guesses that nobody has measured yet; docs/clipping.md says how to measure them.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Candidates:
    """Values to try on a device; the search begins with the first entry of each."""

    images: tuple[int, ...]  # at once, a worker; each is tried while the one before was quicker than all before
    memory_formats: tuple[str, ...]
    mish: tuple[str, ...]
    workers: tuple[int, ...]


def candidates(device: torch.device) -> Candidates:
    """Return the candidates of a device: every core of a CPU works on examples of its own, or all cores on the same."""
    if device.type == "cuda":
        return Candidates((64, 256, 1024, 4096), ("channels last", "contiguous"), ("torch", "pieces"), (1,))
    threads = torch.get_num_threads()
    workers = (threads, 1) if threads > 1 else (1,)
    return Candidates((16, 64, 256, 1024, 4096), ("channels last", "contiguous"), ("pieces", "torch"), workers)


def ruled_out(device: torch.device, numbers: int, places: int, pairs: int, products: int, work: int) -> set[str]:
    """Return the ways of a convolution that cannot be the quickest for an example.

    `numbers`: of its gradient; `places`: of the kernel; `pairs`: of pixels; `products`: multiplied by `gram`; `work`: by the
    gradient itself.
    Kept gradients cost memory traffic, norms by `gram` products of pixels: where there are few, nothing else pays, and where
    there are many, they outgrow the gradients. On a CPU, patches of large maps cost more memory than the library's own
    gradient takes time, and calls for one tiny example after the other take longer than their work.
    """
    out = {"gram"} if pairs > 4 * numbers or products > 64 * numbers else set()
    if products < numbers:
        out = {"one", "grouped", "unfold"}
    if device.type == "cpu":
        out |= {"unfold"} if work > 2**24 and places > 1 else set()
        out |= {"one"} if work < 2**20 else set()
    return out


def takes_mixed_precision(x: torch.Tensor) -> bool:
    """Say whether group normalisation takes low-precision data with weights in full precision, and is quick at it.

    A GPU's kernel does not; a CPU's takes ten times as long backward where the channels lie last.
    """
    return x.device.type == "cpu" and x.is_contiguous()
