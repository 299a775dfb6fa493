"""No schedule."""

from typing import TYPE_CHECKING, Any, Literal

from dpvision.config.base import Strict

if TYPE_CHECKING:
    from torch import optim


class Constant(Strict):
    """A learning rate that stays as it is."""

    name: Literal["constant"]
    """The schedule."""


Options = Constant


def build(options: dict[str, Any], optimizer: "optim.Optimizer") -> None:
    return None
