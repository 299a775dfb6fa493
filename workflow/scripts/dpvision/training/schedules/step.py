"""A learning rate that falls every so many epochs, or steps."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Positive, Strict

if TYPE_CHECKING:
    from torch import optim


class Step(Strict):
    """A learning rate that is multiplied by `factor` after every so many epochs, or steps."""

    name: Literal["step"]
    """The schedule."""
    factor: Annotated[float, Field(gt=0, lt=1)]
    """Factor that the learning rate is multiplied by."""
    every: Positive
    """Number of epochs, or steps, after which it falls."""
    unit: Literal["epochs", "steps"] = "epochs"
    """Unit of `every`."""


Options = Step


def build(options: dict[str, Any], optimizer: "optim.Optimizer") -> "optim.lr_scheduler.StepLR":
    from torch import optim

    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=options["every"], gamma=options["factor"])
    scheduler.unit = options["unit"]  # type: ignore[attr-defined]
    return scheduler


def advance(scheduler: "optim.lr_scheduler.StepLR", epoch: dict[str, Any] | None) -> None:
    if (scheduler.unit == "epochs") == (epoch is not None):  # type: ignore[attr-defined]
        scheduler.step()
