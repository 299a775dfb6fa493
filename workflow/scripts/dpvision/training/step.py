"""One step of DP-SGD (Algorithm 1 of De et al. 2022, without its views), whole and in order."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dpvision.data.sampling import PoissonSampler
from dpvision.privacy.clipping import OpacusHooks, Plain, Way, trainable
from dpvision.privacy.noise import add_noise
from dpvision.training.examples import Examples


@dataclass
class Seen:
    """What a step saw, for the history; not private."""

    losses: Tensor
    norms: Tensor


class Step:
    """Sample, clip and sum over physical batches, add noise once, divide by the expected batch, update.

    The divisor is the expected batch, a constant: the size of the sample itself depends on who is in the data.
    An empty sample is a step like any other: noise alone.
    """

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        examples: Examples,
        sampler: PoissonSampler,
        expected_batch: int,
        physical_batch: int,
        clip: float,
        sigma: float | None,
        noise: torch.Generator,
    ) -> None:
        self.network, self.optimizer, self.examples, self.sampler = network, optimizer, examples, sampler
        self.expected_batch, self.physical_batch = expected_batch, physical_batch
        self.clip, self.sigma, self.noise = clip, sigma, noise
        self.gradients: Way = Plain(network) if sigma is None else OpacusHooks(network, clip)

    def __call__(self) -> Seen:
        self.network.train()
        parameters = trainable(self.network)
        sums = [torch.zeros_like(p) for p in parameters]
        losses, norms = [], []
        sample = self.sampler.sample()
        for indices in sample.split(self.physical_batch) if len(sample) else ():
            part = self.gradients(*self.examples.batch(indices))
            for total, more in zip(sums, part.sums, strict=True):
                total += more
            losses.append(part.losses)
            norms += [] if part.norms is None else [part.norms]
        if self.sigma is not None:
            add_noise(sums, self.sigma * self.clip, self.noise)
        for parameter, total in zip(parameters, sums, strict=True):
            parameter.grad = total / self.expected_batch
        self.optimizer.step()
        nothing = sums[0].new_zeros(0)
        return Seen(torch.cat([nothing, *losses]), torch.cat([nothing, *norms]))
