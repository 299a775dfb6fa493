"""ResNet-50 with group normalisation, and with ScaleNorm ScaleResNet-50, of Klause et al. 2022, appendix D.

    7x7 conv 64, stride 2 | max pool, stride 2 | stages of 3, 4, 6 and 3 bottlenecks, 256 to 2048 channels | mean | linear

The layout and the first weights are torchvision's, the stride of a stage on the 3x3 convolution. ScaleNorm is one more
normalisation between a bottleneck's addition and the activation behind it, as in the authors' code. That code forgets to
pass its activation on to the first stage, which so has ReLU whatever the others have; here all stages have the same: the
paper, which names Mish for ResNet-9 "throughout the network", says nothing of it. Nothing is computed in place, which
hooks on layers would not survive.
"""

from torch import Tensor, nn

from dpvision.models.layers import group_norm

STAGES = (3, 4, 6, 3)
ACTIVATIONS = {"mish": nn.Mish, "relu": nn.ReLU}


class ConvNorm(nn.Sequential):
    """A convolution without bias that keeps the size but for its stride, and normalisation."""

    def __init__(self, model: dict, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        conv = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
        nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
        super().__init__(conv, group_norm(model, outputs))


class Bottleneck(nn.Module):
    """A block: its input, as it is or through the shortcut, plus what three convolutions make of it; then the activation."""

    def __init__(self, model: dict, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        outputs, activation = 4 * channels, ACTIVATIONS[model["activation"]]
        self.path = nn.Sequential(
            ConvNorm(model, inputs, channels, 1),
            activation(),
            ConvNorm(model, channels, channels, 3, stride),
            activation(),
            ConvNorm(model, channels, outputs, 1),
        )
        self.shortcut = ConvNorm(model, inputs, outputs, 1, stride) if inputs != outputs else nn.Identity()
        self.scale_norm = group_norm(model, outputs) if model["scale_norm"] else nn.Identity()
        self.activation = activation()

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.scale_norm(self.path(x) + self.shortcut(x)))


class ResNet50(nn.Module):
    def __init__(self, model: dict, classes: int, channels: int) -> None:
        super().__init__()
        width = round(64 * model["width"])
        self.stem = nn.Sequential(ConvNorm(model, channels, width, 7, 2), ACTIVATIONS[model["activation"]]())
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        blocks, inputs = [], width
        for stage, count in enumerate(STAGES):
            for i in range(count):
                blocks.append(Bottleneck(model, inputs, 2**stage * width, stride=2 if stage and i == 0 else 1))
                inputs = 4 * 2**stage * width
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.blocks(self.pool(self.stem(x))).mean((2, 3)))


def build(model: dict, classes: int, channels: int) -> nn.Module:
    return ResNet50(model, classes, channels)
