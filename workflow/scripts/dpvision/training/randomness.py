"""Streams of random numbers: one for each purpose, all decided by the run's seed and spec.

A seed has 63 bits. PyTorch's generator on a CPU takes the low 32 of them, so of n trainings two have the same noise with a
probability of some n² / 2^33: 1 in 86,000 for 316 trainings, 1 in 86 for 10,000. One on a graphics card takes them all. Longer
seeds would change the bits of every run that there is.
"""

import hashlib

import torch


def stream_seed(seed: int, purpose: str) -> int:
    """Return a seed of its own for each purpose, so that runs whose seeds are neighbours share nothing."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:8]) >> 1


def stream(seed: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(stream_seed(seed, purpose))
