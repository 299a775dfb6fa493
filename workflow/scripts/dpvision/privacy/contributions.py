"""Contributions of one use of a weight to every example's gradient: its norm, and the sum once all factors are known.

A *weight* is what an operation takes beside the data: a parameter, or a tensor computed from parameters alone.
A *contribution* belongs to one use of a weight in one physical batch:

    squares         each example's squared norm, in the space of the parameters, in float64; never less than
                    the norm of what `total` adds up
    total(factors)  the sum over the examples of factor * gradient of the weight's value; `weight.pull` makes of a
                    sum of totals those of the parameters

`Kept` holds each example's gradient. `Deferred` holds what gradients are made of and never makes them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dpvision.standardized import pieces

ROW = 256  # numbers whose squares are summed before float64
SLACK = 16  # roundings by which a norm that is not taken from the gradient itself is enlarged


class Weight:
    """A parameter, as an operation sees it."""

    def __init__(self, parameter: Tensor) -> None:
        self.value, self.parameters = parameter.detach(), [parameter]
        self.unit: Tensor | None = None
        self.copies: dict[tuple[torch.dtype, bool], Tensor] = {}
        self.standardized: dict[tuple[int, float], Standardized] = {}  # by gain and floor

    def like(self, x: Tensor) -> Tensor:
        """Return the value in the precision and the memory format of the data that it meets, copied once."""
        last = self.value.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
        if (x.dtype, last) not in self.copies:
            order = torch.channels_last if last else torch.contiguous_format
            self.copies[x.dtype, last] = self.value.to(dtype=x.dtype, memory_format=order)
        return self.copies[x.dtype, last]

    def squares(self, rows: Tensor, dots: Sequence[Tensor], doubts: Sequence[Tensor] = ()) -> Tensor:
        """Return squared norms from those of each gradient's rows and, where there is a unit, their sums and products with it.

        `doubts`: how far rounding may have moved these, where that is more than it moves the gradients themselves.
        """
        return rows.sum(1)

    def pull(self, total: Tensor) -> list[Tensor]:
        """Turn a sum of gradients of the value into sums of gradients of the parameters."""
        return [total]

    def pull_each(self, samples: Tensor) -> list[Tensor]:
        """Turn every example's gradient of the value into gradients of the parameters."""
        return [samples]


class Derived(Weight):
    """A weight computed from parameters alone, in whatever way: norms are of every example's gradient, pulled back."""

    def __init__(self, value: Tensor, parameters: list[Tensor]) -> None:
        super().__init__(value)
        self.graph, self.parameters = value, parameters

    def pull_each(self, samples: Tensor) -> list[Tensor]:
        options = {"retain_graph": True, "is_grads_batched": True, "allow_unused": True}  # of some only the shape matters
        found = torch.autograd.grad(self.graph, self.parameters, samples, **options)
        zeros = (samples.new_zeros(len(samples), *p.shape) for p in self.parameters)
        return [none if g is None else g for g, none in zip(found, zeros, strict=True)]


class Standardized(Derived):
    """The weight of `dpvision.standardized`: gain * unit, unit = (w - mean) * scale by rows. Its norms have a closed form.

    A row's gradient h pulls back to gain * scale * (h - mean of h - unit <h, unit>) for w and to <h, unit> for the
    gain. A unit has norm 1 and sum 0: both subtractions are projections, and squared norms subtract. Where a row's
    variance is below the floor its scale is a constant, and the last subtraction is not there.
    """

    def __init__(self, weight: Tensor, gain: Tensor, floor: float) -> None:
        value, centred, energy, scale = pieces(weight, gain, floor)
        super().__init__(value, [weight, gain])
        with torch.no_grad():
            self.gain, self.stretch = gain.detach(), gain * scale
            self.varies, self.size = energy > floor, weight[0].numel()
            self.unit = (centred * scale.unsqueeze(1)).view_as(weight)

    def pull(self, total: Tensor) -> list[Tensor]:
        assert self.unit is not None
        rows, unit = total.flatten(1), self.unit.flatten(1)
        along = (rows * unit).sum(1)
        inside = rows - rows.mean(1, keepdim=True) - unit * (along * self.varies).unsqueeze(1)
        return [(inside * self.stretch.unsqueeze(1)).view(total.shape), along]

    def squares(self, rows: Tensor, dots: Sequence[Tensor], doubts: Sequence[Tensor] = ()) -> Tensor:
        sums, along = (dot.double().abs() for dot in dots)
        of_sums, of_along = (doubt.double() for doubt in doubts or (torch.zeros_like(sums),) * 2)
        inside = rows * (1 + SLACK * torch.finfo(self.value.dtype).eps)
        inside -= (sums - of_sums).clamp(min=0).square() / self.size
        inside -= (along - of_along).clamp(min=0).square() * self.varies
        return (self.stretch.double().square() * inside.clamp(min=0) + (along + of_along).square()).sum(1)


@dataclass
class Kept:
    """Gradients of the weight's value, one for each example, in one tensor."""

    weight: Weight
    samples: Tensor
    squares: Tensor

    def total(self, factors: Tensor) -> Tensor:
        return weighted(self.samples, factors)


@dataclass
class Separate:
    """Gradients of the weight's value, one for each example, a tensor each."""

    weight: Weight
    each: list[Tensor]
    squares: Tensor

    @property
    def samples(self) -> Tensor:
        return torch.stack(self.each)

    def total(self, factors: Tensor) -> Tensor:
        total = torch.zeros_like(self.each[0])
        for sample, factor in zip(self.each, factors.tolist(), strict=True):
            total.add_(sample, alpha=factor)
        return total


@dataclass
class Deferred:
    """Norms alone; `total` makes the sum once the factors are known."""

    weight: Weight
    squares: Tensor
    total: Callable[[Tensor], Tensor]


class Rooms:
    """Memory that stays between parts: what the system takes back it zeroes page by page before it lends it again."""

    def __init__(self) -> None:
        self.rooms: dict[Any, Tensor] = {}
        self.lent = 0

    def next_part(self) -> None:
        self.lent = 0

    def scratch(self, name: str, like: Tensor, *shape: int) -> Tensor:
        """Return memory for what is not needed once a layer is done."""
        return self._borrow((name, like.dtype), like, math.prod(shape)).view(shape)

    def kept(self, key: str, examples: int, weight: Tensor) -> Tensor:
        """Return memory for one gradient of the weight an example, in one row; lent until the next part."""
        self.lent += 1
        return self._borrow((key, self.lent), weight, examples * weight.numel())

    def _borrow(self, key: Any, like: Tensor, numbers: int) -> Tensor:
        buffer = self.rooms.get(key)
        if buffer is None or buffer.numel() < numbers or (buffer.dtype, buffer.device) != (like.dtype, like.device):
            buffer = self.rooms[key] = like.new_empty(numbers)
        return buffer[:numbers]


class Vectors:
    """The gradients of many small weights, each used once, side by side: one norm and one product for all of them."""

    def __init__(self, parts: list[tuple[Weight, Tensor]]) -> None:
        self.weights = [weight for weight, _ in parts]
        self.numbers = sum(samples.shape[1] for _, samples in parts)
        filling = parts[0][1].new_zeros(len(parts[0][1]), -self.numbers % ROW)
        self.samples = torch.cat([*(samples for _, samples in parts), filling], 1)
        self.squares = row_squares(self.samples.unflatten(1, (-1, ROW))).sum(1)

    def totals(self, factors: Tensor) -> list[tuple[Weight, Tensor]]:
        """Return each weight with the weighted sum of its gradients."""
        sums = (factors @ self.samples).split([*(w.value.numel() for w in self.weights), self.samples.shape[1] - self.numbers])
        return list(zip(self.weights, sums[:-1], strict=True))


Contribution = Kept | Separate | Deferred
Ways = dict[str, Callable[[], Contribution]]  # by name, to the same contribution


def keep(weight: Weight, samples: Tensor) -> Kept:
    """Keep every example's gradient as it is, in whatever precision it came, with its norm."""
    samples = samples.to(weight.value.dtype)
    dots: Sequence[Tensor] = ()
    if weight.unit is not None:
        order = sorted(range(2, samples.dim()), key=samples.stride, reverse=True)  # in which they lie in memory
        rows = samples.permute(0, 1, *order).flatten(2)
        dots = rows.sum(2), torch.linalg.vecdot(rows, weight.unit.permute(0, *(d - 1 for d in order)).flatten(1))
    return Kept(weight, samples, weight.squares(row_squares(samples), dots))


def keep_each(weight: Weight, gradients: Iterable[Tensor]) -> Separate:
    """Keep one example's gradient after the other, and take its norm while it is in the processor's cache."""
    each, norms, sums, along = [], [], [], []
    order, unit = None, None
    for gradient in gradients:
        gradient = gradient.to(weight.value.dtype)
        if order is None:
            order = sorted(range(1, gradient.dim()), key=gradient.stride, reverse=True)
            unit = None if weight.unit is None else weight.unit.permute(0, *order).flatten(1)
        rows = gradient.permute(0, *order).flatten(1)
        norms.append(torch.linalg.vector_norm(rows, dim=1))
        if unit is not None:
            sums.append(rows.sum(1))
            along.append(torch.linalg.vecdot(rows, unit))
        each.append(gradient)
    dots = [torch.stack(sums), torch.stack(along)] if sums else []
    return Separate(weight, each, weight.squares(torch.stack(norms).double().square(), dots))


def row_squares(samples: Tensor) -> Tensor:
    """Return the squared norms of each gradient's rows, in float64: a sum over a layer in float32 comes out too small."""
    if samples.dim() < 3:
        return samples.view(len(samples), -1).double().square()
    return torch.linalg.vector_norm(samples, dim=tuple(range(2, samples.dim()))).double().square()


def weighted(samples: Tensor, factors: Tensor) -> Tensor:
    """Return the sum over the examples of factor * sample, read in the order in which the samples lie in memory."""
    order = sorted(range(samples.dim()), key=samples.stride, reverse=True)
    if order[0] != 0:
        return torch.tensordot(factors, samples, 1)
    in_order = samples.permute(order)
    total = torch.mv(in_order.reshape(len(samples), -1).t(), factors).view(in_order.shape[1:])
    return total.permute([order.index(d) - 1 for d in range(1, samples.dim())])
