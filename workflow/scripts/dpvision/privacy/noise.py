"""Gaussian noise for a sum whose sensitivity is C."""

import torch
from torch import Tensor


def add_noise(sums: list[Tensor], scale: float, generator: torch.Generator) -> None:
    """Adds N(0, scale^2) to every coordinate, in place; `scale` is sigma * C, once a step whatever the batch."""
    for tensor in sums:
        tensor.add_(torch.randn(tensor.shape, generator=generator, device=tensor.device, dtype=tensor.dtype), alpha=scale)
