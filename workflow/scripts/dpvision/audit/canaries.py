"""A linear network on images of one white pixel each: every image has a gradient of its own direction, known beforehand.

A canary that is out is a black image, whose gradient is exactly zero: number of examples, q and divisor stay what they are.
So sampler, clipping, sum, noise and divisor of the step are attacked at once, by many canaries, with nothing but data.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from dpvision.audit.subject import Subject
from dpvision.data.augmentation import Views
from dpvision.data.sampling import PoissonSampler
from dpvision.privacy.fast import UNTIMED
from dpvision.training.examples import Examples
from dpvision.training.fit import Training
from dpvision.training.precision import in_precision
from dpvision.training.randomness import stream_seed

SIDE = 28
COUNT = SIDE**2
BRIGHT = 20.0  # of the white pixel, in C: gradients are some 14 C long, and clipped
AT_ONCE = 256  # images that pass at once: the network is so small that Python is what a step takes
MOVE = 2e-3  # of a canary's logits by a step's clipped gradient: they stay near 0


@dataclass
class Seen:
    """Outputs of each canary, [steps, canaries], in C: along its direction, and across it, where there is noise alone."""

    along: np.ndarray
    across: np.ndarray


class Canaries:
    """A subject's step on canaries; `sigma` and `q` take the place of its own, where the design says so."""

    def __init__(self, subject: Subject, sigma: float | None = None, q: float | None = None, count: int = COUNT) -> None:
        training = subject.training
        step = training.step
        assert step.sigma is not None
        device = training.device
        linear = nn.Sequential(nn.Flatten(), nn.Linear(COUNT, 2, bias=False)).to(device)
        self.subject, self.weight = subject, next(linear.parameters())
        self.sigma, self.q = step.sigma if sigma is None else sigma, subject.q if q is None else q
        self.unit = MOVE / (BRIGHT * subject.clip)  # the weights' move by a gradient as long as C
        rate = self.unit * subject.divisor / (1 if step.divide_by_clip else subject.clip)
        bright = BRIGHT * subject.clip
        labels = np.zeros(count, np.int64)
        self.examples = Examples(np.zeros((count, 1, SIDE, SIDE), np.uint8), labels, [0.0], [1 / bright], device)
        views = step.views and Views(0, 0.0, subject.views, False, step.views.generator)  # all alike: a pixel stays where it is
        self.step = replace(
            step,
            network=in_precision(linear, subject.run["recipe"]["precision"]),
            optimizer=torch.optim.SGD(linear.parameters(), lr=rate),
            examples=self.examples,
            sampler=PoissonSampler(count, step.sampler.q if q is None else q, step.sampler.generator),
            sigma=self.sigma,
            views=views,
            choices={**UNTIMED, "images": AT_ONCE},
        )
        self.training = self._training(linear)
        self.beginning = copy.deepcopy(self.training.state())

    def _training(self, network: nn.Module) -> Training:
        """Return the subject's Training with the canaries' step and network in the place of its own.

        What is evaluated and averaged is made from the weights and gives away nothing more, so it costs little here.
        """
        training = copy.copy(self.subject.training)
        training.step, training.network, training.average = self.step, network, None
        training.test = Examples(np.zeros((2, 1, SIDE, SIDE), np.uint8), np.zeros(2, np.int64), [0.0], [1.0], training.device)
        training.validation = training.test if training.validation else None
        return training

    def place(self, inside: np.ndarray, labels: np.ndarray | None = None, pixels: np.ndarray | None = None) -> None:
        """Put canaries in or out; without pixels each has its own."""
        where = np.arange(len(inside)) if pixels is None else pixels
        images = np.zeros((len(inside), COUNT), np.uint8)
        images[np.arange(len(inside)), where] = 255 * inside
        self.examples.images.copy_(torch.as_tensor(images).view_as(self.examples.images))
        if labels is not None:
            self.examples.labels.copy_(torch.as_tensor(labels))

    def begin(self, name: str) -> None:
        """Start all random streams anew, each by its own purpose, and the weights at zero."""
        for purpose, generator in (("sampling", self.step.sampler.generator), ("noise", self.step.noise)):
            if isinstance(generator, torch.Generator):  # secret ones are never the same
                generator.manual_seed(stream_seed(self.subject.run["seed"], f"{purpose} of {name}"))
        self.reset()

    def reset(self) -> None:
        with torch.no_grad():
            self.weight.zero_()

    def moved(self, before: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much the weights moved for each pixel, in C: along the direction of its gradient, and across."""
        sums = (before - self.weight.detach()).double().cpu().numpy() / self.unit
        return (sums[1] - sums[0]) / 2**0.5, (sums[1] + sums[0]) / 2**0.5

    def repeat_step(self, times: int) -> Seen:
        """Make the step again and again, each time from weights of zero, and note what they gave away."""
        seen = []
        for _ in range(times):
            self.reset()
            before = self.weight.detach().clone()
            self.step()
            seen.append(self.moved(before))
        along, across = zip(*seen, strict=True)
        return Seen(np.stack(along), np.stack(across))

    def train(self, name: str | None = None, epochs: int | None = None) -> Seen:
        """Let the Training run its own loop from the beginning, and note what the weights gave away.

        Args:
            name: Starts the random streams. None leaves them as the subject's Training made them.
            epochs: How many epochs to make. None makes all.

        Returns:
            The outputs of all steps that moved the weights.
        """
        training, seen = self.training, []
        training.restore(copy.deepcopy(self.beginning))
        training.ends = self.subject.training.ends[:epochs]
        if name is not None:
            self.begin(name)
        before = self.weight.detach().clone()

        def after_step(_: object) -> None:
            if not torch.equal(before, self.weight):
                seen.append(self.moved(before))
                before.copy_(self.weight.detach())

        training.run(after_step)
        along, across = zip(*seen, strict=True)
        return Seen(np.stack(along), np.stack(across))
