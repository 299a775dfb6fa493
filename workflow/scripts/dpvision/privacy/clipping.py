"""The sum of clipped per-example gradients: one interface, interchangeable ways of computing it.

    way(images, labels) -> Gradients

`images` are [B, C, H, W], or [B, K, C, H, W] with K views of each example, whose loss is then the mean over its views.
`sums` is the sum over the examples of min(1, C / |g|) g, where g is an example's gradient over all trainable
parameters together, and nothing where g is not finite: one example more or less moves it by at most C, which the way
calls its `sensitivity`. Callers add the sums of as many physical batches as they like, and noise of that scale once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from opacus import GradSampleModule
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


@dataclass
class Gradients:
    """The result of one physical batch; everything but `sums` is for the run's own eyes, it is not private."""

    sums: list[Tensor]  # one a trainable parameter
    losses: Tensor  # one an example
    norms: Tensor | None  # before clipping, one an example; none where gradients are not clipped


class Way(Protocol):
    @property
    def sensitivity(self) -> float:
        """Bound how far one example more or less moves `sums`, in the L2 norm over all parameters together."""
        ...

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients: ...


class Clipped:
    """A way that clips each example's gradient to the norm `clip`."""

    clip: float

    @property
    def sensitivity(self) -> float:
        """Return C: each example adds a gradient that is no longer, or nothing."""
        return self.clip


def trainable(network: nn.Module) -> list[nn.Parameter]:
    return [p for p in network.parameters() if p.requires_grad]


Loss = Callable[[Tensor, Tensor], Tensor]  # a function of outputs and labels that gives one number an output


class NotOnePerExample(ValueError):
    """An error: the loss gives something else than one number per input."""


def each_cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    return cross_entropy(outputs, labels, reduction="none")


def loss_of(network: nn.Module) -> Loss:
    """Return the loss that a network trains by: its own, which one with auxiliary classifiers has, or the cross entropy."""
    own: list[Any] = [module.loss for module in network.modules() if hasattr(module, "loss")]
    return own[0] if own else each_cross_entropy


def flat(images: Tensor, views: int | None = None) -> tuple[Tensor, int]:
    """Return the images in one row, and how many of them are views of one example.

    With `views` None, pictures say it themselves: with views they have five dimensions.
    """
    if views == 1 or (views is None and images.dim() != 5):
        return images, 1
    if views is not None and images.shape[1] != views:
        raise ValueError(f"inputs are {tuple(images.shape)}: they must be [examples, views, ...] with {views} views")
    return images.flatten(0, 1), images.shape[1]


def losses_of(network: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Return one loss an example: of its picture, or the mean over its views."""
    rows, views = flat(images)
    return losses_of_rows(network, rows, labels, views, loss_of(network))


def losses_of_rows(network: nn.Module, rows: Tensor, labels: Tensor, views: int, loss: Loss) -> Tensor:
    """Return one loss an example, the mean over its views, which follow one another."""
    return losses_of_outputs(network(rows), labels, views, loss)


def losses_of_outputs(outputs: Any, labels: Tensor, views: int, loss: Loss) -> Tensor:
    """Return one loss per example of what the network made of all views."""
    losses = loss(outputs, labels if views == 1 else labels.repeat_interleave(views, 0))
    if losses.shape != (len(labels) * views,):
        raise NotOnePerExample(
            'the loss must be one number per input, as with reduction="none": '
            f"for {len(labels) * views} inputs it is of the shape {tuple(losses.shape)}"
        )
    return losses if views == 1 else losses.view(-1, views).mean(1)


def norms_of(samples: list[Tensor]) -> Tensor:
    """Return each example's norm over all parameters together; `samples` holds one tensor a parameter, examples first.

    It is summed row by row, then in float64: in float32 a sum over a whole layer is wrong from the fifth digit on.
    """
    rows = [sample.flatten(2).norm(dim=2) if sample.dim() > 2 else sample.view(len(sample), -1) for sample in samples]
    return torch.cat(rows, dim=1).double().norm(dim=1)


def clip_factors(norms: Tensor, clip: float, dtype: torch.dtype) -> Tensor:
    """Return min(1, C / |g|) for each example, less what rounding in `dtype` could add."""
    margin = 1 + 32 * torch.finfo(dtype).eps
    return (clip / (norms * margin).clamp(min=clip)).to(dtype)


class OneAtATime(Clipped):
    """The way by PyTorch's own gradient of one example's loss after the other: slow, and plain to see."""

    def __init__(self, network: nn.Module, clip: float) -> None:
        self.network, self.clip = network, clip
        self.parameters = trainable(network)

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        sums = [torch.zeros_like(p) for p in self.parameters]
        losses, norms = [images.new_zeros(0)], [images.new_zeros(0, dtype=torch.float64)]
        for example in range(len(labels)):
            alone = slice(example, example + 1)
            loss = losses_of(self.network, images[alone], labels[alone])
            gradient = torch.autograd.grad(loss.sum(), self.parameters, allow_unused=True, materialize_grads=True)
            norm = norms_of([g[None] for g in gradient])
            if norm.isfinite():  # any other gradient contributes nothing
                torch._foreach_add_(sums, torch._foreach_mul(gradient, clip_factors(norm, self.clip, sums[0].dtype)[0]))
            losses.append(loss.detach())
            norms.append(norm)
        return Gradients(sums, torch.cat(losses), torch.cat(norms))


class OpacusHooks(Clipped):
    """Per-example gradients kept by Opacus' hooks on every layer, then scaled and summed: the loop that its users run."""

    def __init__(self, network: nn.Module, clip: float) -> None:
        self.module = GradSampleModule(network, batch_first=True, loss_reduction="sum")
        self.parameters = {name: p for name, p in network.named_parameters() if p.requires_grad}
        self.clip = clip

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        losses = losses_of(self.module, images, labels)
        losses.sum().backward()
        samples = self._samples(views=images.shape[1] if images.dim() == 5 else 1)
        norms = norms_of(samples)
        finite = norms.isfinite()
        if not finite.all():  # a gradient that overflows contributes nothing; times 0 it would still be NaN
            samples = [sample[finite] for sample in samples]
        factors = clip_factors(norms[finite], self.clip, samples[0].dtype)
        return Gradients([torch.tensordot(factors, sample, 1) for sample in samples], losses.detach(), norms)

    def _samples(self, views: int = 1) -> list[Tensor]:
        """Return what the hooks kept, one tensor a parameter; nothing of it stays behind.

        They keep a gradient a view, in the precision of the layer. The mean over the views lacks but the sum: what comes
        back from the loss, itself a mean, is divided by K already.
        """
        samples = []
        for name, p in self.parameters.items():
            if p.grad_sample is None:  # type: ignore[attr-defined]
                raise NotImplementedError(f"{name} has no per-example gradient: no layer that Opacus knows used it")
            kept = p.grad_sample  # type: ignore[attr-defined]
            samples.append(kept.unflatten(0, (-1, views)).sum(1, dtype=p.dtype) if views > 1 else kept.to(p.dtype))
            p.grad = p.grad_sample = None  # type: ignore[attr-defined]
        return samples


class Plain:
    """The gradient of the summed loss, not private, for the control that trains without a budget."""

    sensitivity = math.inf  # nothing is clipped: no noise would make it private

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.parameters = trainable(network)

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        losses = losses_of(self.network, images, labels)
        return Gradients(list(torch.autograd.grad(losses.sum(), self.parameters)), losses.detach(), None)
