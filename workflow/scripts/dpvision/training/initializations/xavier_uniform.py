"""Xavier's uniform distribution (Glorot and Bengio 2010)."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Strict

if TYPE_CHECKING:
    from torch import nn


class XavierUniform(Strict):
    """Weights of convolutions and linear layers from U(-a, a), a = gain * sqrt(6 / (fan-in + fan-out)).

    Their biases are 0. Norms are left alone: their scale and shift stay as the family has them.
    """

    name: Literal["xavier_uniform"]
    """The initialisation."""
    gain: Annotated[float, Field(gt=0)] = 1.0
    """Factor of the bound, for the activation that follows: 3/4 for SELU, sqrt(2) for ReLU."""


Options = XavierUniform


def apply(options: dict[str, Any], network: "nn.Module") -> None:
    from torch import nn

    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.xavier_uniform_(layer.weight, gain=options["gain"])
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
