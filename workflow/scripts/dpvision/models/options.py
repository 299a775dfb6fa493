"""Options that every family shares, and the counts of its networks; light."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dpvision.config.base import Searched, Strict


class Network(Strict):
    """Options of a network that every family has."""

    family: str
    """Architecture of the network."""
    label: str
    """Name in tables and figures. A display label: changing it makes nothing stale."""

    def slug(self) -> str:
        """Return its name in the names of folders."""
        return self.family

    def takes_features(self) -> bool:
        """Return whether it takes features, a row of numbers an example; else it takes images."""
        return False

    def mixes_examples(self) -> bool:
        """Return whether an example's output depends on the others that pass through with it."""
        return False

    def has_auxiliaries(self) -> bool:
        """Return whether classifiers other than its head train with it, which a start from weights would not make anew."""
        return False

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with options that are right one by one: the option's key, and why."""
        yield from ()

    def searched(self) -> dict[str, str]:
        """Return the options that are left to a search, each with the search's name."""
        return {key: value.search for key in type(self).model_fields if isinstance(value := getattr(self, key), Searched)}


def faults_of_widths(width: float, groups: int | str | Searched, channels: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a width that multiplies `channels`, and with groups of those; in ascending order."""
    if not (channels[0] * width).is_integer():
        yield "width", f"must be a multiple of 1/{channels[0]}: of {channels[0]} channels it would make {channels[0] * width:g}"
    else:
        yield from faults_of_groups(groups, [int(c * width) for c in channels])


def faults_of_groups(groups: int | str | Searched, channels: list[int]) -> Iterator[tuple[str, str]]:
    """Yield groups that do not divide the channels of each layer; `channels` in ascending order."""
    if isinstance(groups, int) and (wrong := [c for c in channels if c % min(groups, c)]):
        fits = [g for g in range(1, channels[-1] + 1) if all(c % min(g, c) == 0 for c in channels)]
        allowed = ", ".join(map(str, fits))
        yield "groups", f'{groups} groups do not divide {wrong[0]} channels; allowed: {allowed}, "channels"'


@dataclass(frozen=True)
class Layer:
    """A convolution, or a linear layer, which is one at a single position."""

    inputs: int
    outputs: int
    kernel: int
    positions: int

    @property
    def weights(self) -> int:
        return self.inputs * self.outputs * self.kernel**2


@dataclass(frozen=True)
class Counts:
    """Counts of one image's forward pass through a network."""

    multiply_adds: float
    parameters: int
    outputs: int
    """Numbers that all convolutions and linear layers give."""
    largest: int
    """Numbers that the layer with the most of them gives."""


def counts_of_layers(layers: Iterable[Layer]) -> Counts:
    """Return the counts of a network with these layers; norms and biases are left out."""
    layers = list(layers)
    outputs = [layer.outputs * layer.positions for layer in layers]
    weights = sum(layer.weights for layer in layers)
    return Counts(sum(layer.weights * layer.positions for layer in layers), weights, sum(outputs), max(outputs))


def bottlenecks(depths: Iterable[int], factor: float, shape: list[int], classes: int) -> Iterator[Layer]:
    """Yield the layers of a ResNet of bottlenecks, 7x7 stem and max pooling; `factor` multiplies its channels."""
    channels, height, width = shape
    inputs = round(64 * factor)
    yield Layer(channels, inputs, 7, -(-height // 2) * -(-width // 2))
    c, before = inputs, -(-height // 4) * -(-width // 4)
    for stage, blocks in enumerate(depths):
        positions = -(-height // 2 ** (stage + 2)) * -(-width // 2 ** (stage + 2))
        for block in range(blocks):
            if block == 0:
                yield Layer(inputs, 4 * c, 1, positions)
            yield Layer(inputs, c, 1, positions if block else before)
            yield Layer(c, c, 3, positions)
            yield Layer(c, 4 * c, 1, positions)
            inputs = 4 * c
        c, before = 2 * c, positions
    yield Layer(inputs, classes, 1, 1)
