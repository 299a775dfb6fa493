"""Images and labels on the device, once, as bytes; a batch becomes numbers when it is asked for. Or features, as numbers.

What does not fit is read when it is asked for: pictures from their files, a great many features from the array on the disk.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from dpvision.data.held import are_held
from dpvision.data.streamed import Files, read


class Examples:
    """The examples of a data set, or some `rows` of it."""

    def __init__(
        self,
        images: np.ndarray | Files,
        labels: np.ndarray,
        mean: list[float],
        std: list[float],
        device: torch.device,
        rows: np.ndarray | None = None,
    ) -> None:
        self.are_features = len(images.shape) == 2  # numbers already, which nothing normalises
        self.labels = _on(device, labels, rows)
        self.rows = np.arange(len(labels)) if rows is None else rows
        self.source: Files | np.ndarray | None = None  # none: all is held
        self.images = torch.empty(0)
        if isinstance(images, np.ndarray) and are_held(len(self.labels), list(images.shape[1:])):
            self.images = _on(device, images, rows)
            if self.are_features:
                self.images = self.images.float()
        else:
            self.source = images
        self.mean = torch.tensor(mean, device=device).view(-1, 1, 1)
        self.std = torch.tensor(std, device=device).view(-1, 1, 1)
        self.black = -self.mean / self.std

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Tensor | slice) -> tuple[Tensor, Tensor]:
        if self.source is not None:
            (found,) = self._read([torch.arange(len(self))[indices]], 0)
            return found
        if isinstance(indices, Tensor):
            indices = indices.to(self.images.device)
        return self._ready(self.images[_as_slice(indices) if self.are_features else indices]), self.labels[indices]

    def batches(self, cut: Sequence[Tensor], margin: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the examples of each piece; pictures higher and wider by a margin for their views, which others have not."""
        return map(self.batch, cut) if self.source is None else self._read(cut, margin)

    def _read(self, cut: Sequence[Tensor], margin: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the examples of each piece; as many threads as the job has decode the next one meanwhile."""
        found = read(self.source, (self.rows[indices] for indices in cut), margin, torch.get_num_threads())
        for indices, images in zip(cut, found, strict=True):
            yield self._ready(torch.from_numpy(images).to(self.labels.device)), self.labels[indices.to(self.labels.device)]

    def _ready(self, images: Tensor) -> Tensor:
        return images.float() if self.are_features else (images.float() / 255 - self.mean) / self.std


def _on(device: torch.device, array: np.ndarray, rows: np.ndarray | None) -> Tensor:
    return torch.as_tensor(np.require(array if rows is None else array[rows], requirements="W")).to(device)


def _as_slice(indices: Tensor | slice) -> Tensor | slice:
    """Return ascending indices without a gap as a slice, which copies nothing: with q = 1 a sample is everything."""
    if isinstance(indices, slice) or not len(indices):
        return indices
    first, last = int(indices[0]), int(indices[-1])
    return slice(first, last + 1) if last - first == len(indices) - 1 else indices


def pieces(indices: Tensor, physical_batch: int) -> tuple[Tensor, ...]:
    """Cut into physical batches of the same size, to one; none of no indices."""
    return indices.tensor_split(math.ceil(len(indices) / physical_batch)) if len(indices) else ()
