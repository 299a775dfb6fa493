"""torchvision's networks as they are, without dropout and stochastic depth, for images of three channels."""

from torch import nn

from dpvision.errors import UserError
from dpvision.vision import torchvision


def build(model: dict, classes: int, channels: int) -> nn.Module:
    if channels != 3:
        raise UserError(f"{model['network']}: it takes images of 3 channels, not of {channels}")
    network = torchvision.models.get_model(model["network"], weights=None, num_classes=classes)
    for module in network.modules():
        if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return network
