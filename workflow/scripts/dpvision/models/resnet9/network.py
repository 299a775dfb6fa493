"""ResNet-9 and ScaleResNet-9 of Klause et al. 2022, appendix C and the authors' code.

    3x3 conv 64 | conv 128, pool | residual 128 | conv 256, pool | conv 256, pool | residual 256 | pool to 2x2 | linear

Every convolution is 3x3, without bias, followed by normalisation and Mish ("norm-activation", the authors'
code) or Mish and normalisation ("activation-norm", as printed). ScaleNorm is one more normalisation after
each residual addition, with no activation behind it. "Global max pooling" with a layer of 1024 units is
pooling to 2x2 of 256 channels: with it the count is the printed 2,447,946 parameters.
"""

import torch
from torch import Tensor, nn

from dpvision.models.layers import norm_layer


class ConvBlock(nn.Sequential):
    """Convolution, normalisation and Mish in the model's order, then pooling where asked for."""

    def __init__(self, model: dict, inputs: int, outputs: int, pool: bool = False) -> None:
        norm, activation = norm_layer(model, outputs), nn.Mish()
        pair = [norm, activation] if model["order"] == "norm-activation" else [activation, norm]
        conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        super().__init__(conv, *pair, *([nn.MaxPool2d(2)] if pool else []))


class Residual(nn.Module):
    """A block: its input (residual path) plus what the convolutions make of it (convolutional path)."""

    def __init__(self, model: dict, channels: int) -> None:
        super().__init__()
        self.path = nn.Sequential(ConvBlock(model, channels, channels), ConvBlock(model, channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        return self.path(x) + x


class ResNet9(nn.Module):
    def __init__(self, model: dict, classes: int, channels: int) -> None:
        super().__init__()
        c64, c128, c256 = (round(c * model["width"]) for c in (64, 128, 256))
        self.conv1 = ConvBlock(model, channels, c64)
        self.conv2 = ConvBlock(model, c64, c128, pool=True)
        self.res1 = Residual(model, c128)
        self.scale_norm1 = norm_layer(model, c128) if model["scale_norm"] else nn.Identity()
        self.conv3 = ConvBlock(model, c128, c256, pool=True)
        self.conv4 = ConvBlock(model, c256, c256, pool=True)
        self.res2 = Residual(model, c256)
        self.scale_norm2 = norm_layer(model, c256) if model["scale_norm"] else nn.Identity()
        self.pool = nn.AdaptiveMaxPool2d(2)
        self.classifier = nn.Linear(4 * c256, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.scale_norm1(self.res1(self.conv2(self.conv1(x))))
        x = self.scale_norm2(self.res2(self.conv4(self.conv3(x))))
        return self.classifier(torch.flatten(self.pool(x), 1))


def build(model: dict, classes: int, channels: int) -> nn.Module:
    return ResNet9(model, classes, channels)
