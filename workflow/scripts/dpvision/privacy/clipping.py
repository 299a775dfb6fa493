"""The sum of clipped per-example gradients: one interface, interchangeable ways of computing it.

    way(images, labels) -> Gradients

`sums` is the sum over the examples of min(1, C / |g|) g, where g is an example's gradient over all trainable
parameters together, and nothing where g is not finite: one example more or less moves it by at most C. Callers
add the sums of as many physical batches as they like and add noise once.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from opacus import GradSampleModule
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


@dataclass
class Gradients:
    """Of one physical batch; everything but `sums` is for the run's own eyes, it is not private."""

    sums: list[Tensor]  # one a trainable parameter
    losses: Tensor  # one an example
    norms: Tensor | None  # before clipping, one an example; none where gradients are not clipped


class Way(Protocol):
    def __call__(self, images: Tensor, labels: Tensor) -> Gradients: ...


def trainable(network: nn.Module) -> list[nn.Parameter]:
    return [p for p in network.parameters() if p.requires_grad]


def norms_of(samples: list[Tensor]) -> Tensor:
    """Each example's norm over all parameters together; `samples` holds one tensor a parameter, examples first.

    Row by row, then in float64: in float32 a sum over a whole layer is wrong from the fifth digit on.
    """
    rows = [sample.flatten(2).norm(dim=2) if sample.dim() > 2 else sample for sample in samples]
    return torch.cat(rows, dim=1).double().norm(dim=1)


def clip_factors(norms: Tensor, clip: float, dtype: torch.dtype) -> Tensor:
    """min(1, C / |g|) for each example, less what rounding in `dtype` could add."""
    margin = 1 + 32 * torch.finfo(dtype).eps
    return (clip / (norms * margin).clamp(min=clip)).to(dtype)


class OpacusHooks:
    """Per-example gradients kept by Opacus' hooks on every layer, then scaled and summed."""

    def __init__(self, network: nn.Module, clip: float) -> None:
        self.module = GradSampleModule(network, batch_first=True, loss_reduction="sum")
        self.parameters = {name: p for name, p in network.named_parameters() if p.requires_grad}
        self.clip = clip

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        images = images.detach().requires_grad_()
        losses = cross_entropy(self.module(images), labels, reduction="none")
        losses.sum().backward(inputs=[images])  # through every layer's hooks, without the sums of gradients nobody wants
        samples = self._samples()
        norms = norms_of(samples)
        finite = norms.isfinite()
        if not finite.all():  # a gradient that overflows contributes nothing; times 0 it would still be NaN
            samples = [sample[finite] for sample in samples]
        factors = clip_factors(norms[finite], self.clip, samples[0].dtype)
        return Gradients([torch.tensordot(factors, sample, 1) for sample in samples], losses.detach(), norms)

    def _samples(self) -> list[Tensor]:
        """What the hooks kept, one tensor a parameter; nothing of it stays behind."""
        samples = []
        for name, p in self.parameters.items():
            if p.grad_sample is None:  # type: ignore[attr-defined]
                raise NotImplementedError(f"{name} has no per-example gradient: no layer that Opacus knows used it")
            samples.append(p.grad_sample)  # type: ignore[attr-defined]
            p.grad_sample = None  # type: ignore[attr-defined]
        return samples


class Plain:
    """Not private: the gradient of the summed loss, for the control that trains without a budget."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.parameters = trainable(network)

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        losses = cross_entropy(self.network(images), labels, reduction="none")
        return Gradients(list(torch.autograd.grad(losses.sum(), self.parameters)), losses.detach(), None)
