"""A learning rate that falls after some steps, each said by its number."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Distinct, Positive, Strict

if TYPE_CHECKING:
    from torch import optim


class Milestones(Strict):
    """A learning rate that is multiplied by `factor` after each of these steps."""

    name: Literal["milestones"]
    """The schedule."""
    factor: Annotated[float, Field(gt=0, lt=1)]
    """Factor that the learning rate is multiplied by."""
    at: Distinct[Positive]
    """Steps after which it falls."""


Options = Milestones


def build(options: dict[str, Any], optimizer: "optim.Optimizer") -> "optim.lr_scheduler.MultiStepLR":
    from torch import optim

    return optim.lr_scheduler.MultiStepLR(optimizer, milestones=options["at"], gamma=options["factor"])


def advance(scheduler: "optim.lr_scheduler.MultiStepLR", epoch: dict[str, Any] | None) -> None:
    if epoch is None:
        scheduler.step()
