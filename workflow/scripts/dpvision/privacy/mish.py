"""Mish, forward and derivative in one pass over pieces that fit the processor's cache: about three times as fast as
PyTorch's two on a CPU, on a GPU not. For training's first-order gradients only."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

PIECE = 2**16  # numbers


class Mish(torch.autograd.Function):
    """The function x * tanh(softplus(x)), in the dtype of x, computed in float32 at least."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        slope = torch.empty_like(x)
        ctx.save_for_backward(slope)
        return mish(x, slope)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return g * slope


def mish(x: Tensor, slope: Tensor | None = None) -> Tensor:
    """Return Mish of a dense tensor; its derivative is written into `slope`, which lies in memory as `x` does."""
    y = torch.empty_like(x)
    wide = torch.promote_types(x.dtype, torch.float32)
    flat = [t.as_strided((t.numel(),), (1,)).split(PIECE) for t in (x, y, y if slope is None else slope)]
    a, b, c = torch.empty((3, min(PIECE, x.numel())), dtype=wide, device=x.device)
    for piece in zip(*flat, strict=True):
        s, u, v = (t[: len(piece[0])] for t in (a, b, c))
        numbers = piece[0].to(wide)
        _value(numbers, piece[1], s, u, v)
        if slope is not None:
            _slope(numbers, piece[2], s, u, v)
    return y


def _value(x: Tensor, y: Tensor, s: Tensor, u: Tensor, v: Tensor) -> None:
    """Write x t to `y`, t = tanh(softplus(x)) = u / (2 - u), u = s (2 - s), s = sigmoid(x). Leave s and, in place of u, t."""
    torch.sigmoid(x, out=s)
    torch.neg(s, out=u).add_(2).mul_(s)
    torch.neg(u, out=v).add_(2)
    u.div_(v)
    if y.dtype == u.dtype:
        torch.mul(x, u, out=y)
    else:
        y.copy_(torch.mul(x, u, out=v))


def _slope(x: Tensor, slope: Tensor, s: Tensor, t: Tensor, v: Tensor) -> None:
    """Write x s (1 - t^2) + t, the derivative of x t, to `slope`."""
    torch.mul(t, t, out=v)
    s.mul_(x).addcmul_(s, v, value=-1).add_(t)
    slope.copy_(s)


def replaceable(func: Any, args: tuple, kwargs: dict) -> bool:
    """Tell whether a call is PyTorch's Mish, out of place, of what `mish` takes."""
    return func is F.mish and len(args) == 1 and not kwargs.get("inplace") and dense(args[0])


def as_dense(x: Tensor) -> Tensor:
    """Return the same numbers, one after the other, with strides that leave no doubt in which order."""
    if x.is_contiguous() or 1 in x.shape[1:]:
        return x.contiguous().reshape(-1).view(x.shape)
    return x if dense(x) else x.contiguous()


def dense(x: Tensor) -> bool:
    """Tell whether the numbers lie in memory one after the other, in whatever order of dimensions."""
    return x.is_contiguous() or (x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last))
