"""Gradients of a convolution's weight for every example, or only their norms: several ways to the same numbers.

    one        the library's own weight gradient, one example after the other
    grouped    all examples at once, as the groups of one convolution
    unfold     patches as rows, then one matrix product an example
    gram       only norms. With patches p_t and output gradients g_t at positions t, the squared norm is the sum over s
               and t of <p_s, p_t> <g_s, g_t>, and products of patches are sums of products of pixels: cheap on small
               maps. The sum is then the batched weight gradient, each output gradient times its example's factor.

With K views an example is K images, whose gradients add up.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dpvision.privacy.candidates import ruled_out
from dpvision.privacy.contributions import SLACK, Deferred, Rooms, Separate, Standardized, Ways, Weight, keep, keep_each

Pair = tuple[int, int]


@dataclass
class Convolution:
    """One use of a weight. `x` and `g`, input and output gradient, are [examples * views, channels, height, width]."""

    weight: Weight
    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int
    made: tuple[Tensor, int, Tensor | None] | None = None  # its output, the version of that, and the bias in it

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return torch.conv2d(x, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def of_input(self, g: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        return self._backward(g, x, weight, self.groups, [True, False, False])[0]

    def of_weight(self, g: Tensor, x: Tensor, weight: Tensor, groups: int | None = None) -> Tensor:
        """Return the gradient of the weight, summed over the images; of `weight` only the shape matters."""
        return self._backward(g, x, weight, groups or self.groups, [False, True, False])[1]

    def _backward(self, g: Tensor, x: Tensor, weight: Tensor, groups: int, wanted: list[bool]) -> tuple[Tensor, ...]:
        geometry = [list(self.stride), list(self.padding), list(self.dilation), False, [0, 0], groups]
        return torch.ops.aten.convolution_backward.default(g, x, weight, None, *geometry, wanted)

    def ways(self, x: Tensor, g: Tensor, examples: int, key: str, rooms: Rooms) -> Ways:
        """Return the ways that fit; `rooms` lends memory for what is kept under the layer's `key`."""
        ways: Ways = {
            "one": lambda: self.one(x, g, examples),
            "grouped": lambda: keep(self.weight, self.grouped(x, g, examples)),
            "unfold": lambda: keep(self.weight, self.unfold(x, g, examples, key, rooms)),
        }
        if self.groups == 1:
            ways["gram"] = lambda: self.gram(x, g, examples)
        return ways

    def kind(self, x: Tensor, g: Tensor, examples: int) -> str:
        """Say all that the times of its ways depend on."""
        geometry = f"stride {self.stride} padding {self.padding} dilation {self.dilation} groups {self.groups}"
        weight, order = tuple(self.weight.value.shape), "contiguous" if g.is_contiguous() else "channels last"
        return f"convolution {weight} {geometry} of {tuple(x.shape[1:])} views {len(x) // examples} {x.dtype} {order}"

    def worth(self, x: Tensor, g: Tensor, examples: int, ways: Ways) -> Ways:
        """Leave out the ways that arithmetic rules out, so that nobody waits for their timing."""
        weight = self.weight.value
        before, after = (len(t) // examples * t.shape[2] * t.shape[3] for t in (x, g))
        places = weight[0, 0].numel()
        products = before**2 * x.shape[1] + after**2 * (g.shape[1] + places)
        out = ruled_out(x.device, weight.numel(), places, before**2, products, after * weight.numel())
        return {name: way for name, way in ways.items() if name not in out} or ways

    def note(self, y: Tensor, bias: Tensor | None) -> None:
        """Note what the weight and the bias made of the input, for `dots`."""
        if isinstance(self.weight, Standardized) and y.dtype == self.weight.value.dtype:
            self.made = (y.detach(), y._version, bias)

    def one(self, x: Tensor, g: Tensor, examples: int) -> Separate:
        views, weight = len(x) // examples, self.weight.like(x)
        both = zip(x.split(views), g.split(views), strict=True)
        return keep_each(self.weight, (self.of_weight(outputs, images, weight) for images, outputs in both))

    def grouped(self, x: Tensor, g: Tensor, examples: int) -> Tensor:
        weight, views = self.weight.value, len(x) // examples

        def side_by_side(t: Tensor) -> Tensor:
            flat = t.reshape(examples, views, *t.shape[1:]).transpose(0, 1).reshape(-1)
            return flat.view(views, -1, *t.shape[2:])  # over one dimension: strides that leave no doubt about the format

        shape = x.new_empty((examples * len(weight), *weight.shape[1:]))
        return self.of_weight(side_by_side(g), side_by_side(x), shape, examples * self.groups).view(examples, *weight.shape)

    def unfold(self, x: Tensor, g: Tensor, examples: int, key: str, rooms: Rooms) -> Tensor:
        weight, groups = self.weight.value, self.groups
        patches = self._patches(x, rooms).unflatten(-1, (groups, -1)).unflatten(0, (examples, -1))
        gradients = g.permute(0, 2, 3, 1).unflatten(-1, (groups, -1)).unflatten(0, (examples, -1))
        rows = rooms.scratch("patches", x, examples, groups, *patches.shape[1:6], weight.shape[1])
        rows.copy_(patches.permute(0, 6, 1, 2, 3, 4, 5, 7))  # of examples, views, height, width, kernel, groups, channels
        outputs = gradients.permute(0, 4, 5, 1, 2, 3).reshape(examples * groups, len(weight) // groups, -1)
        rows, made = rows.view(len(outputs), -1, weight[0].numel()), None
        if x.dtype == weight.dtype:
            made = rooms.kept(key, examples, weight).view(len(outputs), -1, rows.shape[2])
        found = torch.bmm(outputs, rows, out=made).view(examples, len(weight), *weight.shape[2:], weight.shape[1])
        return found.movedim(-1, 2)

    def _patches(self, x: Tensor, rooms: Rooms) -> Tensor:
        """Return what each output sees, [images, height, width, kernel's height and width, channels], as a view."""
        (up, left), (down, right), (high, wide) = self.padding, self.dilation, self.weight.value.shape[2:]
        n, channels, height, width = x.shape
        pixels = x.permute(0, 2, 3, 1)
        if up or left or not pixels.is_contiguous():
            padded = rooms.scratch("padded", x, n, height + 2 * up, width + 2 * left, channels).zero_()
            padded[:, up : up + height, left : left + width] = pixels
            pixels = padded
        rows, columns = (
            (size - reach * (kernel - 1) - 1) // stride + 1
            for size, reach, kernel, stride in zip(pixels.shape[1:3], self.dilation, (high, wide), self.stride, strict=True)
        )
        image, row, column, _ = pixels.stride()
        strides = (image, row * self.stride[0], column * self.stride[1], row * down, column * right, 1)
        return pixels.as_strided((n, rows, columns, high, wide, channels), strides)

    def gram(self, x: Tensor, g: Tensor, examples: int) -> Deferred:
        wide = self.weight.value.dtype
        x, g = x.to(wide), g.to(wide)

        def positions(t: Tensor) -> Tensor:
            return t.permute(0, 2, 3, 1).reshape(examples, -1, t.shape[1])

        pixels, sides = positions(x), (len(x) // examples, *x.shape[2:])
        products = torch.bmm(pixels, pixels.transpose(1, 2)).view(examples, *sides, *sides)
        for side in (0, 1):
            products = self._sum_over_kernel(products, side, g.shape[2 + side])
        gradients = positions(g)
        products = products.reshape(examples, gradients.shape[1], gradients.shape[1])
        rows = (gradients * torch.bmm(products, gradients)).sum(1).double()
        # what rounding can hide is a share of the largest possible value: by Cauchy-Schwarz, norm times norm
        patches = products.diagonal(dim1=1, dim2=2).clamp(min=0).sum(1, keepdim=True).sqrt()  # all of them together
        outputs = gradients.square().sum(1).sqrt()
        rows += SLACK * torch.finfo(wide).eps * (patches * outputs).double().square()

        def total(factors: Tensor) -> Tensor:
            scaled = g * factors.repeat_interleave(len(g) // examples).view(-1, 1, 1, 1)
            return self.of_weight(scaled, x, self.weight.like(x))

        return Deferred(self.weight, self.weight.squares(rows.clamp(min=0), *self.dots(x, g, patches, outputs)), total)

    def _sum_over_kernel(self, products: Tensor, side: int, out: int) -> Tensor:
        """Turn one side's pixels into outputs, of products [examples, views, height, width, views, height, width]: add up, over
        the kernel's places along it, the products of the pixels that two outputs meet there. Padding adds nothing."""
        stride, dilation, size = self.stride[side], self.dilation[side], products.shape[2 + side]

        def at(places: slice) -> tuple[slice, ...]:
            both = [slice(None)] * side + [places] + [slice(None)] * (1 - side)
            return (slice(None), slice(None), *both, slice(None), *both)

        met = products.new_zeros([out if d in (2 + side, 5 + side) else n for d, n in enumerate(products.shape)])
        for place in range(self.weight.value.shape[2 + side]):
            pixel = place * dilation - self.padding[side]  # the pixel of output 0
            first, last = max(0, -(pixel // stride)), min(out - 1, (size - 1 - pixel) // stride)  # outputs that meet one
            if first <= last:
                pixels = slice(first * stride + pixel, last * stride + pixel + 1, stride)
                met[at(slice(first, last + 1))].add_(products[at(pixels)])
        return met

    def dots(self, x: Tensor, g: Tensor, patches: Tensor, outputs: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Return the sums of each gradient's rows and their products with the unit's, without the gradients, and their doubts.

        A product is the output gradient's with what a filter makes of the input; what the unit makes is the output, the
        bias taken off, over the gain. A doubt is a share of the largest possible value, from each example's norms of all
        `patches` together and of its `outputs`' gradients, by channel.
        """
        if not isinstance(self.weight, Standardized):
            return [], []
        weight, unit, examples = self.weight.value, self.weight.unit, len(patches)
        assert unit is not None

        def over(t: Tensor) -> Tensor:
            """Sum [images, channels] over views."""
            return t.view(examples, -1, t.shape[1]).sum(1)

        boxes = self.forward(x.sum(1, keepdim=True), x.new_ones(1, 1, *weight.shape[2:]))
        sums = over(torch.einsum("iohw,ihw->io", g, boxes.squeeze(1)))
        doubt = SLACK * torch.finfo(unit.dtype).eps * outputs
        y, gain, offset = self._output(x, unit, self.weight.gain)
        along = over((g * y).sum((2, 3)) / gain - offset * g.sum((2, 3)))
        reach = patches + offset.abs() * (g[:, 0].numel() / examples) ** 0.5
        return [sums, along], [doubt * patches * weight[0].numel() ** 0.5, doubt * reach]

    def _output(self, x: Tensor, unit: Tensor, gain: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return y, gain and offset: what the unit makes of `x` is y / gain - offset."""
        if self.made and self.made[0]._version == self.made[1]:  # nothing was written over it
            y, _, bias = self.made
            bias = torch.zeros_like(gain) if bias is None else bias.detach()
            if gain.all() and (bias.abs() <= gain.abs()).all():
                return y, gain, bias / gain
        return self.forward(x, unit), torch.ones_like(gain), torch.zeros_like(gain)
