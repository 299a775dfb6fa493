"""The clipped sum is the sum of each example's clipped gradient, and no example moves it by more than C."""

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dpvision.privacy import clipping
from dpvision.privacy.clipping import OneAtATime, OpacusHooks, Plain, clip_factors, norms_of
from dpvision.privacy.fast import UNTIMED, ClippedSum

CLIP = 1.0
WAYS = {
    "hooks": OpacusHooks,
    "one": OneAtATime,
    "fast": lambda network, clip: ClippedSum(network, clip, choices=UNTIMED),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def vector(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors]).double()


class Scaled(nn.Module):
    """A network with a parameter that has no dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.head = nn.Parameter(torch.tensor(0.7)), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(x.flatten(1)) * self.scale)


@every_way
def test_a_parameter_without_a_dimension_is_one_number_of_the_norm(way):
    torch.manual_seed(0)
    network, images, labels = Scaled().double(), torch.randn(5, 1, 2, 2, dtype=torch.float64), torch.randint(3, (5,))
    rows = []
    for image, label in zip(images, labels, strict=True):
        loss = cross_entropy(network(image[None]), label[None])
        rows.append(vector(list(torch.autograd.grad(loss, list(network.parameters())))))
    norms = torch.stack(rows).norm(dim=1)
    clip = norms.median().item()
    found = way(network, clip)(images, labels)
    torch.testing.assert_close(found.norms, norms, rtol=0, atol=1e-10)
    expected = sum(row * min(1, clip / norm) for row, norm in zip(rows, norms.tolist(), strict=True))
    torch.testing.assert_close(vector(found.sums), expected, rtol=0, atol=1e-10)


# --- properties that every way of computing the sum must have ---


def is_the_sum_of_clipped_gradients(make: Any, narrow: Any, made_up: Any, one_at_a_time: Any) -> None:
    network, (images, labels) = narrow(), made_up(6)
    images *= torch.tensor([0.001, 0.01, 0.1, 1.0, 3.0, 30.0]).view(-1, 1, 1, 1)  # some below C, some above
    _, norms = one_at_a_time(network, images, labels, CLIP)
    clip = norms.median().item()
    expected, norms = one_at_a_time(network, images, labels, clip)
    found = make(network, clip)(images, labels)
    assert norms.min() < clip < norms.max()
    torch.testing.assert_close(vector(found.sums), expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(found.norms, norms, rtol=0, atol=1e-10)


def no_example_moves_it_by_more_than_c(make: Any, narrow: Any, made_up: Any, one_at_a_time: Any) -> None:
    for dtype in (torch.float32, torch.float64):
        way = make(narrow(dtype=dtype), CLIP)
        images, labels = made_up(9, dtype=dtype)
        images *= torch.tensor([1.0, 0.0, 1e-6, 1e4, 1e15, 1e30, 1.0, 1.0, 1.0], dtype=dtype).view(-1, 1, 1, 1)
        images[6, 0, 0, 0], images[7, 0, 3, 3] = torch.nan, torch.inf
        everybody = vector(way(images, labels).sums)
        assert everybody.isfinite().all()
        for one in range(len(images)):
            others = torch.arange(len(images)) != one
            without = vector(way(images[others], labels[others]).sums)
            assert (everybody - without).norm() <= way.sensitivity * (1 + 1e-6)


def every_example_is_worth_at_most_c(make: Any, narrow: Any, made_up: Any, one_at_a_time: Any) -> None:
    for dtype in (torch.float32, torch.float64):
        way = make(narrow(dtype=dtype), CLIP)
        images, labels = made_up(8, dtype=dtype)
        norms = [vector(way(image[None], label[None]).sums).norm() for image, label in zip(images, labels, strict=True)]
        assert max(norms) <= way.sensitivity
        assert max(norms) > 0.99 * way.sensitivity  # and it is worth that much: gradients here are longer


PROPERTIES = [is_the_sum_of_clipped_gradients, no_example_moves_it_by_more_than_c, every_example_is_worth_at_most_c]


@every_way
@pytest.mark.parametrize("check", PROPERTIES, ids=lambda check: check.__name__)
def test_the_clipped_sum(check, way, narrow, made_up, one_at_a_time):
    check(way, narrow, made_up, one_at_a_time)


# --- the same properties notice what could go wrong ---


def the_sum_clipped(self: OpacusHooks, images: Tensor, labels: Tensor) -> clipping.Gradients:
    """Clip the sum instead of each example's gradient."""
    images = images.detach().requires_grad_()
    losses = cross_entropy(self.module(images), labels, reduction="none")
    losses.sum().backward(inputs=[images])
    sums = [sample.nan_to_num().sum(0) for sample in self._samples()]
    factor = 1 / vector(sums).norm().clamp(min=self.clip)
    return clipping.Gradients([factor * total for total in sums], losses.detach(), losses.detach())


def first_layer_lost(self: OpacusHooks, images: Tensor, labels: Tensor, original: Callable = OpacusHooks.__call__) -> Any:
    found = original(self, images, labels)
    return clipping.Gradients([torch.zeros_like(found.sums[0]), *found.sums[1:]], found.losses, found.norms)


EQUALITY, SENSITIVITY, WORTH = PROPERTIES
BUGS: list[tuple[str, Any, str, Callable, list[Callable]]] = [
    ("no clipping", clipping, "clip_factors", lambda norms, clip, dtype: torch.ones_like(norms, dtype=dtype), PROPERTIES),
    ("half the norm", clipping, "norms_of", lambda samples: norms_of(samples) / 2, PROPERTIES),
    ("a layer left out of the norm", clipping, "norms_of", lambda samples: norms_of(samples[1:]), PROPERTIES),
    (
        "short gradients made longer",
        clipping,
        "clip_factors",
        lambda norms, clip, dtype: (clip / norms * (1 - 1e-5)).to(dtype),
        [EQUALITY],
    ),
    ("the batch's norm", clipping, "norms_of", lambda samples: norms_of(samples).norm().expand(len(samples[0])), [EQUALITY]),
    ("the sum clipped", OpacusHooks, "__call__", the_sum_clipped, [EQUALITY, SENSITIVITY]),
    ("a layer lost", OpacusHooks, "__call__", first_layer_lost, [EQUALITY]),
]


@pytest.mark.parametrize(
    ("owner", "name", "bug", "check"),
    [pytest.param(*bug[1:4], check, id=f"{bug[0]}: {check.__name__}") for bug in BUGS for check in bug[4]],
)
def test_a_planted_bug_is_noticed(owner, name, bug, check, narrow, made_up, one_at_a_time, monkeypatch):
    monkeypatch.setattr(owner, name, bug)
    with pytest.raises(AssertionError):
        check(OpacusHooks, narrow, made_up, one_at_a_time)


# --- every network, every shape, every cut ---


@pytest.mark.parametrize("groups", [1, 4, "channels"])
@pytest.mark.parametrize("order", ["norm-activation", "activation-norm"])
@pytest.mark.parametrize("scale_norm", [False, True], ids=["resnet9", "scaleresnet9"])
@pytest.mark.parametrize("count", [1, 5])
@every_way
def test_every_network_agrees_with_one_example_at_a_time(groups, order, scale_norm, count, way, narrow, made_up, one_at_a_time):
    network = narrow(groups=groups, order=order, scale_norm=scale_norm)
    examples = made_up(count, (1, 16, 16))  # at 8 x 8 the last maps are single pixels, which torch refuses to normalise alone
    expected, norms = one_at_a_time(network, *examples, CLIP)
    found = way(network, CLIP)(*examples)
    torch.testing.assert_close(vector(found.sums), expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(found.norms, norms, rtol=1e-12, atol=0)


@every_way
@settings(max_examples=12, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(8, 19), st.integers(8, 19)),
    cut=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    clip=st.floats(0.01, 100),
)
def test_the_sum_is_the_same_for_any_shape_clip_and_cut_into_physical_batches(
    way, narrow, made_up, one_at_a_time, shape, cut, clip
):
    network, (images, labels) = narrow(channels=shape[0]), made_up(sum(cut), shape)
    expected, _ = one_at_a_time(network, images, labels, clip)
    of_part = way(network, clip)
    parts = [of_part(*part) for part in zip(images.split(cut), labels.split(cut), strict=True)]
    torch.testing.assert_close(sum(vector(part.sums) for part in parts), expected, rtol=0, atol=1e-10 * max(1, clip))
    losses = cross_entropy(network(images), labels, reduction="none")
    torch.testing.assert_close(torch.cat([part.losses for part in parts]), losses.detach())


def test_full_width_in_float32_is_worth_at_most_c_too():
    """A norm summed over a whole layer of this size in float32 is too small by 1e-5 and more."""
    layer = (256, 256, 3, 3)
    samples = torch.stack([torch.randn(layer), torch.full(layer, 0.1), torch.full(layer, 0.3), torch.full(layer, 1 / 3)])
    norms = norms_of([samples])
    torch.testing.assert_close(norms, samples.double().flatten(1).norm(dim=1), rtol=3e-6, atol=0)
    factors = clip_factors(norms, CLIP, torch.float32)
    assert factors.dtype == torch.float32
    assert ((factors[:, None] * samples.flatten(1)).double().norm(dim=1) <= CLIP).all()


def test_gradients_at_most_as_long_as_c_are_left_alone():
    assert clip_factors(torch.tensor([0.0, 1e-30, 0.5, 0.99999]), CLIP, torch.float32).tolist() == [1, 1, 1, 1]


@every_way
def test_examples_that_all_overflow_sum_to_zero(way, narrow, made_up):
    images, labels = made_up(3)
    found = way(narrow(), CLIP)(images * torch.nan, labels)
    assert all((total == 0).all() for total in found.sums)
    assert found.norms.isnan().all()


# --- what it leaves behind, and what it refuses ---


@every_way
def test_nothing_is_left_behind(way, narrow, made_up):
    network = narrow()
    way(network, CLIP)(*made_up(3))
    assert all(p.grad is None and getattr(p, "grad_sample", None) is None for p in network.parameters())
    assert not any(getattr(layer, "activations", None) for layer in network.modules())


@every_way
def test_looking_at_the_network_between_steps_changes_nothing(way, narrow, made_up):
    network, examples = narrow(), made_up(4)
    way = way(network, CLIP)
    before = way(*examples)
    with torch.no_grad():
        network(made_up(7)[0])  # in training mode
        network.eval()
        network(made_up(2)[0])
    network.train()
    after = way(*examples)
    assert torch.equal(vector(before.sums), vector(after.sums))


@every_way
def test_the_networks_own_output_and_state_are_untouched(way, narrow, made_up):
    network, (images, labels) = narrow(), made_up(4)
    plain = copy.deepcopy(network)
    way(network, CLIP)(images, labels)
    assert network.state_dict().keys() == plain.state_dict().keys()
    assert torch.equal(network(images), plain(images))


@pytest.mark.parametrize(
    ("way", "reason"), [(WAYS["hooks"], "BatchNorm2d"), (WAYS["fast"], "batch_norm")], ids=["hooks", "fast"]
)
def test_batch_normalisation_is_refused(way, reason, narrow, made_up):
    with pytest.raises(NotImplementedError, match=reason):
        way(narrow(norm="batch"), CLIP)(*made_up(4, (1, 16, 16)))


class Reused(nn.Module):
    """A network that uses one layer twice, and one weight in two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.other = (nn.Conv2d(2, 2, 3, padding=1, bias=False) for _ in range(2))
        self.other.weight = self.conv.weight
        self.norm = nn.GroupNorm(2, 2)
        self.head = nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.conv(x))
        return self.head(self.norm(x + self.other(torch.tanh(x))).square().mean((2, 3)))


@every_way
def test_shared_layers_and_weights_are_summed_before_they_are_clipped(way, made_up, one_at_a_time):
    network, examples = Reused().double(), made_up(5, (2, 4, 4))
    expected, norms = one_at_a_time(network, *examples, 0.5)
    assert norms.min() > 0.5
    torch.testing.assert_close(vector(way(network, 0.5)(*examples).sums), expected, rtol=0, atol=1e-10)


def test_a_layer_that_writes_over_its_input_is_refused(made_up):
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(72, 3)).double()
    with pytest.raises(RuntimeError, match="modified inplace"):
        OpacusHooks(network, CLIP)(*made_up(2))


def test_a_weight_that_no_known_layer_uses_is_refused_by_name(made_up):
    class Partly(Reused):
        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.conv(x).mean((2, 3)))

    with pytest.raises(NotImplementedError, match=r"^norm\.weight has no per-example gradient"):
        OpacusHooks(Partly().double(), CLIP)(*made_up(2, (2, 4, 4)))


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_without_privacy_it_is_the_gradient_of_the_summed_loss(norm, narrow, made_up):
    network, (images, labels) = narrow(norm=norm), made_up(4)
    found = Plain(network)(images, labels)
    network.zero_grad()
    cross_entropy(network(images), labels, reduction="sum").backward()
    torch.testing.assert_close(vector(found.sums), vector([p.grad for p in network.parameters()]))
    assert found.norms is None
    assert Plain(network).sensitivity == math.inf
