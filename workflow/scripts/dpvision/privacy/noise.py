"""Gaussian noise for a sum whose sensitivity is C."""

from collections.abc import Sequence

import torch
from torch import Tensor


def noise_like(tensors: Sequence[Tensor], scale: float, generator: torch.Generator) -> list[Tensor]:
    """N(0, scale^2) in the tensors' shapes; `scale` is sigma * C, once a step whatever the batch."""
    return [torch.empty_like(t).normal_(0, scale, generator=generator) for t in tensors]
