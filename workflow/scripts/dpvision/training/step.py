"""One step of DP-SGD (Algorithm 1 of De et al. 2022, without its views), whole and in order."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dpvision.data.sampling import PoissonSampler
from dpvision.privacy.clipping import OpacusHooks, Plain, Way, trainable
from dpvision.privacy.noise import add_noise
from dpvision.training.examples import Examples, pieces


@dataclass
class Seen:
    """What a step saw, for the history; not private."""

    losses: Tensor
    norms: Tensor


@dataclass
class Step:
    """Sample, clip and sum over physical batches, add noise once, divide by the expected batch, update.

    The divisor is the expected batch, a constant: the size of the sample itself depends on who is in the data.
    An empty sample is a step like any other: noise alone.
    """

    network: nn.Module
    optimizer: torch.optim.Optimizer
    examples: Examples
    sampler: PoissonSampler
    expected_batch: int
    physical_batch: int
    clip: float
    sigma: float | None  # none: not private, neither clipped nor noisy
    noise: torch.Generator

    def __post_init__(self) -> None:
        self.parameters = trainable(self.network)
        self.gradients: Way = Plain(self.network) if self.sigma is None else OpacusHooks(self.network, self.clip)
        if any(isinstance(layer, nn.BatchNorm2d) for layer in self.network.modules()):
            self.physical_batch = len(self.examples)  # its statistics are the whole sample's: a cut would change the result

    def __call__(self) -> Seen:
        self.network.train()
        sums = [torch.zeros_like(p) for p in self.parameters]
        losses, norms = [sums[0].new_zeros(0)], [sums[0].new_zeros(0)]
        for indices in pieces(self.sampler.sample(), self.physical_batch):
            part = self.gradients(*self.examples.batch(indices))
            for total, more in zip(sums, part.sums, strict=True):
                total += more
            losses.append(part.losses)
            norms += [] if part.norms is None else [part.norms]
        if self.sigma is not None:
            add_noise(sums, self.sigma * self.clip, self.noise)
        for parameter, total in zip(self.parameters, sums, strict=True):
            parameter.grad = total / self.expected_batch
        self.optimizer.step()
        self.optimizer.zero_grad()
        return Seen(torch.cat(losses), torch.cat(norms))
