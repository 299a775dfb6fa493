"""torchvision's networks with group normalisation, and the variants that Remerscheid et al. 2022 trained.

The networks are torchvision's own, with its first weights; their batch normalisations are replaced, and EfficientNet has
neither dropout nor stochastic depth. `stem: original` is torchvision's, for large images. On CIFAR-10 Remerscheid et al.
kept it, but for ResNet-18's: a convolution took its place, that of its norm and that of its ReLU (`bare`). `small` is the
fair stem for small images: a 3x3 convolution with stride 1, its norm and its activation, and no pooling.

Their DenseNets lost all their ReLUs (`relu: false`). The library that made them has these in its own batch normalisations,
and was asked for PyTorch's.

Of their study's other networks VGG-11 has no normalisation at all; on CIFAR-10 they let its last three poolings move by one
pixel (`stem: small`). GoogLeNet has its two auxiliary classifiers, whose losses count in training.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dpvision.models.layers import group_norm
from dpvision.models.torchvision.options import BASIC, BOTTLENECKS, DENSENETS
from dpvision.vision import torchvision


def build(model: dict, classes: int, channels: int) -> nn.Module:
    more = {"init_weights": True} if model["network"] == "googlenet" else {}  # its default, which would warn
    made = torchvision.models.get_model(model["network"], num_classes=classes, **more)
    network = ADAPTED[model["network"]](made, model, channels)
    replace(network, nn.BatchNorm2d, lambda norm: group_norm(model, norm.num_features))
    return network


def replace(network: nn.Module, kind: type[nn.Module], by: Callable[[Any], nn.Module]) -> None:
    """Put what `by` makes of each layer of a kind in its place."""
    for module in list(network.modules()):
        for name, layer in module.named_children():
            if isinstance(layer, kind):
                setattr(module, name, by(layer))


def remove(network: nn.Module, kind: type[nn.Module]) -> None:
    replace(network, kind, lambda layer: nn.Identity())


def stem(model: dict, channels: int, original: nn.Conv2d, mode: Literal["fan_in", "fan_out"]) -> nn.Conv2d:
    """Return the first convolution for images of so many channels."""
    outputs, size, stride, padding = original.out_channels, original.kernel_size, original.stride, original.padding
    if model["stem"] == "original":
        conv = nn.Conv2d(channels, outputs, size, stride, padding, bias=False)  # type: ignore[arg-type]
    else:
        conv = nn.Conv2d(channels, outputs, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode=mode, nonlinearity="relu")
    return conv


def resnet(network: Any, model: dict, channels: int) -> nn.Module:
    network.conv1 = stem(model, channels, network.conv1, "fan_out")
    if model["stem"] != "original":
        network.maxpool = nn.Identity()
    if model["stem"] == "bare":
        network.bn1, network.relu = nn.Identity(), nn.Identity()
    return network


def densenet(network: Any, model: dict, channels: int) -> nn.Module:
    features = network.features
    features.conv0 = stem(model, channels, features.conv0, "fan_in")
    if model["stem"] != "original":
        features.pool0 = nn.Identity()
    if model["relu"]:
        return network
    remove(features, nn.ReLU)
    # the last one is in torchvision's forward
    parts = {"features": features, "pool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten(), "classifier": network.classifier}
    return nn.Sequential(OrderedDict(parts))


def efficientnet(network: Any, model: dict, channels: int) -> nn.Module:
    network.features[0][0] = stem(model, channels, network.features[0][0], "fan_out")
    for kind in (nn.Dropout, torchvision.ops.StochasticDepth):
        remove(network, kind)
    return network


def vgg(network: Any, model: dict, channels: int) -> nn.Module:
    first = network.features[0] = nn.Conv2d(channels, 64, 3, padding=1)
    nn.init.kaiming_normal_(first.weight, mode="fan_out", nonlinearity="relu")
    nn.init.zeros_(first.bias)  # type: ignore[arg-type]
    if model["stem"] == "small":
        for pooling in (10, 15, 20):
            network.features[pooling] = nn.MaxPool2d(2, stride=1)
    return network


class WithAuxiliaries(nn.Module):
    """A network with auxiliary classifiers: in training it gives [images, classifiers, classes], the main one's first."""

    WEIGHT = 0.3  # of an auxiliary classifier's loss: Szegedy et al. 2015, section 5

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        outputs = self.network(images)
        return torch.stack(outputs, 1) if self.training else outputs

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return one loss an image: the main classifier's, and in training a part of the others'."""
        if not self.training:
            return cross_entropy(outputs, labels, reduction="none")
        main, *others = (cross_entropy(each, labels, reduction="none") for each in outputs.unbind(1))
        return main + self.WEIGHT * sum(others)


def googlenet(network: Any, model: dict, channels: int) -> nn.Module:
    first = network.conv1.conv = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
    nn.init.trunc_normal_(first.weight, std=0.01, a=-2, b=2)
    return WithAuxiliaries(network)


ADAPTED = dict.fromkeys([*BASIC, *BOTTLENECKS], resnet) | dict.fromkeys(DENSENETS, densenet)
ADAPTED |= {"efficientnet_b0": efficientnet, "vgg11": vgg, "googlenet": googlenet}
