"""A neighbour replayed: the same step with one example more, with next to no noise, through a network as it is.

What the weights then differ by is what the example adds, exactly. It is as long as C: longer, and the noise is too little for
it; shorter, and the noise is more than the claim needs. The example's own gradient is ten times as long as C.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dpvision.audit.subject import Subject
from dpvision.data.augmentation import Views
from dpvision.data.sampling import PoissonSampler
from dpvision.privacy.clipping import losses_of, trainable
from dpvision.privacy.fast import UNTIMED, Choices
from dpvision.secret import Secret
from dpvision.training.examples import Examples
from dpvision.training.precision import in_precision
from dpvision.training.step import Step

OTHERS, NEIGHBOURS = 5, 2
LONGER = 10  # times C, is the shortest gradient of all
RATE = 2.0**20  # so large that the rounding of the weights themselves is nothing beside a step
TINY, NEVER = 1e-9, 1e-12
TWO_AT_ONCE = {"workers": 2, "images": 2, "memory_format": "channels last"}
WAYS: list[dict[str, Any]] = [  # physical batches and divisors: a divisor that looks at the sample shows in one of them
    {"physical_batch": 1, "expected_batch": 2.0, "choices": {}},
    {"physical_batch": 64, "expected_batch": 16.0, "choices": TWO_AT_ONCE},
]


class TiedAndFrozen(nn.Module):
    """A network that no family has and somebody's may be like: weights that are used twice, and a part that is not trained."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, 8, 3, padding=1).requires_grad_(False)
        self.body, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8)
        self.mix, self.head = nn.Linear(8, 8), nn.Linear(8, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        for _ in range(2):
            x = self.norm(self.body(x)).relu()
        x = x.mean((2, 3))
        for _ in range(2):
            x = self.mix(x).relu() + x
        out: Tensor = self.head(x)
        return out


@dataclass
class Replayed:
    """The effect of a neighbour."""

    longest: float
    """Longest difference that it makes, in C."""
    shortest: float
    divided: float
    """Noise in the weights with it over that without it, where that is farthest from 1."""
    moved: list[str]
    """Names of tensors that moved, of those that are not trained."""


class Bench:
    """A subject's step on a network and made-up examples; its weights go back to where they were."""

    def __init__(self, subject: Subject, network: nn.Module, views: int) -> None:
        data = subject.run["data"]
        device = subject.training.device
        random = np.random.default_rng(0)
        count = OTHERS + NEIGHBOURS
        images = random.integers(0, 256, (count, *data["shape"]), dtype=np.uint8)
        images[-1] = 255  # all white: an outlier
        labels = random.integers(0, data["classes"], count)
        self.network = copy.deepcopy(network).to(device).train()
        for layer in self.network.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = 0.0  # the worlds differ by one example, and by no coins
        self.start = copy.deepcopy(self.network.state_dict())
        self.whole = Examples(images, labels, data["mean"], data["std"], device)
        self.stream, self.of_noise = torch.Generator(device), torch.Generator(device)
        self.own = subject.training.noise
        self.trained = [name for name, p in self.network.named_parameters() if p.requires_grad]
        lowered = in_precision(self.network, subject.run["recipe"]["precision"])
        self.step: Step = replace(
            subject.training.step,
            network=lowered,
            optimizer=torch.optim.SGD(self.network.parameters(), lr=RATE),
            clip=self._least_norm(lowered) / LONGER,
            sigma=TINY,
            noise=self.of_noise,
            views=Views(1, 0.0, views, False, self.stream) if views > 1 else None,
        )

    def _least_norm(self, network: nn.Module) -> float:
        """Return how long the shortest gradient of an example is, by PyTorch's own."""
        norms = []
        for i in range(len(self.whole)):
            images, labels = self.whole.batch(slice(i, i + 1))
            if not self.whole.are_features:  # twice: PyTorch refuses to normalise one image of one pixel
                images = images[:, None].expand(-1, 2, -1, -1, -1)
            gradients = torch.autograd.grad(losses_of(network, images, labels).sum(), trainable(network), allow_unused=True)
            norms.append(torch.stack([g.double().norm() for g in gradients if g is not None]).norm().item())
        return min(norms)

    def update(self, who: list[int], q: float = 1.0, seed: int = 0) -> dict[str, Tensor]:
        """Make one step from the start, of these examples; return what it took from all that the network holds, in C."""
        self.network.load_state_dict(self.start)
        device = self.whole.images.device
        data = copy.copy(self.whole)
        data.images, data.labels = (t[torch.tensor(who, device=device)] for t in (data.images, data.labels))
        self.step.examples = data
        self.step.sampler = PoissonSampler(len(who), q, torch.Generator().manual_seed(seed))
        self.of_noise.manual_seed(seed)
        self.stream.manual_seed(seed)
        self.step()
        bound = 1 if self.step.divide_by_clip else self.step.clip
        scale = self.step.expected_batch / (RATE * bound)
        after = self.network.state_dict()
        return {name: (before.double() - after[name].double()) * scale for name, before in self.start.items()}

    def replayed(self, clipping: Choices | None = None) -> Replayed:
        """Replay each neighbour in all ways; where a training's own choices are known, by these as well."""
        lengths, ratios, moved = [], [], set[str]()
        for way in [*WAYS, *([{**WAYS[-1], "choices": clipping}] if clipping else [])]:
            self.step.physical_batch, self.step.expected_batch = way["physical_batch"], way["expected_batch"]
            self.step.gradients.choices = {**UNTIMED, **way["choices"]}  # type: ignore[attr-defined]
            others = list(range(OTHERS))
            out = self.update(others)
            for neighbour in range(OTHERS, OTHERS + NEIGHBOURS):
                inside = self.update([*others, neighbour])
                lengths.append(_norm([inside[name] - out[name] for name in out]))
                ratios.append(self._of_noise([*others, neighbour], inside) / max(self._of_noise(others, out), TINY))
                moved |= {name for name in out if name not in self.trained and (inside[name].any() or out[name].any())}
        return Replayed(max(lengths), min(lengths), max(ratios, key=lambda ratio: abs(ratio - 1)), sorted(moved))

    def _of_noise(self, who: list[int], quiet: dict[str, Tensor]) -> float:
        """Return how far the same noise moves the weights, beside these examples, whose step without noise is known."""
        self.step.sigma = 1.0
        noisy = self.update(who)
        self.step.sigma = TINY
        return _norm([noisy[name] - quiet[name] for name in quiet])

    def noise(self, sigma: float, steps: int) -> list[dict[str, Tensor]]:
        """Return what steps of nobody took from each trained parameter, in σ C: noise alone, secret where the subject's is."""
        self.step.sigma, quiet = sigma, self.step.sigma
        if isinstance(self.own, Secret):
            self.step.noise = self.own
        found = [self.update([0], NEVER, seed) for seed in range(1, 1 + steps)]
        self.step.sigma, self.step.noise = quiet, self.of_noise
        return [{name: one[name].flatten() / sigma for name in self.trained} for one in found]


def _norm(tensors: list[Tensor]) -> float:
    return torch.stack([t.norm() for t in tensors]).norm().item()


def benches(subject: Subject, network: nn.Module) -> Iterator[tuple[int, Bench]]:
    """Yield a bench for one view and for several, which features have not."""
    several = {4, subject.views} if len(subject.run["data"]["shape"]) > 1 else set()
    for views in sorted({1, *several}):
        yield views, Bench(subject, network, views)
