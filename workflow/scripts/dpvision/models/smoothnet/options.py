"""Options of a SmoothNet in a paper, and what it costs; light."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Groups, Positive, Searched
from dpvision.models.options import Layer, Network, faults_of_groups


class Options(Network):
    """SmoothNet of Remerscheid et al., in the authors' code W80D50; with other options a network of their study."""

    family: Literal["smoothnet"]
    """Architecture of the network."""
    width: Annotated[float, Field(ge=0.125, le=16)] = 8.0
    """Factor of the 8 and 16 channels of the two stages; a fraction of a channel is cut off."""
    depth: Positive = 5
    """Convolutions of each stage, of `residual` pairs of them."""
    connection: Literal["dense", "residual", "skip", "none"] = "dense"
    """`dense`: a convolution reads all that the stage has made; `residual`: an addition each pair; `skip`: one each stage."""
    pool: Literal["max", "average", "none"] = "max"
    """Pooling after each convolution, over 3x3 pixels, keeping the size; of `skip` and `none` a stage's last one halves it."""
    norm: Literal["group", "layer", "instance", "batch", "none"] = "group"
    """Normalisation after pooling. `layer`: of one group; `instance`: no scale and shift; `batch`: only without a budget."""
    groups: Groups | Searched = 8
    """Groups of each group normalisation, at most one a channel; `channels`: one a channel."""
    activation: Literal["selu", "relu", "leaky_relu"] = "selu"
    """Activation after the normalisation and between the linear layers, where `leaky_relu` has ReLU."""
    head: Literal["last", "all"] = "last"
    """Channels of `dense` averaged for the linear layers: the last convolution's (the code), or all (the text)."""

    def slug(self) -> str:
        connection = "" if self.connection == "dense" else f"-{self.connection}"
        return f"smoothnet-w{self.width:g}d{self.depth}{connection}{'-all' if self.head == 'all' else ''}"

    def mixes_examples(self) -> bool:
        return self.norm == "batch"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        if private and self.mixes_examples():
            yield (
                "norm",
                (
                    "not under differential privacy: every example's output depends on the others of its batch, so no "
                    "example's gradient can be bounded; use group, layer, instance or none, or cells with epsilons: [null] "
                    "and nothing left to a search"
                ),
            )
        if self.pool == "none" and self.connection in ("skip", "none"):
            yield "pool", f"connection {self.connection} halves the image by its pooling; allowed: max, average"
        if self.head == "all" and self.connection != "dense":
            yield "head", f"only of connection dense; {self.connection} keeps no earlier channels: use last"
        if self.norm == "group":
            yield from faults_of_groups(self.groups, [int(8 * self.width), int(16 * self.width)])


CATALOGUE = {"smoothnet": Options(family="smoothnet", label="SmoothNet")}


def layers(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    """Yield the convolutions and the linear layers."""
    channels, height, width = shape
    narrow, wide, depth = int(8 * model["width"]), int(16 * model["width"]), model["depth"]
    whole, half, quarter = height * width, (height // 2) * (width // 2), (height // 4) * (width // 4)
    if model["connection"] == "dense":
        made = channels + depth * narrow
        yield from (Layer(channels + i * narrow, narrow, 3, whole) for i in range(depth))
        yield Layer(made, made // 2, 1, whole)
        yield from (Layer(made // 2 + i * wide, wide, 3, half) for i in range(depth))
    elif model["connection"] == "residual":
        for inputs, outputs, positions in ((channels, narrow, half), (narrow, wide, quarter)):
            yield Layer(inputs, outputs, 2, positions)
            yield from [Layer(outputs, outputs, 3, positions)] * (2 * depth - 1)
    else:
        for inputs, outputs, positions in ((channels, narrow, whole), (narrow, wide, half)):
            yield Layer(inputs, outputs, 3, positions)
            yield from [Layer(outputs, outputs, 3, positions)] * (depth - 1)
    yield Layer(16 * wide, 256, 1, 1)
    yield Layer(256, 128, 1, 1)
    yield Layer(128, classes, 1, 1)
