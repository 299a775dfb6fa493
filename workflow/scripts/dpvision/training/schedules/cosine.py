"""A learning rate that rises, then falls along a cosine to zero."""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from dpvision.config.base import Positive, Strict

if TYPE_CHECKING:
    from torch import optim


class Cosine(Strict):
    """A learning rate that rises from 0 in equal steps, and falls from there along half a cosine to 0."""

    name: Literal["cosine"]
    """The schedule."""
    warm_up: Annotated[int, Field(ge=0)]
    """Steps in which it rises."""
    end: Positive
    """Step after which it is 0; of the recipe, its last one."""


Options = Cosine


def build(options: dict[str, Any], optimizer: "optim.Optimizer") -> "optim.lr_scheduler.LambdaLR":
    from torch import optim

    return optim.lr_scheduler.LambdaLR(optimizer, lambda made: factor(options, made))


def factor(options: dict[str, Any], made: int) -> float:
    """Return what the learning rate is multiplied by in the step after so many."""
    rising, end = options["warm_up"], options["end"]
    if made < rising:
        return made / rising
    return (1 + math.cos(math.pi * min(1.0, (made - rising) / max(1, end - rising)))) / 2


def advance(scheduler: "optim.lr_scheduler.LambdaLR", epoch: dict[str, Any] | None) -> None:
    if epoch is None:
        scheduler.step()
