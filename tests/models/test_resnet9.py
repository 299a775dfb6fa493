"""ResNet-9 is the one that was published: its counts, its order of layers, its outputs."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpvision.models.catalogue import MODELS, catalogue, listing
from dpvision.models.count import multiply_adds, parameter_count
from dpvision.models.resnet9.network import ConvBlock, Residual

MODEL = {"family": "resnet9", "scale_norm": False, "norm": "group", "groups": 32, "order": "norm-activation", "width": 1.0}
ORDERS = ["norm-activation", "activation-norm"]


def shake(network: nn.Module) -> nn.Module:
    """Draw other weights than at the start, where normalisations scale by one and shift by nothing."""
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.2)
    return network


# --- counts ---


@pytest.mark.parametrize(
    ("scale_norm", "classes", "count"),
    [(False, 10, 2_447_946), (True, 10, 2_448_714), (False, 200, 2_642_696), (True, 200, 2_643_464)],
)
@pytest.mark.parametrize("norm", ["group", "batch"])
def test_the_number_of_parameters_is_the_published_one(model, scale_norm, classes, norm, count):
    assert parameter_count(model(classes, scale_norm=scale_norm, norm=norm)) == count


@pytest.mark.parametrize("scale_norm", [False, True])
def test_multiply_adds_are_those_of_its_convolutions_and_its_linear_layer(model, scale_norm):
    by_hand = 32**2 * 9 * (3 * 64 + 64 * 128) + 16**2 * 9 * (2 * 128 * 128 + 128 * 256) + 8**2 * 9 * 256 * 256
    by_hand += 4**2 * 9 * 2 * 256 * 256 + 1024 * 10
    assert by_hand == 284_895_232
    assert multiply_adds(model(scale_norm=scale_norm), [3, 32, 32]) == by_hand


def test_counting_leaves_the_network_as_it_was(model):
    network = model(width=0.125).train()
    multiply_adds(network, [3, 32, 32])
    assert network.training
    assert not any(layer._forward_hooks for layer in network.modules())
    assert network(torch.zeros(2, 3, 32, 32)).isfinite().all()


def test_the_catalogue_lists_the_published_counts_and_prints_them():
    rows = catalogue(10, [3, 32, 32])
    counts = {row["model"]: row["parameters"] for row in rows}
    assert set(counts) == set(MODELS)
    assert (counts["resnet9"], counts["scaleresnet9"]) == (2_447_946, 2_448_714)
    lines = [line.split() for line in listing(rows, 10, [3, 32, 32]).splitlines()]
    assert ["scaleresnet9", "2,448,714", "284,895,232"] in lines


# --- layers, in order ---


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (1, {64: 1, 128: 1, 256: 1}),
        (32, {64: 32, 128: 32, 256: 32}),
        (128, {64: 64, 128: 128, 256: 128}),
        (2048, {64: 64, 128: 128, 256: 256}),
        ("channels", {64: 64, 128: 128, 256: 256}),
    ],
)
def test_groups_are_as_many_as_asked_for_but_at_most_one_a_channel(model, groups, expected):
    norms = [layer for layer in model(groups=groups, scale_norm=True).modules() if isinstance(layer, nn.GroupNorm)]
    assert len(norms) == 10
    assert {layer.num_channels: layer.num_groups for layer in norms} == expected


@pytest.mark.parametrize("order", ORDERS)
def test_a_block_is_convolution_then_the_pair_in_its_order_then_pooling(model, order):
    pair = [nn.GroupNorm, nn.Mish] if order == "norm-activation" else [nn.Mish, nn.GroupNorm]
    blocks = [layer for layer in model(order=order).modules() if isinstance(layer, ConvBlock)]
    pooled = [[type(layer) for layer in block] == [nn.Conv2d, *pair, nn.MaxPool2d] for block in blocks]
    plain = [[type(layer) for layer in block] == [nn.Conv2d, *pair] for block in blocks]
    assert pooled == [False, True, False, False, True, True, False, False]
    assert plain == [not pool for pool in pooled]
    assert all(block[0].bias is None and block[0].kernel_size == (3, 3) for block in blocks)


def test_batch_normalisation_takes_the_place_of_group_normalisation(model):
    kinds = {type(layer) for layer in model(norm="batch", scale_norm=True).modules()}
    assert nn.BatchNorm2d in kinds
    assert nn.GroupNorm not in kinds


def test_scale_norm_normalises_the_sum_and_nothing_follows_before_the_next_convolution(model):
    network, seen = model(scale_norm=True, groups=1), []
    for name, layer in network.named_modules():
        if isinstance(layer, (Residual, nn.GroupNorm, nn.Mish, nn.Conv2d, nn.AdaptiveMaxPool2d)):
            layer.register_forward_hook(lambda _, inputs, output, name=name: seen.append((name, inputs[0], output)))
    network(torch.randn(2, 3, 16, 16))
    names = [name for name, *_ in seen]
    for residual, norm, following in [("res1", "scale_norm1", "conv3.0"), ("res2", "scale_norm2", "pool")]:
        at = names.index(norm)
        assert names[at - 1 : at + 2] == [residual, norm, following]
        assert seen[at][1] is seen[at - 1][2]
        assert seen[at + 1][1] is seen[at][2]
        torch.testing.assert_close(seen[at][2].mean((1, 2, 3)), torch.zeros(2), atol=1e-5, rtol=0)
        assert (seen[at][2] < -0.5).any()  # Mish would not let this through


# --- what it computes ---


def reference(x: Tensor, weights: list[Tensor], groups: int, order: str, scale_norm: bool) -> Tensor:
    """Compute Klause et al., appendix C, written down once more as formulas; `weights` are in the order of use."""
    left = iter(weights)

    def norm(x: Tensor) -> Tensor:
        grouped = x.reshape(len(x), groups, -1)
        centred = grouped - grouped.mean(2, keepdim=True)
        scaled = centred / (centred.square().mean(2, keepdim=True) + 1e-5).sqrt()
        return scaled.reshape(x.shape) * next(left).view(1, -1, 1, 1) + next(left).view(1, -1, 1, 1)

    def mish(x: Tensor) -> Tensor:
        return x * torch.tanh(torch.log1p(torch.exp(x)))

    def conv(x: Tensor) -> Tensor:
        x = F.conv2d(x, next(left), padding=1)
        return mish(norm(x)) if order == "norm-activation" else norm(mish(x))

    def halve(x: Tensor) -> Tensor:
        return x.unfold(2, 2, 2).unfold(3, 2, 2).amax((4, 5))

    def residual(x: Tensor) -> Tensor:
        x = x + conv(conv(x))
        return norm(x) if scale_norm else x

    x = residual(halve(conv(conv(x))))
    x = residual(halve(conv(halve(conv(x)))))
    quarters = [q.amax((2, 3)) for rows in x.chunk(2, 2) for q in rows.chunk(2, 3)]
    outputs = torch.stack(quarters, 2).flatten(1) @ next(left).T + next(left)
    assert next(left, None) is None
    return outputs


@pytest.mark.parametrize("scale_norm", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("groups", "width"), [(1, 0.25), (8, 0.25), (32, 1.0)])
def test_outputs_are_those_of_the_formulas(model, scale_norm, order, groups, width):
    network = shake(model(scale_norm=scale_norm, order=order, groups=groups, width=width).double())
    images = torch.randn(3, 3, 32, 32, dtype=torch.float64)
    expected = reference(images, [p.detach() for p in network.parameters()], groups, order, scale_norm)
    torch.testing.assert_close(network(images).detach(), expected, atol=1e-6, rtol=0)
    assert expected.std() > 0.1


@pytest.mark.parametrize("side", [8, 32, 64, 160])
def test_images_of_any_of_the_papers_sizes_pass(model, side):
    assert model(classes=200, width=0.125, groups=4, scale_norm=True)(torch.randn(2, 3, side, side)).shape == (2, 200)


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("scale_norm", [False, True])
def test_an_image_changes_its_own_output_only(model, mode, scale_norm):
    network = getattr(shake(model(width=0.125, groups=4, scale_norm=scale_norm)), mode)()
    images = torch.randn(4, 3, 16, 16)
    before, images[2] = network(images), 100 * torch.randn(3, 16, 16)
    after = network(images)
    assert torch.equal(before[[0, 1, 3]], after[[0, 1, 3]])
    assert not torch.allclose(before[2], after[2])


def test_under_batch_normalisation_an_image_changes_other_outputs_too(model):
    """The test above is able to notice such a change."""
    network = shake(model(width=0.125, norm="batch")).train()
    images = torch.randn(4, 3, 16, 16)
    before, images[2] = network(images), 100 * torch.randn(3, 16, 16)
    assert not torch.allclose(before[0], network(images)[0])


def test_the_seed_decides_the_weights(model):
    def weights(seed: int, **changes: Any) -> Tensor:
        torch.manual_seed(seed)
        return torch.cat([p.detach().flatten() for p in model(width=0.125, groups=4, **changes).parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
    assert torch.equal(weights(1), weights(1, order="activation-norm"))
