"""Options of an NF-ResNet in a paper, and what it costs; light."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from dpvision.models.options import Layer, Network, bottlenecks, faults_of_widths

DEPTHS = {14: (1, 1, 1, 1), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}
"""Blocks in each stage."""


class Options(Network):
    """NF-ResNet of Brock et al. 2021 as De et al. train it: no normalisation, no dropout, no stochastic depth."""

    family: Literal["nf_resnet"]
    """Architecture of the network."""
    depth: Literal[14, 50, 101, 152, 200] = 50
    """Number of layers. 14 is for small data: a block in each stage, and nobody's in print."""
    width: Annotated[float, Field(gt=0, le=4)] = 1.0
    """Factor of every number of channels."""
    skip_gain: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Start of each block's gain: 1 as De et al. from scratch; 0 as Brock et al., where each block begins as its shortcut."""

    def slug(self) -> str:
        return f"nf-resnet{self.depth}"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        yield from faults_of_widths(self.width, "channels", (64,))


CATALOGUE = {
    "nf_resnet14, width 1/8": Options(family="nf_resnet", label="NF-ResNet-14, width 1/8", depth=14, width=1 / 8),
    "nf_resnet50": Options(family="nf_resnet", label="NF-ResNet-50"),
    "nf_resnet101": Options(family="nf_resnet", label="NF-ResNet-101", depth=101),
    "nf_resnet152": Options(family="nf_resnet", label="NF-ResNet-152", depth=152),
    "nf_resnet200": Options(family="nf_resnet", label="NF-ResNet-200", depth=200),
}


def layers(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    """Return the convolutions and the linear layer."""
    return bottlenecks(DEPTHS[model["depth"]], model["width"], shape, classes)
