"""Streams of random numbers: one for each purpose, all decided by the run's seed and spec."""

import hashlib

import torch


def stream_seed(seed: int, purpose: str) -> int:
    """A seed of its own for each purpose, so that runs whose seeds are neighbours share nothing."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:8]) >> 1


def stream(seed: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(stream_seed(seed, purpose))
