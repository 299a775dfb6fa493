"""Mish with its first two derivatives in closed form.

PyTorch composes the derivative of Mish of some ten operations when it is to be differentiated again, and each keeps what
it was given: two fifths of the graph of a ResNet-9's gradient. And
its second derivative is not a number where exp(x) overflows: in float32 from x = 89 on.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode


class ClosedMish(TorchFunctionMode):
    """A mode in which a network's Mish keeps what two derivatives need, and no more. A third cannot be taken."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is functional.mish:
            return _mish(*args, **kwargs or {})
        return function(*args, **kwargs or {})


def _mish(input: Tensor, inplace: bool = False) -> Tensor:
    return functional.mish(input, inplace=True) if inplace else _Mish.apply(input)


class _Mish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return functional.mish(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _Derivative.apply(gradient, *ctx.saved_tensors)


class _Derivative(torch.autograd.Function):
    """The gradient g of the output times Mish's derivative at x, as a function of both."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, x: Tensor) -> Tensor:
        """Return g times the derivative of Mish, which is x t with t = tanh(softplus(x)), t' = s(1 - t²), s = sigmoid(x)."""
        t, s = torch.tanh(functional.softplus(x)), torch.sigmoid(x)
        slope = s * (1 - t * t)
        first = t + x * slope
        second = slope * (2 + x * (1 - s - 2 * s * t))
        ctx.save_for_backward(first, second * gradient)
        return first * gradient

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, along: Tensor) -> tuple[Tensor, Tensor]:
        of_gradient, of_x = ctx.saved_tensors
        return along * of_gradient, along * of_x
