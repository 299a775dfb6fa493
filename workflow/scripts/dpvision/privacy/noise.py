"""Gaussian noise for a sum that one example moves by at most its sensitivity."""

from collections.abc import Sequence

import torch
from torch import Tensor


def noise_like(tensors: Sequence[Tensor], scale: float, generator: torch.Generator) -> list[Tensor]:
    """Draw N(0, scale^2) in the tensors' shapes; `scale` is sigma * sensitivity, once a step whatever the batch."""
    return [torch.empty_like(t).normal_(0, scale, generator=generator) for t in tensors]
