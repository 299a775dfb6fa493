"""Images and labels on the device, once, as bytes; a batch becomes numbers when it is asked for. Or features, as numbers."""

import math

import numpy as np
import torch
from torch import Tensor


class Examples:
    def __init__(self, images: np.ndarray, labels: np.ndarray, mean: list[float], std: list[float], device: torch.device):
        self.images, self.labels = (torch.as_tensor(np.require(a, requirements="W")).to(device) for a in (images, labels))
        self.are_features = self.images.dim() == 2  # numbers already, which nothing normalises
        if self.are_features:
            self.images = self.images.float()
        self.mean = torch.tensor(mean, device=device).view(-1, 1, 1)
        self.std = torch.tensor(std, device=device).view(-1, 1, 1)
        self.black = -self.mean / self.std

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Tensor | slice) -> tuple[Tensor, Tensor]:
        if isinstance(indices, Tensor):
            indices = indices.to(self.images.device)
        if self.are_features:
            return self.images[_as_slice(indices)], self.labels[indices]
        return (self.images[indices].float() / 255 - self.mean) / self.std, self.labels[indices]


def _as_slice(indices: Tensor | slice) -> Tensor | slice:
    """Return ascending indices without a gap as a slice, which copies nothing: with q = 1 a sample is everything."""
    if isinstance(indices, slice) or not len(indices):
        return indices
    first, last = int(indices[0]), int(indices[-1])
    return slice(first, last + 1) if last - first == len(indices) - 1 else indices


def pieces(indices: Tensor, physical_batch: int) -> tuple[Tensor, ...]:
    """Cut into physical batches of the same size, to one; none of no indices."""
    return indices.tensor_split(math.ceil(len(indices) / physical_batch)) if len(indices) else ()
