"""SmoothNet of Remerscheid et al. 2022, and the networks of their study of components; as in the authors' code.

    stage of 8 width channels | stage of 16 width channels | mean to 4x4 | linear 256 | linear 128 | linear

Each stage halves the image. After a convolution come pooling, normalisation, activation. By how they are connected:

dense     3x3 convolutions without bias; each one's output is laid beside its input. Between the stages a 1x1 convolution
          to half the channels, with nothing behind it, and the mean over 2x2 pixels; that again after the second stage.
          The code then keeps the last convolution's channels alone, 2,048 numbers of SmoothNet (`head: last`). The text
          says that all features are compressed to 2,048: `head: all` averages over neighbouring channels as well.
residual  pairs of convolutions without bias; the input is added before the second activation. The first convolution of a
          stage is 2x2 with stride 2; what is added there is every second pixel, with zeros for the new channels.
none      3x3 convolutions with bias; the last pooling of a stage is over 2x2 pixels, with stride 2.
skip      the same, and a stage's input is added to its output, like that of a residual pair. The released code no longer
          has it, an earlier one does (October 2021).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpvision.models.layers import group_norm

ACTIVATIONS = {"selu": nn.SELU, "relu": nn.ReLU, "leaky_relu": nn.LeakyReLU}
POOLS = {"max": nn.MaxPool2d, "average": nn.AvgPool2d}
NORMS = {
    "group": group_norm,
    "layer": lambda model, channels: nn.GroupNorm(1, channels),
    "instance": lambda model, channels: nn.InstanceNorm2d(channels),
    "batch": lambda model, channels: nn.BatchNorm2d(channels),
}


def conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=(kernel - 1) // 2, bias=False)


def pool_and_norm(model: dict, channels: int, halve: bool = False) -> list[nn.Module]:
    parts: list[nn.Module] = []
    if model["pool"] != "none":
        pool = POOLS[model["pool"]]
        parts.append(pool(2) if halve else pool(3, stride=1, padding=1))
    if model["norm"] != "none":
        parts.append(NORMS[model["norm"]](model, channels))
    return parts


class Dense(nn.Module):
    """A stage whose blocks each read its input and what all blocks before them gave."""

    def __init__(self, model: dict, inputs: int, outputs: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(
                conv(inputs + i * outputs, outputs),
                *pool_and_norm(model, outputs),
                ACTIVATIONS[model["activation"]](),
            )
            for i in range(model["depth"])
        )

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = torch.cat([x, block(x)], 1)
        return x


class Shortcut(nn.Module):
    """A path with a shortcut: its output plus its input, of every second pixel where the path halves the image."""

    def __init__(self, path: nn.Module) -> None:
        super().__init__()
        self.path = path

    def forward(self, x: Tensor) -> Tensor:
        out = self.path(x)
        channels, height, width = out.shape[1:]
        if x.shape[2:] != out.shape[2:]:
            x = x[:, :, : 2 * height : 2, : 2 * width : 2]
        return out + F.pad(x, (0, 0, 0, 0, 0, channels - x.shape[1]))


def residual(model: dict, inputs: int, outputs: int) -> nn.Sequential:
    """Return a stage of residual pairs."""
    activation = ACTIVATIONS[model["activation"]]
    parts: list[nn.Module] = []
    for i in range(model["depth"]):
        path = nn.Sequential(
            conv(outputs, outputs) if i else conv(inputs, outputs, kernel=2, stride=2),
            *pool_and_norm(model, outputs),
            activation(),
            conv(outputs, outputs),
            *pool_and_norm(model, outputs),
        )
        parts += [Shortcut(path), activation()]
    return nn.Sequential(*parts)


def plain(model: dict, inputs: int, outputs: int) -> nn.Sequential:
    """Return a stage of convolutions one behind the other."""
    parts: list[nn.Module] = []
    for i in range(model["depth"]):
        parts.append(nn.Conv2d(outputs if i else inputs, outputs, 3, padding=1))
        parts += pool_and_norm(model, outputs, halve=i == model["depth"] - 1)
        parts.append(ACTIVATIONS[model["activation"]]())
    return nn.Sequential(*parts)


def stages(model: dict, channels: int, narrow: int, wide: int) -> nn.Sequential:
    if model["connection"] == "dense":
        made = channels + model["depth"] * narrow
        transition = conv(made, made // 2, kernel=1)
        return nn.Sequential(
            Dense(model, channels, narrow), transition, nn.AvgPool2d(2), Dense(model, made // 2, wide), nn.AvgPool2d(2)
        )
    if model["connection"] == "residual":
        return nn.Sequential(residual(model, channels, narrow), residual(model, narrow, wide))
    both = plain(model, channels, narrow), plain(model, narrow, wide)
    return nn.Sequential(*(map(Shortcut, both) if model["connection"] == "skip" else both))


class SmoothNet(nn.Module):
    def __init__(self, model: dict, classes: int, channels: int) -> None:
        super().__init__()
        narrow, self.wide = int(8 * model["width"]), int(16 * model["width"])
        self.head = model["head"]
        self.stages = stages(model, channels, narrow, self.wide)
        activation = nn.SELU if model["activation"] == "selu" else nn.ReLU
        self.classifier = nn.Sequential(
            nn.Linear(16 * self.wide, 256), activation(), nn.Linear(256, 128), activation(), nn.Linear(128, classes)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(x)
        if self.head == "last":
            x = F.adaptive_avg_pool2d(x[:, -self.wide :], 4)
        else:
            x = F.adaptive_avg_pool3d(x[:, None], (self.wide, 4, 4))
        return self.classifier(x.flatten(1))


def build(model: dict, classes: int, channels: int) -> nn.Module:
    return SmoothNet(model, classes, channels)
