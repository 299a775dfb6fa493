"""The mean gradient of an example's K views is clipped, and one example is worth at most C as before."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dpvision.privacy.clipping import Gradients, OneAtATime, OpacusHooks, Plain
from dpvision.privacy.fast import UNTIMED, ClippedSum
from dpvision.training.precision import in_precision

VIEWS, CLIP = 4, 1.0
WAYS = {
    "hooks": OpacusHooks,
    "one": OneAtATime,
    "fast": lambda network, clip: ClippedSum(network, clip, choices=UNTIMED),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def vector(tensors: Any) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors]).double()


def with_views(made_up: Any, count: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    images, labels = made_up(count * VIEWS, dtype=dtype)
    return images.unflatten(0, (count, VIEWS)), labels[:count]


def mean_gradients(network: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Compute gradients view by view, each by itself, then their mean: examples x parameters."""
    plain = copy.deepcopy(network)
    rows = []
    for example, label in zip(images, labels, strict=True):
        losses = [cross_entropy(plain(view[None]), label[None]) for view in example]
        rows.append(torch.stack([vector(torch.autograd.grad(loss, list(plain.parameters()))) for loss in losses]).mean(0))
    return torch.stack(rows)


# --- properties ---


def is_the_sum_of_clipped_means(make: Any, narrow: Any, made_up: Any) -> None:
    network, (images, labels) = narrow(), with_views(made_up, 5)
    images *= torch.tensor([0.001, 0.1, 1.0, 3.0, 30.0]).view(-1, 1, 1, 1, 1)
    rows = mean_gradients(network, images, labels)
    norms = (rows**2).sum(1).sqrt()
    clip = norms.median().item()
    found = make(network, clip)(images, labels)
    assert norms.min() < clip < norms.max()
    torch.testing.assert_close(found.norms, norms, rtol=0, atol=1e-10)
    torch.testing.assert_close(vector(found.sums), (rows * (clip / norms).clamp(max=1)[:, None]).sum(0), rtol=0, atol=1e-10)
    with torch.no_grad():
        losses = [[cross_entropy(network(v[None]), label[None]) for v in e] for e, label in zip(images, labels, strict=True)]
    torch.testing.assert_close(found.losses, torch.tensor(losses, dtype=torch.float64).mean(1))


def no_example_moves_it_by_more_than_c(
    make: Any, narrow: Any, made_up: Any, precisions: tuple[str, ...] = ("float32", "bfloat16")
) -> None:
    for dtype, precision in [(torch.float64, "float32"), *((torch.float32, precision) for precision in precisions)]:
        way = make(in_precision(narrow(dtype=dtype), precision), CLIP)
        images, labels = with_views(made_up, 7, dtype)
        images *= torch.tensor([1.0, 0.0, 1e-6, 1e4, 1e30, 1.0, 1.0], dtype=dtype).view(-1, 1, 1, 1, 1)
        images[5, 2, 0, 0, 0], images[1] = torch.nan, images[0]
        images[6] = images[6, 0]  # one image K times: the mean of its gradients is as long as each
        everybody = vector(way(images, labels).sums)
        assert everybody.isfinite().all()
        for one in range(len(images)):
            others = torch.arange(len(images)) != one
            assert (everybody - vector(way(images[others], labels[others]).sums)).norm() <= CLIP * (1 + 1e-6)


EQUALITY, SENSITIVITY = PROPERTIES = [is_the_sum_of_clipped_means, no_example_moves_it_by_more_than_c]


@every_way
@pytest.mark.parametrize("check", PROPERTIES, ids=lambda check: check.__name__)
def test_the_clipped_sum_of_views(check, way, narrow, made_up):
    check(way, narrow, made_up)


# --- the same properties notice what could go wrong ---


def views_clipped_apart(divisor: int) -> Callable:
    def bug(self: OpacusHooks, images: Tensor, labels: Tensor) -> Gradients:
        found = hooks_call(self, images.flatten(0, 1), labels.repeat_interleave(VIEWS))
        per_example = [of_views.view(-1, VIEWS).mean(1) for of_views in (found.losses, found.norms)]
        return Gradients([total / divisor for total in found.sums], *per_example)

    return bug


def gathered(how: Callable[[Tensor, int], Tensor]) -> Callable:
    """Return a bug that puts the hooks' gradients, one a view, together in another way."""

    def bug(self: OpacusHooks, views: int) -> list[Tensor]:
        return [how(sample, views) for sample in hooks_samples(self)]

    return bug


hooks_call, hooks_samples = OpacusHooks.__call__, OpacusHooks._samples

BUGS: list[tuple[str, str, Callable, list[Callable]]] = [
    ("views clipped apart and then summed", "__call__", views_clipped_apart(1), PROPERTIES),
    ("views clipped apart and then averaged", "__call__", views_clipped_apart(VIEWS), [EQUALITY]),
    ("each view summed over the examples", "_samples", gathered(lambda s, k: s.unflatten(0, (-1, k)).sum(0)), PROPERTIES),
    ("divided by K twice", "_samples", gathered(lambda s, k: s.unflatten(0, (-1, k)).mean(1)), [EQUALITY]),
    ("views of other examples", "_samples", gathered(lambda s, k: s.unflatten(0, (k, -1)).sum(0)), [EQUALITY]),
    ("the first view alone", "_samples", gathered(lambda s, k: k * s[::k]), [EQUALITY]),
]


@pytest.mark.parametrize(
    ("name", "bug", "check"),
    [pytest.param(*bug[1:3], check, id=f"{bug[0]}: {check.__name__}") for bug in BUGS for check in bug[3]],
)
def test_a_planted_bug_is_noticed(name, bug, check, narrow, made_up, monkeypatch):
    monkeypatch.setattr(OpacusHooks, name, bug)
    with pytest.raises(AssertionError):
        check(OpacusHooks, narrow, made_up)


# --- the rest ---


@every_way
def test_one_view_is_the_image(way, narrow, made_up):
    network, (images, labels) = narrow(), made_up(5)
    way = way(network, CLIP)
    plain, one = way(images, labels), way(images[:, None], labels)
    assert torch.equal(vector(one.sums), vector(plain.sums))
    assert torch.equal(one.norms, plain.norms)
    assert torch.equal(one.losses, plain.losses)


def test_without_privacy_it_is_the_sum_of_mean_gradients(narrow, made_up):
    network, (images, labels) = narrow(), with_views(made_up, 3)
    found = Plain(network)(images, labels)
    torch.testing.assert_close(vector(found.sums), mean_gradients(network, images, labels).sum(0), rtol=0, atol=1e-10)
    assert found.losses.shape == (3,)


@pytest.mark.parametrize(
    "way", [Plain, *(lambda network, way=way: way(network, 1e9) for way in WAYS.values())], ids=["plain", *WAYS]
)
def test_in_bfloat16_the_gradient_is_nearly_the_same_and_its_sums_and_norms_are_finer(way, narrow, made_up):
    network, (images, labels) = narrow(dtype=torch.float32), with_views(made_up, 6, torch.float32)
    expected = mean_gradients(network.double(), images.double(), labels)
    found = way(in_precision(network.float(), "bfloat16"))(images, labels)
    assert {total.dtype for total in (*found.sums, found.losses)} == {torch.float32}
    error = (vector(found.sums) - expected.sum(0)).norm() / expected.sum(0).norm()
    assert 1e-4 < error < 0.1  # less, and it would not be bfloat16
    assert not torch.equal(vector(found.sums), vector([total.bfloat16() for total in found.sums]))
    if found.norms is not None:
        torch.testing.assert_close(found.norms, expected.norm(dim=1), rtol=0.1, atol=0)


@every_way
def test_in_bfloat16_what_is_summed_is_what_was_measured(way, narrow, made_up):
    """The norm is that of the very gradient that is clipped: each example alone is worth exactly C, or its own norm."""
    way = way(in_precision(narrow(dtype=torch.float32), "bfloat16"), CLIP)
    images, labels = with_views(made_up, 8, torch.float32)
    images *= torch.logspace(-3, 1, 8).view(-1, 1, 1, 1, 1)
    for image, label in zip(images, labels, strict=True):
        found = way(image[None], label[None])
        assert vector(found.sums).norm() == pytest.approx(min(CLIP, found.norms.item()), rel=1e-5)
        assert vector(found.sums).norm() <= CLIP
