"""A step is Algorithm 1 of De et al., worked out by hand: two examples of two views each, one at a time, in plain numbers."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpvision.privacy.fast import UNTIMED
from dpvision.training.examples import Examples
from dpvision.training.step import Step

RATE, BATCH, CLIP, SIGMA = 0.5, 4, 0.3, 1.5
VIEWS = [[(3.0, 1.0), (1.0, -1.0)], [(0.02, 0.01), (-0.01, 0.05)]]  # of two pixels; only the first example is clipped
LABELS = [1, 0]
START = [[0.1, -0.2], [0.3, 0.4]]  # weights by class


class Given:
    """Gives the views of VIEWS in the order of the sample, instead of random ones."""

    views, margin, generator = 2, 0, torch.Generator()

    def draw(self, examples: int) -> Tensor:
        return torch.arange(examples)

    def make(self, images: Tensor, drawn: Tensor) -> Tensor:
        return torch.tensor(VIEWS, dtype=torch.float64)[drawn].view(len(drawn), 2, 1, 1, 2)


def gradient(pixels: tuple[float, float], label: int) -> list[float]:
    """Return the gradient of the cross-entropy of a linear network: of each class and pixel."""
    scores = [sum(w * p for w, p in zip(row, pixels, strict=True)) for row in START]
    total = sum(map(math.exp, scores))
    return [(math.exp(s) / total - (i == label)) * p for i, s in enumerate(scores) for p in pixels]


def by_hand(noise: list[float]) -> list[float]:
    """Return the weights after the step, line by line as in print; the noise is of the standard deviation 1."""
    total = [0.0] * 4
    for views, label in zip(VIEWS, LABELS, strict=True):
        mean = [sum(of) / 2 for of in zip(*(gradient(view, label) for view in views), strict=True)]
        norm = math.sqrt(sum(g * g for g in mean))
        total = [t + min(1, CLIP / norm) * g / CLIP for t, g in zip(total, mean, strict=True)]
    noisy = [(t + SIGMA * xi) / BATCH for t, xi in zip(total, noise, strict=True)]
    return [w - RATE * g for w, g in zip([w for row in START for w in row], noisy, strict=True)]


def linear() -> nn.Module:
    network = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False)).double()
    network[1].weight.data = torch.tensor(START, dtype=torch.float64)
    return network


@pytest.mark.parametrize("physical_batch", [1, 2], ids=["two micro-batches", "one batch"])
def test_a_step_is_the_algorithm_worked_out_by_hand(physical_batch):
    network, noise = linear(), torch.Generator().manual_seed(5)
    xi = torch.empty(4, dtype=torch.float64).normal_(0, 1, generator=torch.Generator().manual_seed(5)).tolist()
    images: Any = np.zeros((2, 1, 1, 2), dtype=np.uint8)
    step = Step(
        network,
        torch.optim.SGD(network.parameters(), lr=RATE),
        Examples(images, np.array(LABELS), [0.0], [1.0], torch.device("cpu")),
        sampler=SimpleNamespace(sample=lambda: torch.tensor([0, 1]), generator=torch.Generator()),  # type: ignore[arg-type]
        expected_batch=BATCH,
        physical_batch=physical_batch,
        clip=CLIP,
        sigma=SIGMA,
        noise=noise,
        views=Given(),  # type: ignore[arg-type]
        divide_by_clip=True,
        choices=UNTIMED,
    )
    seen = step()
    assert network[1].weight.flatten().tolist() == pytest.approx(by_hand(xi), abs=1e-12)
    assert [norm > CLIP for norm in seen.norms.tolist()] == [True, False]


def test_by_hand_the_views_are_averaged_before_they_are_clipped_and_not_after():
    """The example would come out otherwise: the two gradients of the first example do not point one way."""
    first, second = (gradient(view, LABELS[0]) for view in VIEWS[0])
    clipped_first = [[min(1, CLIP / math.hypot(*g)) * x for x in g] for g in (first, second)]
    mean = [sum(of) / 2 for of in zip(first, second, strict=True)]
    clipped_last = [min(1, CLIP / math.hypot(*mean)) * x for x in mean]
    assert max(abs(sum(of) / 2 - x) for of, x in zip(zip(*clipped_first, strict=True), clipped_last, strict=True)) > 0.01
