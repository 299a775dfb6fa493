"""Every example's gradient of a convolution's weight, or only its norm: several ways to the same numbers.

    one        the library's own weight gradient, one example after the other
    grouped    all examples at once, as the groups of one convolution
    unfold     patches as rows, then one matrix product an example
    gram       only norms. With patches p_t and output gradients g_t at positions t, the squared norm is the sum over s
               and t of <p_s, p_t> <g_s, g_t>, and products of patches are sums of shifted products of pixels: cheap on
               small maps. The sum is then the batched weight gradient, each output gradient times its example's factor.

With K views an example is K images, whose gradients add up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import pad, unfold

from dpvision.privacy.contributions import SLACK, Deferred, Kept, Ways, Weight, keep

Pair = tuple[int, int]


@dataclass
class Convolution:
    """One use of a weight. `x` and `g`, input and output gradient, are [examples * views, channels, height, width]."""

    weight: Weight
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return torch.conv2d(x, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def of_input(self, g: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        return self._backward(g, x, weight, self.groups, [True, False, False])[0]

    def of_weight(self, g: Tensor, x: Tensor, weight: Tensor, groups: int | None = None) -> Tensor:
        """Summed over the images; of `weight` only the shape matters."""
        return self._backward(g, x, weight, groups or self.groups, [False, True, False])[1]

    def _backward(self, g: Tensor, x: Tensor, weight: Tensor, groups: int, wanted: list[bool]) -> tuple[Tensor, ...]:
        geometry = [list(self.stride), list(self.padding), list(self.dilation), False, [0, 0], groups]
        return torch.ops.aten.convolution_backward(g, x, weight, None, *geometry, wanted)

    def ways(self, x: Tensor, g: Tensor, examples: int, room: Callable[..., Tensor]) -> Ways:
        """Those that fit; `room` lends memory for the gradients that are kept."""
        ways: Ways = {
            "one": lambda: self.one(x, g, room(examples, self.weight.value, x)),
            "grouped": lambda: keep(self.weight, self.grouped(x, g, examples)),
            "unfold": lambda: keep(self.weight, self.unfold(x, g, examples)),
        }
        pixels = len(x) // examples * (x.shape[2] + 2 * self.padding[0]) * (x.shape[3] + 2 * self.padding[1])
        if self.groups == 1 and pixels**2 <= 4 * self.weight.value.numel():  # beyond that its products outgrow the gradients
            ways["gram"] = lambda: self.gram(x, g, examples)
        return ways

    def one(self, x: Tensor, g: Tensor, kept: Tensor) -> Kept:
        """Each is normed while the processor still holds it."""
        views = len(x) // len(kept)
        weight = self.weight.value.to(x.dtype)
        filters = [f if f is None else torch.empty_like(kept[0]).copy_(f) for f in self.weight.filters]  # lying alike
        rows, dots = [], [[] for _ in filters]  # type: tuple[list[Tensor], list[list[Tensor]]]
        for example, sample in enumerate(kept.unbind()):
            images = slice(example * views, (example + 1) * views)
            sample.copy_(self.of_weight(g[images], x[images], weight))
            rows.append(torch.linalg.vector_norm(sample, dim=(1, 2, 3)))
            for dot, f in zip(dots, filters, strict=True):
                dot.append((sample if f is None else sample * f).sum((1, 2, 3)))
        squares = self.weight.squares(torch.stack(rows).double().square(), [torch.stack(dot) for dot in dots])
        return Kept(self.weight, kept, squares)

    def grouped(self, x: Tensor, g: Tensor, examples: int) -> Tensor:
        weight, views = self.weight.value, len(x) // examples

        def side_by_side(t: Tensor) -> Tensor:
            flat = t.reshape(examples, views, *t.shape[1:]).transpose(0, 1).reshape(-1)
            return flat.view(views, -1, *t.shape[2:])  # over one dimension: strides that leave no doubt about the format

        shape = x.new_empty((examples * len(weight), *weight.shape[1:]))
        return self.of_weight(side_by_side(g), side_by_side(x), shape, examples * self.groups).view(examples, *weight.shape)

    def unfold(self, x: Tensor, g: Tensor, examples: int) -> Tensor:
        weight = self.weight.value
        patches = unfold(x, weight.shape[2:], self.dilation, self.padding, self.stride)
        patches = patches.view(examples, -1, self.groups, weight[0].numel(), patches.shape[2])
        gradients = g.reshape(examples, -1, self.groups, len(weight) // self.groups, patches.shape[4])
        return torch.einsum("bvgot,bvgnt->bgon", gradients, patches).reshape(examples, *weight.shape)

    def gram(self, x: Tensor, g: Tensor, examples: int) -> Deferred:
        wide = self.weight.value.dtype
        x, g = x.to(wide), g.to(wide)

        def positions(t: Tensor) -> Tensor:
            return t.permute(0, 2, 3, 1).reshape(examples, -1, t.shape[1])

        padded = pad(x, (self.padding[1], self.padding[1], self.padding[0], self.padding[0]))
        pixels, sides = positions(padded), (len(x) // examples, *padded.shape[2:])
        pixels = torch.bmm(pixels, pixels.transpose(1, 2)).view(examples, *sides, *sides)
        patches = torch.zeros((), dtype=wide, device=x.device)
        for corner in product(*map(range, self.weight.value.shape[2:])):
            down, right = (
                slice(at * d, at * d + s * (out - 1) + 1, s)
                for at, d, s, out in zip(corner, self.dilation, self.stride, g.shape[2:], strict=True)
            )
            shifted = pixels[:, :, down, right, :, down, right]
            patches = patches.add_(shifted) if patches.dim() else shifted.clone(memory_format=torch.contiguous_format)
        gradients = positions(g)
        patches = patches.view(examples, gradients.shape[1], gradients.shape[1])
        rows = (gradients * torch.bmm(patches, gradients)).sum(1)
        # what rounding can hide is bounded by the norm's largest possible value, that of terms that all add up
        lengths = patches.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt().unsqueeze(2)
        rows = rows.double() + SLACK * torch.finfo(wide).eps * (lengths * gradients.abs()).sum(1).double().square()

        def total(factors: Tensor) -> Tensor:
            scaled = g * factors.repeat_interleave(len(g) // examples).view(-1, 1, 1, 1)
            return self.of_weight(scaled, x, self.weight.value)

        dots = [self._dot(f, x, g, examples) for f in self.weight.filters]
        return Deferred(self.weight, self.weight.squares(rows.clamp(min=0), dots), total)

    def _dot(self, f: Tensor | None, x: Tensor, g: Tensor, examples: int) -> Tensor:
        """Each gradient's rows times a filter's: the output gradient times what the filter makes of the input."""
        made = self.forward(x, torch.ones_like(self.weight.value[:1]) if f is None else f)
        return (g * made).sum((2, 3)).view(examples, -1, g.shape[1]).sum(1)
