"""Options of a ResNet-50 in a paper, and what it costs; light."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Groups, Searched
from dpvision.models.options import Layer, Network, bottlenecks, faults_of_widths


class Options(Network):
    """ResNet-50 of Klause et al., appendix D, in torchvision's layout; with `scale_norm` ScaleResNet-50."""

    family: Literal["resnet50"]
    """Architecture of the network."""
    scale_norm: bool = False
    """One more normalisation between each residual addition and its activation: the paper's proposal."""
    groups: Groups | Searched = 32
    """Groups of each group normalisation, at most one a channel; `channels`: one a channel."""
    activation: Literal["mish", "relu"] = "mish"
    """Activation of all stages; the paper names Mish for ResNet-9 and says nothing of this network."""
    width: Annotated[float, Field(gt=0, le=4)] = 1.0
    """Factor of every number of channels."""

    def slug(self) -> str:
        return "scaleresnet50" if self.scale_norm else "resnet50"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        yield from faults_of_widths(self.width, self.groups, tuple(64 * 2**i for i in range(6)))


CATALOGUE = {
    "resnet50": Options(family="resnet50", label="ResNet-50"),
    "scaleresnet50": Options(family="resnet50", label="ScaleResNet-50", scale_norm=True),
}


def layers(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    """Return the convolutions and the linear layer."""
    return bottlenecks((3, 4, 6, 3), model["width"], shape, classes)
