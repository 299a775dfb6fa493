"""A small network for digits, as PyTorch builds it: with De et al.'s kernels and 28 pixels a side it has 10,650 parameters."""

from torch import nn

from dpvision.models.lenet.options import HIDDEN, WIDTHS


def build(model: dict, classes: int, channels: int) -> nn.Module:
    """Return the network with the weights that it starts with, PyTorch's own."""
    first, second = model["kernels"]
    return nn.Sequential(
        nn.Conv2d(channels, WIDTHS[0], first, stride=2, padding=(first - 1) // 2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(*WIDTHS, second, stride=2),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(WIDTHS[1], HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, classes),
    )
