"""NAdam."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Strict

if TYPE_CHECKING:
    from torch import nn, optim


class NAdam(Strict):
    """Adam with Nesterov's momentum, with PyTorch's defaults but for the learning rate."""

    name: Literal["nadam"]
    """The optimiser."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Learning rate at the beginning: the schedule may change it."""


Options = NAdam
COPIES = 2  # the two moments


def build(options: dict[str, Any], network: "nn.Module") -> "optim.Optimizer":
    from torch import optim

    return optim.NAdam(network.parameters(), lr=options["learning_rate"])
