"""Layers that families share."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpvision.standardized import standardized


def norm_layer(model: dict, channels: int) -> nn.Module:
    """Return batch normalisation, or group normalisation with at most one group a channel."""
    return nn.BatchNorm2d(channels) if model["norm"] == "batch" else group_norm(model, channels)


def group_norm(model: dict, channels: int) -> nn.GroupNorm:
    groups = channels if model["groups"] == "channels" else min(model["groups"], channels)
    return nn.GroupNorm(groups, channels)


class StandardizedConv2d(nn.Conv2d):
    """A convolution with its weight standardised, times a gain that is learnt, one an output channel."""

    def __init__(self, inputs: int, outputs: int, kernel: int, **options: Any) -> None:
        super().__init__(inputs, outputs, kernel, **options)
        self.gain = nn.Parameter(torch.ones(outputs))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, standardized(self.weight, self.gain), self.bias)


class SamePadding(nn.Module):
    """Zeros around images so that a convolution without padding of its own gives side / stride pixels, rounded up.

    Where their number is odd, the one more comes behind (right, below), as in XLA's and TensorFlow's "SAME": a stride
    of 2 pads even sides by (0, 1), which PyTorch's padding=1 does not do.
    """

    def __init__(self, kernel: int, stride: int) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, (*self._sides(x.shape[-1]), *self._sides(x.shape[-2])))

    def _sides(self, side: int) -> tuple[int, int]:
        total = max(self.kernel - self.stride if side % self.stride == 0 else self.kernel - side % self.stride, 0)
        return total // 2, total - total // 2

    def extra_repr(self) -> str:
        return f"kernel={self.kernel}, stride={self.stride}"
