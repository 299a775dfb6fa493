"""A learning rate that falls where the validation loss gets no better."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Strict

if TYPE_CHECKING:
    from torch import optim


class Plateau(Strict):
    """A learning rate that is multiplied by `factor` after more than `patience` epochs without a better validation loss."""

    name: Literal["plateau"]
    """The schedule."""
    factor: Annotated[float, Field(gt=0, lt=1)]
    """Factor that the learning rate is multiplied by."""
    patience: Annotated[int, Field(ge=0)]
    """Number of epochs without a better validation loss that are waited for."""


Options = Plateau
FOLLOWS_VALIDATION = True


def build(options: dict[str, Any], optimizer: "optim.Optimizer") -> "optim.lr_scheduler.ReduceLROnPlateau":
    from torch import optim

    return optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=options["factor"], patience=options["patience"])


def advance(scheduler: "optim.lr_scheduler.ReduceLROnPlateau", epoch: dict[str, Any] | None) -> None:
    if epoch:
        scheduler.step(epoch["validation_loss"])
