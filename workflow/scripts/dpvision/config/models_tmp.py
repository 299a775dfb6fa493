from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from dpvision.config.base import Groups, Searched, Strict


class Network(Strict):
    """What the options of every family have."""

    family: str
    """The architecture."""
    label: str
    """How tables and figures call it. A display label: changing it makes nothing stale."""

    def slug(self) -> str:
        """Its name in the names of folders."""
        return self.family

    def mixes_examples(self) -> bool:
        """Whether an example's output depends on the others that pass through with it."""
        return False

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        """What is wrong with options that are right one by one: the option's key, and why."""
        yield from ()

    def searched(self) -> dict[str, str]:
        """The options that are left to a search, and its name."""
        return {key: value.search for key in type(self).model_fields if isinstance(value := getattr(self, key), Searched)}


class ResNet9(Network):
    """ResNet-9 of Klause et al., appendix C; with `scale_norm` ScaleResNet-9."""

    family: Literal["resnet9"]
    """The architecture."""
    scale_norm: bool = False
    """One more normalisation after each residual addition: the paper's proposal."""
    norm: Literal["group", "batch"] = "group"
    """`batch` only without a budget: batch normalisation mixes examples, so no example's part can be bounded."""
    groups: Groups | Searched = 32
    """Groups of each group normalisation, at most one a channel; `channels`: one a channel."""
    order: Literal["norm-activation", "activation-norm"] = "norm-activation"
    """After each convolution: as in the authors' code (default), or as printed in appendix C."""
    width: Annotated[float, Field(gt=0, le=4)] = 1.0
    """Multiplies every number of channels."""

    def slug(self) -> str:
        return "scaleresnet9" if self.scale_norm else "resnet9"

    def mixes_examples(self) -> bool:
        return self.norm == "batch"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        if private and self.mixes_examples():
            yield (
                "norm",
                (
                    "not under differential privacy: every example's output depends on the others of its batch, so no "
                    "example's gradient can be bounded; use group, or cells with epsilons: [null] and nothing left to a search"
                ),
            )
        yield from _faults_of_widths(self.width, self.groups, (64, 128, 256))


class ResNet50(Network):
    """ResNet-50 of Klause et al., appendix D, in torchvision's layout; with `scale_norm` ScaleResNet-50."""

    family: Literal["resnet50"]
    """The architecture."""
    scale_norm: bool = False
    """One more normalisation between each residual addition and its activation: the paper's proposal."""
    groups: Groups | Searched = 32
    """Groups of each group normalisation, at most one a channel; `channels`: one a channel."""
    activation: Literal["mish", "relu"] = "mish"
    """Of all stages; the paper names Mish for ResNet-9 and says nothing of this network."""
    width: Annotated[float, Field(gt=0, le=4)] = 1.0
    """Multiplies every number of channels."""

    def slug(self) -> str:
        return "scaleresnet50" if self.scale_norm else "resnet50"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        yield from _faults_of_widths(self.width, self.groups, tuple(64 * 2**i for i in range(6)))


class WideResNet(Network):
    """WRN-depth-width as in De et al.: ReLU, group normalisation, convolution; with `scale_norm` ScaleWRN."""

    family: Literal["wrn"]
    """The architecture."""
    depth: Annotated[int, Field(ge=10)]
    """Layers: 6 n + 4, with n blocks in each of the three stages."""
    width: Annotated[int, Field(gt=0, le=32)]
    """Multiplies the 16, 32 and 64 channels of the three stages."""
    groups: Groups | Searched = 16
    """Groups of each group normalisation, at most one a channel; `channels`: one a channel."""
    scale_norm: bool = False
    """One more normalisation after each block's addition: Klause et al.'s proposal."""
    standardize: bool = True
    """Convolutions with standardised weights, a gain and a bias, as De et al.; false: plain ones, without bias."""

    def slug(self) -> str:
        return f"{'scale' if self.scale_norm else ''}wrn{self.depth}-{self.width}"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        if (self.depth - 4) % 6:
            below = self.depth - (self.depth - 4) % 6
            yield "depth", f"must be 6 n + 4, with n blocks in each of the three stages; nearest: {below}, {below + 6}"
        yield from _faults_of_groups(self.groups, [16, *(c * self.width for c in (16, 32, 64))])


def _faults_of_widths(width: float, groups: int | str | Searched, channels: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    """Of channels in ascending order, of which the first are 64, times the width."""
    if not (channels[0] * width).is_integer():
        yield "width", f"must be a multiple of 1/{channels[0]}: of {channels[0]} channels it would make {channels[0] * width:g}"
    else:
        yield from _faults_of_groups(groups, [int(c * width) for c in channels])


def _faults_of_groups(groups: int | str | Searched, channels: list[int]) -> Iterator[tuple[str, str]]:
    """Groups that do not divide the channels of each layer; `channels` in ascending order."""
    if isinstance(groups, int) and (wrong := [c for c in channels if c % min(groups, c)]):
        fits = [g for g in range(1, channels[-1] + 1) if all(c % min(g, c) == 0 for c in channels)]
        allowed = ", ".join(map(str, fits))
        yield "groups", f'{groups} groups do not divide {wrong[0]} channels; allowed: {allowed}, "channels"'


Model = Annotated[ResNet9 | ResNet50 | WideResNet, Field(discriminator="family")]
