"""One step of DP-SGD (Algorithm 1 of De et al. 2022), whole and in order."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dpvision.data.augmentation import Views
from dpvision.data.sampling import PoissonSampler
from dpvision.privacy.clipping import Plain, Way, trainable
from dpvision.privacy.fast import Choices, Fast
from dpvision.privacy.noise import noise_like
from dpvision.training.devices import ALONE, Devices
from dpvision.training.examples import Examples, pieces
from dpvision.training.leaving import Left, Told, stay


@dataclass
class Seen:
    """What a step saw, for the history; not private."""

    losses: Tensor
    norms: Tensor


@dataclass
class Step:
    """Sample; make K views of each example, average their gradients, clip; sum over physical batches, with noise once;
    divide by the expected batch; update.

    The divisor is the expected batch, a constant: the size of the sample itself depends on who is in the data.
    An empty sample is a step like any other: noise alone.
    """

    network: nn.Module
    optimizer: torch.optim.Optimizer
    examples: Examples
    sampler: PoissonSampler
    expected_batch: float
    physical_batch: int
    clip: float
    sigma: float | None  # none: not private, neither clipped nor noisy
    noise: torch.Generator
    views: Views | None = None  # none: the image as it is
    choices: Choices | None = None  # how gradients are clipped; none: by timing
    memory_mb: float = math.inf  # for clipping
    devices: Devices = ALONE

    def __post_init__(self) -> None:
        self.parameters = trainable(self.network)
        self.gradients: Way = Plain(self.network)
        if self.sigma is not None:
            self.gradients = Fast(self.network, self.clip, self.choices, self.memory_mb)
        if any(isinstance(layer, nn.BatchNorm2d) for layer in self.network.modules()):
            self.physical_batch = len(self.examples)  # its statistics are the whole sample's: a cut would change the result

    def __call__(self, told: Told = stay) -> Seen:
        """Told to leave, it is as if it had not begun, and the next one is the same step."""
        self.network.train()
        drawn = [stream.get_state() for stream in self._streams()]
        sample = self.sampler.sample()
        sums = self._beginning()
        losses, norms = [sums[0].new_zeros(0)], [sums[0].new_zeros(0)]
        left = False
        for images, labels in self._physical_batches(sample):
            if left := told():
                break
            part = self.gradients(images, labels)  # of each example's mean loss over its views, clipped, summed
            torch._foreach_add_(sums, part.sums)
            losses.append(part.losses)
            norms += [] if part.norms is None else [part.norms]
        if any(self.devices.largest(left)):
            for stream, state in zip(self._streams(), drawn, strict=True):
                stream.set_state(state)
            raise Left
        self.devices.add_up(sums)
        torch._foreach_div_(sums, self.expected_batch)
        for parameter, gradient in zip(self.parameters, sums, strict=True):
            parameter.grad = gradient
        self.optimizer.step()
        self.optimizer.zero_grad()
        clipped = 0 if self.sigma is None else len(sample)
        return Seen(self.devices.gather(torch.cat(losses), len(sample)), self.devices.gather(torch.cat(norms), clipped))

    def decide(self) -> None:
        """How gradients are clipped, by the first process for all; ahead of a sample, which may have no part for it."""
        if not isinstance(self.gradients, Fast):
            return
        if self.devices.first and not self.gradients.choices:
            self.network.train()
            usual = min(self.physical_batch, math.ceil(self.expected_batch / self.devices.count))
            images, labels = self.examples.batch(torch.arange(usual))
            if self.views:
                images = images[:, None].expand(-1, self.views.views, -1, -1, -1)
            self.gradients(images, labels)
        self.gradients.choices = self.devices.from_first(self.gradients.choices)

    def _streams(self) -> list[torch.Generator]:
        """All randomness of a step."""
        return [self.sampler.generator, self.noise, *([self.views.generator] if self.views else [])]

    def _beginning(self) -> list[Tensor]:
        """What the sums begin as: the step's noise, so that it needs no memory of its own; the first process's alone."""
        if self.sigma is None or not self.devices.first:
            return [torch.zeros_like(p) for p in self.parameters]
        return noise_like(self.parameters, self.sigma * self.clip, self.noise)

    def _physical_batches(self, sample: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Of this process's part of a sample; views are drawn for the whole of it."""
        cut = pieces(self.devices.share(sample), self.physical_batch)
        if self.views is None:
            yield from map(self.examples.batch, cut)
            return
        coins = self.devices.share(self.views.draw(len(sample)))
        for indices, drawn in zip(cut, pieces(coins, self.physical_batch), strict=True):
            images, labels = self.examples.batch(indices)
            yield self.views.make(images, drawn), labels
