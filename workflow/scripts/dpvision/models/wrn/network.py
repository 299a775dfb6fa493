"""Wide residual networks (WRN-depth-width) as De et al. 2022 train them, and with ScaleNorm.

    3x3 conv 16 | three stages of (depth - 4) / 6 blocks, 16, 32 and 64 times width | ReLU, norm | mean | linear

Pre-activation, in the order of De et al.'s code: ReLU, group normalisation, convolution. A block adds two such units
to its input; the first block of every stage, of the first one too, adds them to a unit of its own with a 1x1
convolution. Nothing follows the addition but ScaleNorm, where asked for. The second and third stage halve the image.
Padding is that of JAX ("SAME"), and so are the weights at the start.

WRN-16-4 has 2,753,818 parameters for 10 classes, 2,755,610 with ScaleNorm. The 2,752,506 that Klause et al. print are those
of the textbook's network with batch normalisation, the running means and variances counted in; with group normalisation
the textbook's has 2,748,890 (2,750,682), lacking the gains and biases of convolutions and the norms of shortcuts.

The rungs of De et al.'s ablation, for WRN-40-4: convolutions with a bias and no norm 8,944,266 parameters, with group
normalisation 8,955,466, with standardised weights too 8,961,306, which is the network of all their other experiments.
"""

import math

from torch import Tensor, nn

from dpvision.models.layers import SamePadding, StandardizedConv2d, group_norm


def conv_layer(model: dict, inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """Return a convolution, with the padding before it where the convolution's own cannot be that of JAX."""
    apart = stride > 1 and kernel > 1
    kind = StandardizedConv2d if model["standardize"] else nn.Conv2d
    bias = model["standardize"] if model.get("bias") is None else model["bias"]
    conv = kind(inputs, outputs, kernel, stride=stride, padding=0 if apart else kernel // 2, bias=bias)
    return nn.Sequential(*([SamePadding(kernel, stride)] if apart else []), conv)


def activation(model: dict, channels: int) -> list[nn.Module]:
    """Return the ReLU and, unless the model has none, the normalisation behind it."""
    return [nn.ReLU()] if model.get("norm") == "none" else [nn.ReLU(), group_norm(model, channels)]


class Unit(nn.Sequential):
    """A unit of ReLU, normalisation, convolution."""

    def __init__(self, model: dict, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__(*activation(model, inputs), *conv_layer(model, inputs, outputs, kernel, stride))


class Block(nn.Module):
    """A block: its input, as it is or through the shortcut, plus what two units make of it."""

    def __init__(self, model: dict, inputs: int, outputs: int, stride: int, first: bool) -> None:
        super().__init__()
        self.path = nn.Sequential(Unit(model, inputs, outputs, 3, stride), Unit(model, outputs, outputs, 3))
        self.shortcut = Unit(model, inputs, outputs, 1, stride) if first else nn.Identity()
        self.scale_norm = group_norm(model, outputs) if model["scale_norm"] else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.scale_norm(self.path(x) + self.shortcut(x))


class WideResNet(nn.Module):
    def __init__(self, model: dict, classes: int, channels: int) -> None:
        super().__init__()
        self.conv = conv_layer(model, channels, 16, 3)
        blocks, inputs = [], 16
        for stage in range(3):
            outputs = 2**stage * 16 * model["width"]
            for i in range((model["depth"] - 4) // 6):
                blocks.append(Block(model, inputs, outputs, stride=2 if stage and i == 0 else 1, first=i == 0))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.tail = nn.Sequential(*activation(model, inputs))
        self.classifier = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.tail(self.blocks(self.conv(x))).mean((2, 3)))


def initialise(network: nn.Module) -> None:
    """Draw weights with variance 1 / fan-in: normal for convolutions, for linear layers cut off at two deviations.

    Biases are 0. What is cut off narrows the distribution to 0.8796 of its deviation, which is made up for.
    """
    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            deviation = 1 / math.sqrt(layer.weight[0].numel())
            if isinstance(layer, nn.Linear):
                wide = deviation / 0.87962566103423978
                nn.init.trunc_normal_(layer.weight, std=wide, a=-2 * wide, b=2 * wide)
            else:
                nn.init.normal_(layer.weight, std=deviation)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def build(model: dict, classes: int, channels: int) -> nn.Module:
    network = WideResNet(model, classes, channels)
    initialise(network)
    return network
