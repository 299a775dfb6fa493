"""One step of DP-SGD (Algorithm 1 of De et al. 2022), whole and in order."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dpvision.data.augmentation import Views
from dpvision.data.sampling import PoissonSampler
from dpvision.errors import Interrupted
from dpvision.privacy.clipping import Plain, Way, loss_of, trainable
from dpvision.privacy.fast import Choices, ClippedSum, Kinds
from dpvision.privacy.noise import noise_like
from dpvision.secret import Secret, Source, add_noise
from dpvision.training.devices import ALONE, Devices
from dpvision.training.examples import Examples, pieces
from dpvision.training.leaving import until_asked_to_leave


@dataclass
class Seen:
    """Losses and norms of a step's examples, for the history; not private."""

    losses: Tensor
    norms: Tensor


@dataclass
class Step:
    """A step: sample; make K views of each example, average their gradients, clip; sum over physical batches, with noise
    once; divide by the expected batch, and by C where the recipe says so; update.

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
    noise: Source
    views: Views | None = None  # none: the image as it is
    divide_by_clip: bool = False
    choices: Choices | None = None  # how gradients are clipped; none: by what `earlier` knows, or by timing
    earlier: Callable[[Kinds], Choices] | None = None
    memory_mb: float = math.inf  # for clipping
    devices: Devices = ALONE

    def __post_init__(self) -> None:
        self.parameters = trainable(self.network)
        self.gradients: Way = Plain(self.network)
        if self.sigma is not None:
            self.gradients = ClippedSum(
                self.network,
                self.clip,
                loss=loss_of(self.network),
                choices=self.choices,
                memory_mb=self.memory_mb,
                earlier=self.earlier,
            )
        if any(isinstance(layer, nn.BatchNorm2d) for layer in self.network.modules()):
            self.physical_batch = len(self.examples)  # its statistics are the whole sample's: a cut would change the result

    def __call__(self) -> Seen:
        """Make one step. If it is interrupted, it is as if it had not begun, and the next one is the same step."""
        self.network.train()
        with self._drawing_again_if_interrupted():
            sample = self.sampler.sample()
            # noise once a step; ahead of all else: it needs no memory of its own
            if self.sigma is not None and self.devices.first and isinstance(self.noise, torch.Generator):
                sums = noise_like(self.parameters, self.sigma * self.gradients.sensitivity, self.noise)
            else:
                sums = [torch.zeros_like(p) for p in self.parameters]
            losses, norms = [sums[0].new_zeros(0)], [sums[0].new_zeros(0)]
            for images, labels in until_asked_to_leave(self._physical_batches(sample), self.devices):
                part = self.gradients(images, labels)  # gradients of each example's mean loss over its views, clipped, summed
                torch._foreach_add_(sums, part.sums)
                losses.append(part.losses)
                norms += [] if part.norms is None else [part.norms]
            if self.sigma is not None and isinstance(self.noise, Secret):  # behind all else: it rounds what is released
                add_noise(sums, self.sigma * self.gradients.sensitivity, self.noise)
        self.devices.add_up(sums)
        bound = self.clip if self.divide_by_clip and self.sigma is not None else 1  # equation 3: a rate that C does not change
        torch._foreach_div_(sums, self.expected_batch * bound)
        for parameter, gradient in zip(self.parameters, sums, strict=True):
            parameter.grad = gradient
        self.optimizer.step()
        self.optimizer.zero_grad()
        clipped = 0 if self.sigma is None else len(sample)
        return Seen(self.devices.gather(torch.cat(losses), len(sample)), self.devices.gather(torch.cat(norms), clipped))

    def decide(self) -> None:
        """Decide how gradients are clipped, the first process for all; ahead of a sample, which may have no part for it."""
        if not isinstance(self.gradients, ClippedSum):
            return
        if self.devices.first and not self.gradients.choices:
            self.network.train()
            usual = min(self.physical_batch, math.ceil(self.expected_batch / self.devices.count))
            ((images, labels),) = self.examples.batches([torch.arange(usual)], self.views.margin if self.views else 0)
            if self.views:
                images = self.views.make(images, images.new_zeros(usual, self.views.views, 8))  # each the middle, as it is
            self.gradients(images, labels)
        self.gradients.choices = self.devices.from_first(self.gradients.choices)

    @contextmanager
    def _drawing_again_if_interrupted(self) -> Iterator[None]:
        """Put all random streams of a step that have a state back to where they were if it is given up."""
        sources = [self.sampler.generator, self.noise, *([self.views.generator] if self.views else [])]
        streams = [source for source in sources if isinstance(source, torch.Generator)]
        states = [stream.get_state() for stream in streams]
        try:
            yield
        except Interrupted:
            for stream, state in zip(streams, states, strict=True):
                stream.set_state(state)
            raise

    def _physical_batches(self, sample: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Cut this process's part of a sample into physical batches; views are drawn for the whole sample."""
        cut = pieces(self.devices.share(sample), self.physical_batch)
        if self.views is None:
            yield from self.examples.batches(cut)
            return
        coins = self.devices.share(self.views.draw(len(sample)))
        batches = self.examples.batches(cut, self.views.margin)
        for (images, labels), drawn in zip(batches, pieces(coins, self.physical_batch), strict=True):
            yield self.views.make(images, drawn), labels
