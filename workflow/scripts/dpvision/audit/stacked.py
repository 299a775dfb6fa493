"""Many copies of one small network, each with weights of its own, that train side by side: a job's minutes, not days.

A step is Algorithm 1's, as training/step.py makes it of one network: per-example gradients over all parameters, clipped, added
up, noise once, a constant divisor. Layers know M models at once. An activation is [M, channels, images, height, width], so that
all models share one matrix product with images that they share.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dpvision.errors import UserError
from dpvision.privacy.clipping import clip_factors


class Patches(torch.autograd.Function):
    """Copy what each position of a kernel sees: [M, channels, images, height, width] -> [M, channels, k, k, images, y, x]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: tuple[int, int], stride: tuple[int, int]) -> Tensor:
        ctx.how = x.shape, kernel, stride
        windows = x.unfold(3, kernel[0], stride[0]).unfold(4, kernel[1], stride[1])
        return windows.permute(0, 1, 5, 6, 2, 3, 4).contiguous()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Add up what a pixel had in all positions; PyTorch's own way takes ten times as long."""
        (gradient,) = gradients
        shape, kernel, stride = ctx.how
        by_pixel = gradient.permute(0, 1, 2, 3, 5, 6, 4).contiguous()  # images last: what is added up lies side by side
        found = gradient.new_zeros(*shape[:2], *shape[3:], shape[2])
        ends = [step * (count - 1) + 1 for step, count in zip(stride, gradient.shape[5:], strict=True)]
        for i in range(kernel[0]):
            for j in range(kernel[1]):
                found[:, :, i : i + ends[0] : stride[0], j : j + ends[1] : stride[1]] += by_pixel[:, :, i, j]
        return found.movedim(4, 2), None, None


class FirstOfFour(torch.autograd.Function):
    """The greatest of four, [..., 4, windows], as MaxPool2d(2): of equals the first has the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        first, second, third, fourth = x.unbind(-2)
        most = torch.maximum(torch.maximum(first, second), torch.maximum(third, fourth))
        ctx.save_for_backward(x, most)
        return most

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (left,) = gradients
        x, most = ctx.saved_tensors
        found = torch.empty_like(x)
        for i in range(4):
            # the gradient where they are equal; torch.where and masks take five times as long
            here = torch.ops.aten.threshold_backward(left, x[..., i, :] - most, -torch.finfo(x.dtype).tiny)
            found[..., i, :] = here
            left = left - here
        return found


@dataclass
class Seen:
    """The inputs of a layer with weights in one pass, [1 or M, inputs, images, positions], and its outputs, of which the loss
    has a gradient."""

    inputs: Tensor
    outputs: Tensor


class Weighted:
    """A convolution or a linear layer of M models; `pooled`: MaxPool2d(2) comes behind it, and is done with it."""

    def __init__(self, layer: nn.Conv2d | nn.Linear, models: int) -> None:
        self.layer, self.models, self.pooled = layer, models, False
        self.weight = layer.weight.detach().flatten(1).expand(models, -1, -1).clone()
        self.bias = None if layer.bias is None else layer.bias.detach().expand(models, -1).clone()
        self.last: tuple[Tensor, Tensor, tuple[int, ...]] | None = None

    def tensors(self) -> list[Tensor]:
        return [self.weight, *([] if self.bias is None else [self.bias])]

    def __call__(self, x: Tensor, seen: list[Seen]) -> Tensor:
        patches, shape = self._patches_of(x)
        shared, _, images, positions = patches.shape
        rows = self.weight.flatten(0, 1)[None] if shared == 1 else self.weight
        outputs = (rows @ patches.flatten(2)).view(self.models, -1, images, positions)
        if self.bias is not None:
            outputs += self.bias[:, :, None, None]
        if not outputs.requires_grad:
            outputs.requires_grad_()
        seen.append(Seen(patches.detach(), outputs))
        if self.pooled:
            outputs = FirstOfFour.apply(outputs.unflatten(3, (4, -1)))
        return outputs.view(*outputs.shape[:3], *shape)

    def _patches_of(self, x: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        """Return what each position sees, [1 or M, inputs, images, positions], and height and width of the outputs.

        Images that all models share are the same at every step: what is made of them is kept.
        """
        if isinstance(self.layer, nn.Linear):
            return x[..., None], ()
        if self.last and self.last[0] is x:
            return self.last[1:]
        rows, columns = (int(side) for side in self.layer.padding)
        padded = F.pad(x, (columns, columns, rows, rows)) if rows or columns else x
        patches: Tensor = Patches.apply(padded, self.layer.kernel_size, self.layer.stride)
        shape = tuple(patches.shape[5:])
        if self.pooled:  # the four positions of a window behind one another: a sum over them reads no gaps
            shape = (shape[0] // 2, shape[1] // 2)
            kept = patches[..., : 2 * shape[0], : 2 * shape[1]].unflatten(6, (-1, 2)).unflatten(5, (-1, 2))
            patches = kept.movedim((6, 8), (5, 6))
        found = patches.reshape(len(x), -1, x.shape[2], patches[0, 0, 0, 0, 0].numel())
        if len(x) == 1:
            self.last = x, found, shape
        return found, shape


class Stacked:
    """M copies of a network, which is a row of convolutions, linear layers and layers without weights."""

    def __init__(self, network: nn.Module, models: int) -> None:
        self.models = models
        self.layers: list[Weighted | nn.Module] = []
        for layer in network if isinstance(network, nn.Sequential) else [network]:
            if isinstance(layer, nn.Linear) or (isinstance(layer, nn.Conv2d) and _is_plain(layer)):
                self.layers.append(Weighted(layer, models))
            elif _halves(layer) and (before := _pools(self.layers)):
                before.pooled = True  # ReLU does not mind: it keeps the order of numbers
            elif isinstance(layer, nn.ReLU | nn.MaxPool2d | nn.AdaptiveMaxPool2d | nn.Flatten):
                self.layers.append(layer)
            else:
                raise UserError(
                    f"{type(layer).__name__}: models that are trained side by side are rows of convolutions, linear layers, "
                    "ReLU, max pooling and Flatten; attack another network"
                )
        self.weighted = [layer for layer in self.layers if isinstance(layer, Weighted)]

    def tensors(self) -> list[Tensor]:
        """Return the weights, in the order of the network's own parameters, each [M, ...] and in rows."""
        return [tensor for layer in self.weighted for tensor in layer.tensors()]

    def losses(self, x: Tensor, labels: Tensor, seen: list[Seen]) -> Tensor:
        """Return the loss of each model on each image; x is [1 or M, channels, images, height, width]."""
        for layer in self.layers:
            if isinstance(layer, Weighted):
                x = layer(x, seen)
            elif isinstance(layer, nn.Flatten):
                x = x.permute(0, 1, 3, 4, 2).flatten(1, 3)
            elif isinstance(layer, nn.ReLU):
                x = F.relu(x)
            else:
                x = layer(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        return F.cross_entropy(x.transpose(1, 2).flatten(0, 1), labels.repeat(self.models), reduction="none").view(
            self.models, -1
        )

    def clipped_sums(self, x: Tensor, labels: Tensor, joins: Tensor, clip: float, views: int = 1) -> list[Tensor]:
        """Return for each model the sum of the clipped gradients of the examples that join, `joins` being [M, examples].

        An example's loss is the mean over its views, which follow one another.
        """
        seen: list[Seen] = []
        with torch.enable_grad():
            losses = self.losses(x, labels.repeat_interleave(views), seen)
            gradients = torch.autograd.grad(losses.sum() / views, [layer.outputs for layer in seen])
        found = [
            _of_layer(layer, one, gradient, views) for layer, one, gradient in zip(self.weighted, seen, gradients, strict=True)
        ]
        norms = torch.stack([squares.double() for of_layer in found for squares in of_layer.squares]).sum(0).sqrt()
        finite = norms.isfinite()
        if not finite.all():  # such a gradient contributes nothing, and nothing times infinity would be no number
            found = [of_layer.without_infinities() for of_layer in found]
        factors = torch.where(finite, clip_factors(norms, clip, x.dtype), 0) * joins
        return [total for of_layer in found for total in of_layer.summed(factors)]

    def move(self, by: list[Tensor], rate: float) -> None:
        """Take a step against the gradients."""
        for tensor, gradient in zip(self.tensors(), by, strict=True):
            tensor -= rate * gradient.view_as(tensor)


def _is_plain(layer: nn.Conv2d) -> bool:
    return layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros" and layer.padding != "same"


def _halves(layer: nn.Module) -> bool:
    """Tell whether a layer is pooling of two by two, and nothing else."""
    usual = nn.MaxPool2d(2)
    return isinstance(layer, nn.MaxPool2d) and vars(layer) == vars(usual) | {"training": layer.training}


def _pools(layers: list[Weighted | nn.Module]) -> Weighted | None:
    """Return the convolution that is the last layer but for a ReLU, if nothing pools it yet."""
    behind = [layer for layer in layers if not isinstance(layer, nn.ReLU)][-1:]
    return next(
        (one for one in behind if isinstance(one, Weighted) and isinstance(one.layer, nn.Conv2d) and not one.pooled), None
    )


@dataclass
class _OfLayer:
    """The gradients of a layer's weights: of each example, or only as much as their sums need."""

    squares: list[Tensor]
    """Squared norms of weight and bias, [M, examples]."""
    of_weight: Tensor | None
    """Of each example, [examples, M, numbers]; none where that would take more work than norms without it."""
    inputs: Tensor
    """[M or 1, inputs, examples, positions of all views]"""
    gradient: Tensor
    """[M, outputs, examples, positions of all views]"""
    of_bias: Tensor | None

    def without_infinities(self) -> "_OfLayer":
        """Return it with 0 for what is no finite number."""
        kept = [None if one is None else one.nan_to_num(0, 0, 0) for one in (self.of_weight, self.of_bias)]
        return replace(
            self,
            of_weight=kept[0],
            of_bias=kept[1],
            inputs=self.inputs.nan_to_num(0, 0, 0),
            gradient=self.gradient.nan_to_num(0, 0, 0),
        )

    def summed(self, factors: Tensor) -> list[Tensor]:
        if self.of_weight is not None:
            total = torch.einsum("mn,nmd->md", factors, self.of_weight)
        else:
            scaled = self.gradient * factors[:, None, :, None]
            total = scaled.flatten(2) @ self.inputs.flatten(2).transpose(1, 2)
        if self.of_bias is None:
            return [total]
        return [total, (self.of_bias @ factors[:, :, None]).squeeze(2)]


def _of_layer(layer: Weighted, seen: Seen, gradient: Tensor, views: int) -> _OfLayer:
    """Find the squared norms of every example's gradient of a layer, by the way that takes less work."""
    inputs, gradient = (_by_example(tensor, views) for tensor in (seen.inputs, gradient))
    shared, wide, examples, positions = inputs.shape
    outputs = gradient.shape[1]
    of_bias = None if layer.bias is None else gradient.sum(3)
    squares = [] if of_bias is None else [of_bias.square().sum(1)]
    of_weight = None
    if positions == 1:
        squares.append(inputs.square().sum((1, 3)) * gradient.square().sum((1, 3)))
    elif shared == 1:
        rows = gradient.permute(2, 0, 1, 3).reshape(examples, -1, positions)
        of_weight = (rows @ inputs[0].permute(1, 2, 0)).view(examples, layer.models, -1)
    elif positions * (wide + outputs) < wide * outputs:
        products = [part.permute(0, 2, 3, 1) @ part.permute(0, 2, 1, 3) for part in (inputs, gradient)]
        squares.append((products[0] * products[1]).sum((2, 3)))
    else:
        each = gradient.permute(2, 0, 1, 3) @ inputs.permute(2, 0, 3, 1)
        of_weight = each.flatten(2)
    if of_weight is not None:
        squares.append(of_weight.square().sum(2).T)
    if shared == 1:
        inputs = inputs.expand(layer.models, -1, -1, -1)
    return _OfLayer(squares, of_weight, inputs, gradient, of_bias)


def _by_example(tensor: Tensor, views: int) -> Tensor:
    """Count the views of an image, [..., images, positions], among its positions."""
    return tensor.unflatten(2, (-1, views)).flatten(3)
