"""A network or a loss by which one example's share depends on the others is refused, however it goes about it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dpvision.privacy.fast import UNTIMED, ClippedSum
from dpvision.privacy.rules import Refused

PIXELS, CLASSES, CLIP = 12, 4, 1.0


class Network(nn.Module):
    """A linear layer and a head; `prepare` changes the inputs, `inside` what lies between the layers."""

    def __init__(
        self, prepare: Callable[[Tensor], Tensor] = lambda x: x, inside: Callable[..., Tensor] = lambda x, h: h
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.prepare, self.inside = prepare, inside
        self.layer, self.head = nn.Linear(PIXELS, 8), nn.Linear(8, CLASSES)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.inside(x, self.layer(self.prepare(x.flatten(1))).tanh()))


def scale_gradient(h: Tensor, factor: Any) -> Tensor:
    if h.requires_grad:
        h.register_hook(lambda g: g * factor)
    return h


def place(x: Tensor) -> Tensor:
    return torch.arange(len(x), dtype=x.dtype).view(-1, 1)


def drop_paths(x: Tensor, h: Tensor) -> Tensor:
    """Leave out examples by coins of its own, which are no dropout of PyTorch's."""
    return h * (torch.rand(len(h), 1) < 0.9)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "a code of the place in the batch": lambda: Network(lambda x: x + (place(x) / 10).sin()),
    "odd and even pairs of places": lambda: Network(lambda x: x + place(x) // 2 % 2),
    "places, behind dropout": lambda: Network(lambda x: F.dropout(x, 0.1) + place(x)),
    "places, with layers dropped by chance": lambda: Network(lambda x: x * torch.empty(len(x), 1).bernoulli_(0.9) + place(x)),
    "divided if anything is above 1": lambda: Network(lambda x: x / 255 if x.max() > 1 else x),
    "shifted if anything is below 0": lambda: Network(lambda x: (x + 1) / 2 if x.min() < 0 else x),
    "a gradient scaled by the inputs' mean": lambda: Network(
        inside=lambda x, h: scale_gradient(h, 1 / (1 + x.detach().abs().mean()))
    ),
    "a gradient divided by the number of examples": lambda: Network(inside=lambda x, h: scale_gradient(h, 1 / len(x))),
    "a gradient divided by the number, behind dropout": lambda: Network(
        inside=lambda x, h: scale_gradient(F.dropout(h, 0.1), 1 / len(x))
    ),
}


def weighted_by_class(outputs: Tensor, labels: Tensor) -> Tensor:
    counts = torch.bincount(labels, minlength=CLASSES).to(outputs)
    weights = torch.where(counts > 0, 1 / counts.clamp(min=1), 0)
    return F.cross_entropy(outputs, labels, weights / weights.sum() * CLASSES, reduction="none")


def divided(outputs: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(outputs, labels, reduction="none") / len(labels)


def weighted_by_place(outputs: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(outputs, labels, reduction="none") * (1 + place(outputs)[:, 0])


def divided_by_largest_target(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs[:, 0] - targets).square() / targets.abs().max()


IN_ORDER = torch.tensor([0] * 8 + [1] * 8)  # of class, as samples of a set that is in order have them
LOSSES: dict[str, tuple[Callable[[], nn.Module], Callable[[Tensor, Tensor], Tensor], Tensor]] = {
    "divided by the number, with dropout": (lambda: Network(lambda x: F.dropout(x, 0.1)), divided, IN_ORDER),
    "divided by the number, with coins of another kind": (lambda: Network(inside=drop_paths), divided, IN_ORDER),
    "weighted by place, with coins of another kind": (lambda: Network(inside=drop_paths), weighted_by_place, IN_ORDER),
    "weighted by class, in order of class": (Network, weighted_by_class, IN_ORDER),
    "weighted by class, all of one": (Network, weighted_by_class, torch.zeros(16, dtype=torch.long)),
    "weighted by class, of one that is not 0": (Network, weighted_by_class, torch.ones(16, dtype=torch.long)),
    "divided by the largest target": (Network, divided_by_largest_target, torch.zeros(16, dtype=torch.float64) + 0.5),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("views", [None, 2])
def test_mixing_network_is_refused(name, views):
    images = torch.rand(16, *[views] * bool(views), 3, 2, 2, dtype=torch.float64)
    with pytest.raises(Refused, match="mixes the examples"):
        ClippedSum(NETWORKS[name](), CLIP, choices=UNTIMED)(images, IN_ORDER)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("views", [None, 2])
def test_mixing_loss_is_refused(name, views):
    make, loss, labels = LOSSES[name]
    images = torch.rand(16, *[views] * bool(views), 3, 2, 2, dtype=torch.float64)
    with pytest.raises(Refused, match="mixes the examples"):
        ClippedSum(make(), CLIP, loss=loss, choices=UNTIMED)(images, labels)


def test_preparing_bytes_by_their_largest_is_refused():
    network = Network(lambda x: (x / 255 if x.max() > 1 else x).double())
    with pytest.raises(Refused, match="depends on the inputs of others"):
        ClippedSum(network, CLIP, choices=UNTIMED)(torch.randint(256, (16, 3, 2, 2)), IN_ORDER)


def test_refusal_says_what_matters():
    images = torch.rand(16, 3, 2, 2, dtype=torch.float64)
    for network, loss, words in (
        (NETWORKS["odd and even pairs of places"](), F.cross_entropy, "loss.*place"),
        (NETWORKS["a gradient scaled by the inputs' mean"](), F.cross_entropy, "gradient.*inputs of others"),
        (Network(), weighted_by_class, "loss.*labels of others"),
    ):
        each = loss if loss is weighted_by_class else lambda outputs, labels: F.cross_entropy(outputs, labels, reduction="none")
        with pytest.raises(Refused, match=words):
            ClippedSum(network, CLIP, loss=each, choices=UNTIMED)(images, IN_ORDER)


class OneClass(nn.Module):
    """A loss with a weight for the class 0 alone: any other label is an error."""

    def forward(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return outputs[:, 0].square() * torch.ones(1, dtype=outputs.dtype)[labels]


@pytest.mark.parametrize(
    ("loss", "labels"),
    [
        pytest.param(OneClass(), torch.zeros(16, dtype=torch.long), id="0 is the only label"),
        pytest.param(
            lambda outputs, labels: F.cross_entropy(outputs, labels - 10, reduction="none"), IN_ORDER + 10, id="from 10 on"
        ),
    ],
)
def test_loss_need_not_know_invented_labels(loss, labels):
    ClippedSum(Network(), CLIP, loss=loss, choices=UNTIMED)(torch.rand(16, 3, 2, 2, dtype=torch.float64), labels)


@pytest.mark.parametrize(
    "prepare", [lambda x: F.dropout(x, 0.1), lambda x: x * (torch.rand(len(x), 1) < 0.9), lambda x: x * torch.rand_like(x)]
)
def test_network_that_tosses_coins_for_each_example_passes(prepare):
    ClippedSum(Network(prepare), CLIP, choices=UNTIMED)(torch.rand(16, 3, 2, 2, dtype=torch.float64), IN_ORDER)


def test_loss_may_write_over_its_outputs():
    loss = lambda outputs, labels: F.cross_entropy(outputs.mul_(0.5), labels, reduction="none")  # noqa: E731
    ClippedSum(Network(inside=drop_paths), CLIP, loss=loss, choices=UNTIMED)(
        torch.rand(16, 3, 2, 2, dtype=torch.float64), IN_ORDER
    )


def test_check_leaves_coins_and_sums_as_they_are():
    images, way = torch.rand(16, 3, 2, 2, dtype=torch.float64), ClippedSum(Network(), CLIP, choices=UNTIMED)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = way(images, IN_ORDER)
    assert torch.equal(torch.get_rng_state(), before)
    unchecked = way.run(images, IN_ORDER, CLIP, UNTIMED)
    assert all(torch.equal(one, other) for one, other in zip(first.sums, unchecked.sums, strict=True))
