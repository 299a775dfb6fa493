"""What a paper can say of a linear layer, and what it costs; light."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from dpvision.models.options import Layer, Network


class Options(Network):
    """A linear layer on features, which starts at zero: every class is as likely as any other."""

    family: Literal["linear"]
    """Architecture of the network."""
    constant: Annotated[float, Field(gt=0)] = 0.1
    """What stands beside an example's features, and so what its bias is multiplied by. Features of length 1 with a constant
    of 0.1 leave the bias a hundredth of the squared norm that clipping bounds."""

    def takes_features(self) -> bool:
        return True


def layers(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    """Yield the layer."""
    yield Layer(shape[0] + 1, classes, 1, 1)
