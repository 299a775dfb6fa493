"""Options of a ResNet-9 in a paper, and what it costs; light."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Groups, Searched
from dpvision.models.options import Layer, Network, faults_of_widths


class Options(Network):
    """ResNet-9 of Klause et al., appendix C; with `scale_norm` ScaleResNet-9."""

    family: Literal["resnet9"]
    """Architecture of the network."""
    scale_norm: bool = False
    """One more normalisation after each residual addition: the paper's proposal."""
    norm: Literal["group", "batch"] = "group"
    """`batch` only without a budget: batch normalisation mixes examples, so no example's part can be bounded."""
    groups: Groups | Searched = 32
    """Groups of each group normalisation, at most one a channel; `channels`: one a channel."""
    order: Literal["norm-activation", "activation-norm"] = "norm-activation"
    """Order after each convolution: as in the authors' code (default), or as printed in appendix C."""
    width: Annotated[float, Field(gt=0, le=4)] = 1.0
    """Factor of every number of channels."""

    def slug(self) -> str:
        return "scaleresnet9" if self.scale_norm else "resnet9"

    def mixes_examples(self) -> bool:
        return self.norm == "batch"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        if private and self.mixes_examples():
            yield (
                "norm",
                (
                    "not under differential privacy: every example's output depends on the others of its batch, so no "
                    "example's gradient can be bounded; use group, or cells with epsilons: [null] and nothing left to a search"
                ),
            )
        yield from faults_of_widths(self.width, self.groups, (64, 128, 256))


CATALOGUE = {
    "resnet9": Options(family="resnet9", label="ResNet-9"),
    "scaleresnet9": Options(family="resnet9", label="ScaleResNet-9", scale_norm=True),
    "resnet9, width 1/8": Options(family="resnet9", label="narrow ResNet-9", width=0.125),
    "scaleresnet9, width 1/8": Options(family="resnet9", label="narrow ScaleResNet-9", width=0.125, scale_norm=True),
}


def layers(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    """Yield the convolutions and the linear layer."""
    channels, height, width = shape
    c64, c128, c256 = (round(c * model["width"]) for c in (64, 128, 256))
    inputs = channels
    for outputs, halvings in [(c64, 0), (c128, 0), (c128, 1), (c128, 1), (c256, 1), (c256, 2), (c256, 3), (c256, 3)]:
        yield Layer(inputs, outputs, 3, (height >> halvings) * (width >> halvings))
        inputs = outputs
    yield Layer(4 * c256, classes, 1, 1)
