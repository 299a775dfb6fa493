"""What rounding leaves is clipped too: no example adds more than C, however much of its gradient cancels."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from dpvision.models.layers import StandardizedConv2d
from dpvision.privacy.fast import UNTIMED, ClippedSum

EXAMPLES = 20
CLIP = 1e-12  # every gradient is longer, what rounding leaves of one that cancels too


def along(outputs: Tensor, directions: Tensor) -> Tensor:
    """Return losses whose gradients of the outputs are what the labels say."""
    return (outputs * directions).flatten(1).sum(1)


def longest(layer: nn.Module, inputs: Tensor, gradients: Tensor, way: str) -> float:
    """Return how long the sum of one example alone is, in C, at most."""
    clipped = ClippedSum(layer, CLIP, loss=along, views=1, choices=UNTIMED | {"layers": {"weight": way}})
    ones = [clipped(x[None], g[None]).sums for x, g in zip(inputs, gradients, strict=True)]
    return max(torch.cat([t.flatten() for t in sums]).double().norm().item() for sums in ones) / CLIP


def of_linear() -> nn.Module:
    return nn.Linear(8, 8, bias=False)


def of_convolution() -> nn.Module:
    return nn.Conv2d(3, 4, 3, bias=False)


def of_standardised() -> nn.Module:
    return StandardizedConv2d(3, 4, 3, bias=False)


def with_a_bias_like_its_gain() -> nn.Module:
    layer = StandardizedConv2d(3, 4, 3)
    assert layer.bias is not None
    with torch.no_grad():
        layer.bias.copy_(torch.tensor([0.9, -0.9, 0.5, 1.0]))
    layer.bias.requires_grad_(False)
    return layer


@pytest.mark.parametrize("rough", [0.0, 1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize(
    ("make", "shape", "ways"),
    [
        (of_linear, (12, 8), ["product", "gram"]),
        (of_convolution, (3, 6, 6), ["one", "grouped", "unfold", "gram"]),
        (of_standardised, (3, 6, 6), ["one", "grouped", "unfold", "gram"]),
    ],
)
def test_positions_that_cancel_add_no_more_than_c(make: Callable[[], nn.Module], shape, ways, rough):
    """Take patches that are nearly alike: output gradients that sum to zero leave of them what is `rough`, and rounding."""
    layer, inputs = make(), 1 + rough * torch.randn(EXAMPLES, *shape)
    gradients = torch.randn_like(layer(inputs))
    positions = (2, 3) if gradients.dim() == 4 else (1,)
    gradients -= gradients.mean(positions, keepdim=True)
    for way in ways:
        assert longest(layer, inputs, gradients, way) <= 1, way


@pytest.mark.parametrize("way", ["one", "grouped", "unfold", "gram"])
@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6])
def test_an_output_that_is_all_bias_says_too_little_of_its_filters_to_subtract(way, size):
    """Take small images: what a gradient has along its unit is read from the output, less the bias, and rounding is left."""
    layer, inputs = with_a_bias_like_its_gain(), size * torch.randn(EXAMPLES, 3, 6, 6)
    assert longest(layer, inputs, torch.randn(EXAMPLES, 4, 4, 4), way) <= 1
