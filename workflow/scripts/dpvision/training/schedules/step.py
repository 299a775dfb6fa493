"""Less every so many epochs, or steps."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Positive, Strict

if TYPE_CHECKING:
    from torch import optim


class Step(Strict):
    """Multiply the learning rate by `factor` after every so many epochs, or steps."""

    name: Literal["step"]
    """The schedule."""
    factor: Annotated[float, Field(gt=0, lt=1)]
    """What the learning rate is multiplied by."""
    every: Positive
    """After how many epochs, or steps."""
    unit: Literal["epochs", "steps"] = "epochs"
    """What `every` counts."""


Options = Step


def build(options: dict[str, Any], optimizer: "optim.Optimizer") -> "optim.lr_scheduler.StepLR":
    from torch import optim

    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=options["every"], gamma=options["factor"])
    scheduler.unit = options["unit"]  # type: ignore[attr-defined]
    return scheduler


def advance(scheduler: "optim.lr_scheduler.StepLR", epoch: dict[str, Any] | None) -> None:
    if (scheduler.unit == "epochs") == (epoch is not None):  # type: ignore[attr-defined]
        scheduler.step()
