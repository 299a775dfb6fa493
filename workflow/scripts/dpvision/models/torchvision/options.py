"""Options of a network of torchvision's in a paper, and what it costs; light."""

from collections.abc import Iterator
from typing import Any, Literal

from dpvision.models.options import Layer, Network

BASIC = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}
"""Blocks in each stage; of two 3x3 convolutions."""
BOTTLENECKS = {"resnet50": (3, 4, 6, 3), "resnet152": (3, 8, 36, 3), "wide_resnet50_2": (3, 4, 6, 3)}
"""The same, of a 3x3 convolution between two 1x1, the last of which widens fourfold."""
DENSENETS = {"densenet121": (6, 12, 24, 16), "densenet169": (6, 12, 32, 32), "densenet201": (6, 12, 48, 32)}
VGG11 = ((64,), (128,), (256, 256), (512, 512), (512, 512))
"""Channels of the 3x3 convolutions between its poolings."""
INCEPTIONS = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)
"""Channels in GoogLeNet's blocks, by stage: 1x1; 1x1 and 3x3; 1x1 and 3x3 again; 1x1 behind a pooling."""


class Options(Network):
    """A network of torchvision's with group normalisation in the place of batch normalisation."""

    family: Literal["torchvision"]
    """Library whose networks these are."""
    network: Literal[
        "resnet18",
        "resnet34",
        "resnet50",
        "resnet152",
        "wide_resnet50_2",
        "densenet121",
        "densenet169",
        "densenet201",
        "efficientnet_b0",
        "vgg11",
        "googlenet",
    ]
    """Name of the network there. EfficientNet is without its dropout and its stochastic depth; VGG-11 and GoogLeNet keep
    their dropout, and GoogLeNet its two auxiliary classifiers. VGG-11 has no normalisation."""
    groups: Literal[1, 2, 4, 8, "channels"] = 8
    """Groups of each group normalisation: what divides the channels of all these networks; `channels`: one a channel."""
    stem: Literal["original", "small", "bare"] = "original"
    """Stem: `original`, for 32 pixels and more; `small`, a 3x3 convolution, norm, activation; `bare`, the convolution alone.
    VGG-11, which begins with a 3x3 convolution: with `small` its last three poolings move by one pixel."""
    relu: bool = True
    """ReLU; false: DenseNet without any, as Remerscheid et al. trained it."""

    def slug(self) -> str:
        stem = "" if self.stem == "original" else f"-{self.stem}"
        return f"{self.network}{stem}{'' if self.relu else '-norelu'}"

    def has_auxiliaries(self) -> bool:
        return self.network == "googlenet"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        if self.stem == "bare" and self.network not in BASIC:
            others = "original" if self.network == "googlenet" else "original, small"
            yield "stem", f"bare is a stem of {' and '.join(BASIC)}; allowed for {self.network}: {others}"
        if self.stem == "small" and self.network == "googlenet":
            yield "stem", "googlenet has no stem for small images; allowed: original"
        if not self.relu and self.network not in DENSENETS:
            yield "relu", f"only {', '.join(DENSENETS)} can be without ReLU; use true for {self.network}"


# For images of 32 pixels. Fair: with the stem that suits them; literal: as Remerscheid et al. trained it.
CATALOGUE = {
    "resnet18": Options(family="torchvision", label="ResNet-18", network="resnet18", stem="small"),
    "resnet34": Options(family="torchvision", label="ResNet-34", network="resnet34", stem="small"),
    "densenet121": Options(family="torchvision", label="DenseNet-121", network="densenet121", stem="small"),
    "efficientnet_b0": Options(family="torchvision", label="EfficientNet-B0", network="efficientnet_b0", stem="small"),
    "resnet18, literal": Options(family="torchvision", label="ResNet-18, literal", network="resnet18", stem="bare"),
    "resnet34, literal": Options(family="torchvision", label="ResNet-34, literal", network="resnet34"),
    "densenet121, literal": Options(family="torchvision", label="DenseNet-121, literal", network="densenet121", relu=False),
    "efficientnet_b0, literal": Options(family="torchvision", label="EfficientNet-B0, literal", network="efficientnet_b0"),
}


def layers(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    """Yield the convolutions and the linear layers."""
    if model["network"] in BASIC or model["network"] in BOTTLENECKS:
        return _resnet(model, shape, classes)
    if model["network"] in DENSENETS:
        return _densenet(model, shape, classes)
    return {"efficientnet_b0": _efficientnet, "vgg11": _vgg, "googlenet": _googlenet}[model["network"]](model, shape, classes)


def _halved(height: int, width: int) -> tuple[int, int]:
    """Return the size behind a stride of 2."""
    return -(-height // 2), -(-width // 2)


def _resnet(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    inputs, height, width = shape
    if original := model["stem"] == "original":
        height, width = _halved(height, width)
    yield Layer(inputs, 64, 7 if original else 3, height * width)
    if original:
        height, width = _halved(height, width)
    inputs = 64
    wide = BOTTLENECKS.get(model["network"])
    for stage, blocks in enumerate(wide or BASIC[model["network"]]):
        inner = 64 * 2**stage * (2 if model["network"] == "wide_resnet50_2" else 1)
        outputs = 256 * 2**stage if wide else inner
        for block in range(blocks):
            if wide:
                yield Layer(inputs, inner, 1, height * width)  # the stride is that of the next one
            if stage and block == 0:
                height, width = _halved(height, width)
            if block == 0 and inputs != outputs:
                yield Layer(inputs, outputs, 1, height * width)
            yield Layer(inner if wide else inputs, inner, 3, height * width)
            yield Layer(inner, outputs, 1 if wide else 3, height * width)
            inputs = outputs
    yield Layer(inputs, classes, 1, 1)


def _densenet(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    inputs, height, width = shape
    if original := model["stem"] == "original":
        height, width = _halved(height, width)
    yield Layer(inputs, 64, 7 if original else 3, height * width)
    if original:
        height, width = _halved(height, width)
    inputs = 64
    for stage, blocks in enumerate(DENSENETS[model["network"]]):
        if stage:
            yield Layer(inputs, inputs // 2, 1, height * width)
            inputs, height, width = inputs // 2, height // 2, width // 2
        for _ in range(blocks):
            yield Layer(inputs, 128, 1, height * width)
            yield Layer(128, 32, 3, height * width)
            inputs += 32
    yield Layer(inputs, classes, 1, 1)


def _efficientnet(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    inputs, height, width = shape
    if model["stem"] == "original":
        height, width = _halved(height, width)
    yield Layer(inputs, 32, 3, height * width)
    inputs = 32
    rows = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3)]
    rows += [(6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)]
    for expansion, kernel, stride, outputs, blocks in rows:
        for block in range(blocks):
            wide = expansion * inputs
            if expansion > 1:
                yield Layer(inputs, wide, 1, height * width)
            if stride == 2 and block == 0:
                height, width = _halved(height, width)
            yield Layer(1, wide, kernel, height * width)  # each channel by itself
            yield Layer(wide, inputs // 4, 1, 1)  # squeeze and excitation: of the means of channels
            yield Layer(inputs // 4, wide, 1, 1)
            yield Layer(wide, outputs, 1, height * width)
            inputs = outputs
    yield Layer(inputs, 1280, 1, height * width)
    yield Layer(1280, classes, 1, 1)


def _vgg(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    inputs, height, width = shape
    for stage, channels in enumerate(VGG11):
        for outputs in channels:
            yield Layer(inputs, outputs, 3, height * width)
            inputs = outputs
        small = model["stem"] == "small" and stage > 1
        height, width = (height - 1, width - 1) if small else (height // 2, width // 2)
    yield Layer(inputs, 4096, 7, 1)  # of 7x7 means
    yield Layer(4096, 4096, 1, 1)
    yield Layer(4096, classes, 1, 1)


def _googlenet(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    inputs, height, width = shape
    height, width = _halved(height, width)
    yield Layer(inputs, 64, 7, height * width)
    height, width = height // 2, width // 2  # a 3x3 pooling that counts a part of a window at the end
    yield Layer(64, 64, 1, height * width)
    yield Layer(64, 192, 3, height * width)
    inputs = 192
    for stage, blocks in enumerate(INCEPTIONS):
        height, width = _halved(height, width) if stage == 2 else (height // 2, width // 2)
        for block, (alone, narrow, wide, narrower, second, pooled) in enumerate(blocks):
            if stage == 1 and block in (1, 4):  # an auxiliary classifier, in training alone
                yield Layer(inputs, 128, 1, 16)
                yield Layer(2048, 1024, 1, 1)
                yield Layer(1024, classes, 1, 1)
            yield Layer(inputs, alone, 1, height * width)
            yield Layer(inputs, narrow, 1, height * width)
            yield Layer(narrow, wide, 3, height * width)
            yield Layer(inputs, narrower, 1, height * width)
            yield Layer(narrower, second, 3, height * width)
            yield Layer(inputs, pooled, 1, height * width)
            inputs = alone + wide + second + pooled
    yield Layer(inputs, classes, 1, 1)
