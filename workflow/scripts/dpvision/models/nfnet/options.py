"""Options of an NFNet in a paper, and what it costs; light."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from dpvision.models.options import Layer, Network, faults_of_widths

STEM = (16, 32, 64, 128)
"""Channels of the stem's convolutions; the first and the last halve the image."""
CHANNELS, DEPTHS = (256, 512, 1536, 1536), (1, 2, 6, 3)
"""Channels of the stages, and blocks of F0's; F1 has twice as many blocks, F2 three times, and so on."""


class Options(Network):
    """NFNet of Brock et al. 2021, F0 to F6: no normalisation, no dropout, no stochastic depth."""

    family: Literal["nfnet"]
    """Architecture of the network."""
    variant: Literal["f0", "f1", "f2", "f3", "f4", "f5", "f6"] = "f3"
    """Which of them: the number says how deep it is."""
    width: Annotated[float, Field(gt=0, le=4)] = 1.0
    """Factor of every number of channels, those of a group among them."""
    skip_gain: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Start of each block's gain: 1 as De et al. from scratch; 0 as Brock et al., where each block begins as its shortcut."""

    def slug(self) -> str:
        return f"nfnet-{self.variant}"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        yield from faults_of_widths(self.width, "channels", STEM)


CATALOGUE = {
    "nfnet_f0, width 1/8": Options(family="nfnet", label="NFNet-F0, width 1/8", variant="f0", width=1 / 8),
    "nfnet_f3": Options(family="nfnet", label="NFNet-F3"),
}


def depths(model: dict[str, Any]) -> list[int]:
    """Return how many blocks each stage has."""
    return [(int(model["variant"][1:]) + 1) * blocks for blocks in DEPTHS]


def layers(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    """Yield the convolutions and the linear layers."""
    inputs, height, width = shape
    factor = model["width"]

    def positions(halved: int) -> int:
        return -(-height // 2**halved) * -(-width // 2**halved)

    for outputs, halved in zip((round(c * factor) for c in STEM), (1, 1, 1, 2), strict=True):
        yield Layer(inputs, outputs, 3, positions(halved))
        inputs = outputs
    group = round(128 * factor)
    for stage, blocks in enumerate(depths(model)):
        outputs, here = round(CHANNELS[stage] * factor), positions(stage + 2)
        inner = outputs // 2
        for number in range(blocks):
            if number == 0:
                yield Layer(inputs, outputs, 1, here)
            yield Layer(inputs, inner, 1, positions(stage + 1) if stage and number == 0 else here)
            yield Layer(group, inner, 3, here)
            yield Layer(group, inner, 3, here)
            yield Layer(inner, outputs, 1, here)
            yield Layer(outputs, inner, 1, 1)  # squeeze and excitation: of the means of channels
            yield Layer(inner, outputs, 1, 1)
            inputs = outputs
    yield Layer(inputs, 2 * inputs, 1, positions(5))
    yield Layer(2 * inputs, classes, 1, 1)
