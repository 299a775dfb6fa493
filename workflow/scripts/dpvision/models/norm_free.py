"""What networks without normalisation share (Brock, De, Smith 2021; Brock, De, Smith, Simonyan 2021).

At the start each activation gives a variance of 1 for a normal input, each convolution keeps the variance, and each block
adds α² to it. So the variance of a block's input is known beforehand, and the block divides by its square root. The
first block of a stage gives up its input for a shortcut of what it was divided to: the variance begins anew.
"""

import math
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpvision.models.layers import SamePadding, StandardizedConv2d

ALPHA = 0.2
ACTIVATIONS: dict[str, tuple[Callable[..., Tensor], float]] = {
    "relu": (F.relu, 1.7139588594436646),
    "gelu": (F.gelu, 1.7015043497085571),
}
"""Functions, and what makes their output's variance 1 where the input is normal."""


class ScaledActivation(nn.Module):
    """An activation times the factor that keeps the variance, divided by the deviation that its input stands for."""

    def __init__(self, kind: str, deviation: float = 1.0) -> None:
        super().__init__()
        self.function, gamma = ACTIVATIONS[kind]
        self.factor = gamma / deviation

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x) * self.factor


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Return a convolution with standardised weights, gain and bias, padded as in JAX."""
    apart = stride > 1 and kernel > 1
    made = StandardizedConv2d(inputs, outputs, kernel, stride=stride, padding=0 if apart else kernel // 2, groups=groups)
    return nn.Sequential(*([SamePadding(kernel, stride)] if apart else []), made)


class Block(nn.Module):
    """A block: its input, or the shortcut's, plus α times a gain that is learnt times what the path makes of it."""

    def __init__(self, activation: ScaledActivation, path: nn.Module, shortcut: nn.Module | None, skip_gain: float) -> None:
        super().__init__()
        self.activation, self.path, self.shortcut = activation, path, shortcut
        self.skip_gain = nn.Parameter(torch.tensor(float(skip_gain)))

    def forward(self, x: Tensor) -> Tensor:
        out = self.activation(x)
        shortcut = x if self.shortcut is None else self.shortcut(out)
        return torch.add(shortcut, self.path(out) * self.skip_gain, alpha=ALPHA)


def places(depths: Iterable[int]) -> Iterator[tuple[int, int, float]]:
    """Yield each block's stage, its number in that, and the deviation of its input at the start, if skip gains are 1."""
    deviation = 1.0
    for stage, blocks in enumerate(depths):
        for number in range(blocks):
            yield stage, number, deviation
            deviation = math.hypot(deviation if number else 1.0, ALPHA)
