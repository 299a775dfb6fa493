"""NFNets of Brock, De, Smith, Simonyan 2021 in the layout of their code, without their dropout and stochastic depth.

    3x3 convs 16, 32, 64, 128, the first and the last with stride 2 | stages of 256, 512, 1536 and 1536 channels |
    1x1 conv 3072 | GELU | mean | linear

All convolutions have standardised weights, a gain and a bias. A block takes its input's GELU; a 1x1 convolution halves
the channels, two 3x3 work on groups of 128 of them, the first with the stride, a 1x1 doubles them again; twice a gate of
squeeze and excitation follows. The first block of each stage adds that to a 1x1 convolution of the GELU, its means over
2x2 pixels where there is a stride; others add it to their input. Padding is that of JAX ("SAME"), and so are the weights
at the start. GELU is the exact one, as in timm's `dm_nfnet_f3`; JAX's own default is an approximation by tanh.

NFNet-F3 has 254,924,200 parameters for 1,000 classes, and its head sees 3,072 features.
"""

from torch import Tensor, nn

from dpvision.models.nfnet.options import CHANNELS, STEM, depths
from dpvision.models.norm_free import Block, ScaledActivation, conv, places
from dpvision.models.wrn.network import initialise


class Excite(nn.Module):
    """Channels times twice a gate between 0 and 1, made of the means of all channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = channels // 2
        self.gate = nn.Sequential(nn.Linear(channels, inner), nn.ReLU(), nn.Linear(inner, channels), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        return x * (2 * self.gate(x.mean((2, 3))))[:, :, None, None]


def block(inputs: int, outputs: int, group: int, stride: int, deviation: float, skip_gain: float) -> Block:
    inner = outputs // 2
    path = nn.Sequential(
        conv(inputs, inner, 1),
        ScaledActivation("gelu"),
        conv(inner, inner, 3, stride, groups=inner // group),
        ScaledActivation("gelu"),
        conv(inner, inner, 3, groups=inner // group),
        ScaledActivation("gelu"),
        conv(inner, outputs, 1),
        Excite(outputs),
    )
    shortcut = None
    if stride > 1 or inputs != outputs:
        means = [nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False)] if stride > 1 else []
        shortcut = nn.Sequential(*means, conv(inputs, outputs, 1))
    return Block(ScaledActivation("gelu", deviation), path, shortcut, skip_gain)


class NFNet(nn.Module):
    def __init__(self, model: dict, classes: int, channels: int) -> None:
        super().__init__()
        factor = model["width"]
        stem: list[nn.Module] = []
        inputs = channels
        for place, outputs in enumerate(round(c * factor) for c in STEM):
            stem += [ScaledActivation("gelu")] if place else []
            stem.append(conv(inputs, outputs, 3, 1 if place in (1, 2) else 2))
            inputs = outputs
        self.stem = nn.Sequential(*stem)
        blocks, group = [], round(128 * factor)
        for stage, number, deviation in places(depths(model)):
            outputs = round(CHANNELS[stage] * factor)
            stride = 2 if stage and number == 0 else 1
            blocks.append(block(inputs, outputs, group, stride, deviation, model["skip_gain"]))
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.tail = nn.Sequential(conv(inputs, 2 * inputs, 1), ScaledActivation("gelu"))
        self.classifier = nn.Linear(2 * inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.tail(self.blocks(self.stem(x))).mean((2, 3)))


def build(model: dict, classes: int, channels: int) -> nn.Module:
    network = NFNet(model, classes, channels)
    initialise(network)
    nn.init.normal_(network.classifier.weight, std=0.01)
    return network
