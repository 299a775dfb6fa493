"""Networks: one file a family, built from the `model` part of a spec."""

from torch import nn

from dpvision.models import resnet9, resnet50, wide_resnet

FAMILIES = {"resnet9": resnet9.build, "resnet50": resnet50.build, "wrn": wide_resnet.build}


def build(model: dict, classes: int, channels: int) -> nn.Module:
    """The network of a spec's `model` for images of so many channels, with the weights that its family starts with."""
    return FAMILIES[model["family"]](model, classes, channels)
