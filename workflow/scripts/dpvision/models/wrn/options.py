"""Options of a wide residual network in a paper, and what it costs; light."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Groups, Later, Searched
from dpvision.models.options import Layer, Network, faults_of_groups


class Options(Network):
    """WRN-depth-width as in De et al.: ReLU, group normalisation, convolution; with `scale_norm` ScaleWRN."""

    family: Literal["wrn"]
    """Architecture of the network."""
    depth: Annotated[int, Field(ge=10)]
    """Number of layers: 6 n + 4, with n blocks in each of the three stages."""
    width: Annotated[int, Field(gt=0, le=32)]
    """Factor of the 16, 32 and 64 channels of the three stages."""
    groups: Groups | Searched = 16
    """Groups of each group normalisation, at most one a channel; `channels`: one a channel."""
    scale_norm: bool = False
    """One more normalisation after each block's addition: Klause et al.'s proposal."""
    standardize: bool = True
    """Convolutions with standardised weights, a gain and a bias, as De et al.; false: plain ones, without bias."""
    norm: Annotated[Literal["group", "none"], Later] = "group"
    """What stands behind each ReLU: group normalisation, or nothing, as in the baseline of De et al.'s ablation."""
    bias: Annotated[bool | None, Later] = None
    """Whether each convolution has a bias, as in that ablation; null: those with standardised weights have one, others none."""

    def slug(self) -> str:
        norm = "" if self.norm == "group" else f"-{self.norm}"
        return f"{'scale' if self.scale_norm else ''}wrn{self.depth}-{self.width}{norm}"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        if (self.depth - 4) % 6:
            below = self.depth - (self.depth - 4) % 6
            yield "depth", f"must be 6 n + 4, with n blocks in each of the three stages; nearest: {below}, {below + 6}"
        yield from faults_of_groups(self.groups, [16, *(c * self.width for c in (16, 32, 64))])


CATALOGUE = {
    "wrn16-4": Options(family="wrn", label="WRN-16-4", depth=16, width=4),
    "scalewrn16-4": Options(family="wrn", label="ScaleWRN-16-4", depth=16, width=4, scale_norm=True),
    "wrn40-4": Options(family="wrn", label="WRN-40-4", depth=40, width=4),
    "wrn28-10": Options(family="wrn", label="WRN-28-10", depth=28, width=10),
}


def layers(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    """Yield the convolutions and the linear layer."""
    channels, height, width = shape
    yield Layer(channels, 16, 3, height * width)
    inputs = 16
    for stage in range(3):
        outputs = 2**stage * 16 * model["width"]
        positions = -(-height // 2**stage) * -(-width // 2**stage)
        for block in range((model["depth"] - 4) // 6):
            if block == 0:
                yield Layer(inputs, outputs, 1, positions)
            yield Layer(inputs, outputs, 3, positions)
            yield Layer(outputs, outputs, 3, positions)
            inputs = outputs
    yield Layer(inputs, classes, 1, 1)
