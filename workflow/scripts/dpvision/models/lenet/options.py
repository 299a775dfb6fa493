"""What a paper can say of a small network for digits, and what it costs; light."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Positive
from dpvision.models.options import Layer, Network

WIDTHS = (16, 32)  # of both convolutions
HIDDEN = 32


class Options(Network):
    """A small network for digits: two convolutions of stride 2, each with ReLU and pooling, and two linear layers."""

    family: Literal["lenet"]
    """The architecture."""
    kernels: Annotated[list[Positive], Field(min_length=2, max_length=2)]
    """Sides of both convolutions' kernels; the second one's is at most a quarter of an image's side, since it takes what the
    first one, of stride 2, and its pooling leave."""


def layers(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    """Yield both convolutions and both linear layers: inputs, outputs, side of the kernel, positions."""
    first, second = model["kernels"]
    side = (shape[1] + 2 * ((first - 1) // 2) - first) // 2 + 1
    yield Layer(shape[0], WIDTHS[0], first, side**2)
    yield Layer(*WIDTHS, second, ((side // 2 - second) // 2 + 1) ** 2)
    yield Layer(WIDTHS[1], HIDDEN, 1, 1)
    yield Layer(HIDDEN, classes, 1, 1)
