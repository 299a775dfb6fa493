"""The sum of clipped per-example gradients: one interface, interchangeable ways of computing it.

    way(images, labels) -> Gradients

`sums` is the sum over the examples of min(1, C / |g|) g, where g is an example's gradient over all trainable
parameters together: one example more or less moves it by at most C. Callers add the sums of as many physical
batches as they like and add noise once.
"""

import warnings
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


def clip_factors(norms: Tensor, clip: float) -> Tensor:
    """What each example's gradient is multiplied by; rounding must not push a norm above C, hence the margin."""
    return (clip / (norms * (1 + 1e-6)).clamp(min=clip)).to(norms.dtype)


class OpacusHooks:
    """Per-example gradients kept by Opacus' hooks on every layer, then scaled and summed."""

    def __init__(self, network: nn.Module, clip: float) -> None:
        # once a step: images need no gradient, and the hooks of the first layer do not need theirs
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        self.module = GradSampleModule(network, batch_first=True, loss_reduction="sum")
        self.parameters = trainable(network)
        self.clip = clip

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        losses = cross_entropy(self.module(images), labels, reduction="none")
        losses.sum().backward()
        samples = [p.grad_sample.flatten(1) for p in self.parameters]  # type: ignore[attr-defined]
        norms = torch.stack([sample.norm(dim=1) for sample in samples]).norm(dim=0)
        if not norms.isfinite().all():  # an example whose gradient overflows contributes nothing
            broken = ~norms.isfinite()
            samples = [sample.masked_fill(broken[:, None], 0) for sample in samples]
        factors = clip_factors(norms.nan_to_num(nan=0.0, posinf=0.0), self.clip)
        sums = [(factors @ sample).view_as(p) for sample, p in zip(samples, self.parameters, strict=True)]
        for p in self.parameters:
            p.grad = p.grad_sample = None  # type: ignore[attr-defined]
        return Gradients(sums, losses.detach(), norms)


class Plain:
    """Not private: the gradient of the summed loss, for the control that trains without a budget."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.parameters = trainable(network)

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        losses = cross_entropy(self.network(images), labels, reduction="none")
        return Gradients(list(torch.autograd.grad(losses.sum(), self.parameters)), losses.detach(), None)
