"""NF-ResNets of Brock, De, Smith 2021 in the layout of their code, as De et al. 2022 train them.

    7x7 conv 64, stride 2 | max pool, stride 2 | stages of 256 to 2048 channels | ReLU | mean | linear

All convolutions have standardised weights, a gain and a bias. A block takes its input's ReLU, and adds to the input what
a 1x1, a 3x3 with the stride and a 1x1 convolution make of that. The first block of each stage, of the first one too, adds
it to a 1x1 convolution with the stride, of the same ReLU. There is no dropout, stochastic depth or label smoothing: De et
al. remove them. Padding is that of JAX ("SAME"), and so are the weights at the start.

For 1,000 classes NF-ResNet-50 has 25,557,048 parameters, 16 of them skip gains; 101, 152 and 200 have 44,549,193,
60,192,858 and 64,673,898.
"""

import math

from torch import Tensor, nn
from torch.nn import functional as F

from dpvision.models.layers import SamePadding
from dpvision.models.nf_resnet.options import DEPTHS
from dpvision.models.norm_free import Block, ScaledActivation, conv, places
from dpvision.models.wrn.network import initialise


class SameMaxPool(SamePadding):
    """Max pooling of what `SamePadding` covers; what lies outside of the image is never the largest."""

    def forward(self, x: Tensor) -> Tensor:
        around = (*self._sides(x.shape[-1]), *self._sides(x.shape[-2]))
        return F.max_pool2d(F.pad(x, around, value=-math.inf), self.kernel, self.stride)


def block(inputs: int, outputs: int, stride: int, deviation: float, skip_gain: float) -> Block:
    inner = outputs // 4
    path = nn.Sequential(
        conv(inputs, inner, 1),
        ScaledActivation("relu"),
        conv(inner, inner, 3, stride),
        ScaledActivation("relu"),
        conv(inner, outputs, 1),
    )
    shortcut = conv(inputs, outputs, 1, stride) if inputs != outputs else None
    return Block(ScaledActivation("relu", deviation), path, shortcut, skip_gain)


class NFResNet(nn.Module):
    def __init__(self, model: dict, classes: int, channels: int) -> None:
        super().__init__()
        width = round(64 * model["width"])
        self.stem = nn.Sequential(conv(channels, width, 7, 2), SameMaxPool(3, 2))
        blocks, inputs = [], width
        for stage, number, deviation in places(DEPTHS[model["depth"]]):
            outputs = 4 * width * 2**stage
            blocks.append(block(inputs, outputs, 2 if stage and number == 0 else 1, deviation, model["skip_gain"]))
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.activation = ScaledActivation("relu")
        self.classifier = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.activation(self.blocks(self.stem(x))).mean((2, 3)))


def build(model: dict, classes: int, channels: int) -> nn.Module:
    network = NFResNet(model, classes, channels)
    initialise(network)
    nn.init.normal_(network.classifier.weight, std=0.01)
    return network
