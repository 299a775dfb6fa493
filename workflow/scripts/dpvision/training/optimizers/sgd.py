"""Stochastic gradient descent."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Later, Strict

if TYPE_CHECKING:
    from torch import nn, optim


class SGD(Strict):
    """Stochastic gradient descent, as PyTorch does it."""

    name: Literal["sgd"]
    """The optimiser."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Learning rate at the beginning: the schedule may change it."""
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the last step that the next one begins with."""
    weight_decay: Annotated[float, Field(ge=0), Later] = 0.0
    """Share of every trained parameter that is added to its gradient, after clipping and noise: it costs no privacy."""


Options = SGD
COPIES = 1  # the last step, where there is momentum


def build(options: dict[str, Any], network: "nn.Module") -> "optim.Optimizer":
    from torch import optim

    return optim.SGD(
        network.parameters(),
        lr=options["learning_rate"],
        momentum=options["momentum"],
        weight_decay=options.get("weight_decay", 0),
    )
