"""NF-ResNets are those of DeepMind's code: counts, what they compute, the variance that they promise, gradients."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpvision.models.catalogue import MODELS
from dpvision.models.count import parameter_count
from dpvision.models.layers import StandardizedConv2d
from dpvision.models.nf_resnet.options import DEPTHS, Options
from dpvision.models.norm_free import ACTIVATIONS
from dpvision.training.parts import freeze

MODEL: dict[str, Any] = {"family": "nf_resnet", "depth": 14, "width": 1 / 8, "skip_gain": 1.0}


def shake(network: nn.Module) -> nn.Module:
    """Move weights from where they start: there biases are 0, gains 1."""
    for parameter in network.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return network


# --- counts ---


@pytest.mark.parametrize(
    ("depth", "classes", "count"),
    [
        (50, 1000, 25_557_048),
        (50, 365, 24_255_933),
        (101, 1000, 44_549_193),
        (152, 1000, 60_192_858),
        (200, 1000, 64_673_898),
    ],
)
def test_the_number_of_parameters_is_that_of_deepmind(model, depth, classes, count):
    with torch.device("meta"):
        network = model(classes, depth=depth, width=1.0)
    assert parameter_count(network) == count
    assert sum(parameter.dim() == 0 for parameter in network.parameters()) == sum(DEPTHS[depth])  # skip gains


def test_every_convolution_is_standardised_and_has_a_gain_and_a_bias(model):
    with torch.device("meta"):
        network = model(depth=50, width=1.0)
    convs = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    assert len(convs) == 53
    assert all(isinstance(conv, StandardizedConv2d) and conv.bias is not None for conv in convs)


def test_names_and_widths():
    networks = [MODELS[name] for name in ("nf_resnet50", "nf_resnet101", "nf_resnet152", "nf_resnet200")]
    assert [network.slug() for network in networks] == ["nf-resnet50", "nf-resnet101", "nf-resnet152", "nf-resnet200"]
    assert Options(family="nf_resnet", label="NF", depth=14, width=1 / 8).as_spec({"label"}) == MODEL
    assert not list(networks[0].faults(private=True))
    ((key, fault),) = Options(family="nf_resnet", label="NF", width=0.3).faults(private=True)
    assert (key, "multiple of 1/64" in fault) == ("width", True)


# --- what it computes, written down once more ---


def around(x: Tensor, kernel: int, stride: int, value: float) -> Tensor:
    """Pad as XLA's SAME: as many windows as ceil(side / stride), what is odd behind."""
    sides = []
    for side in (x.shape[3], x.shape[2]):
        total = max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
        sides += [total // 2, total - total // 2]
    return F.pad(x, sides, value=value)


def reference(x: Tensor, weights: list[Tensor], depths: tuple[int, ...]) -> Tensor:
    """Compute the network by the definition; `weights` in the order in which the network names them."""
    left = iter(weights)

    def taken() -> list[Tensor]:
        return [next(left) for _ in range(3)]

    def conv(x: Tensor, of: list[Tensor], stride: int = 1) -> Tensor:
        weight, bias, gain = of
        rows = weight.flatten(1)
        scale = gain / torch.sqrt(torch.clamp(rows.var(1, unbiased=False) * rows.shape[1], min=1e-4))
        standard = ((rows - rows.mean(1, keepdim=True)) * scale[:, None]).view_as(weight)
        return F.conv2d(around(x, weight.shape[-1], stride, 0.0), standard, bias, stride)

    def active(x: Tensor) -> Tensor:
        return 1.7139588594436646 * x.clamp(min=0)

    x = F.max_pool2d(around(conv(x, taken(), 2), 3, 2, -math.inf), 3, 2)
    expected = 1.0
    for stage, blocks in enumerate(depths):
        for number in range(blocks):
            skip_gain = next(left)
            stride = 2 if stage and number == 0 else 1
            first, second, third = taken(), taken(), taken()
            out = active(x) / expected
            shortcut = conv(out, taken(), stride) if number == 0 else x
            out = conv(active(conv(active(conv(out, first)), second, stride)), third)
            x = 0.2 * (skip_gain * out) + shortcut
            if number == 0:
                expected = 1.0
            expected = (expected**2 + 0.2**2) ** 0.5
    weight, bias = next(left), next(left)
    assert next(left, None) is None
    return active(x).mean((2, 3)) @ weight.T + bias


@pytest.mark.parametrize("sides", [(32, 32), (33, 47), (8, 9)])
@pytest.mark.parametrize("depths", [(1, 1, 1, 1), (2, 1, 3, 1)], ids=str)
def test_outputs_are_those_of_the_definition(model, monkeypatch, depths, sides):
    monkeypatch.setitem(DEPTHS, 14, depths)
    network = shake(model().double())
    images = torch.randn(2, 3, *sides, dtype=torch.float64)
    expected = reference(images, list(network.parameters()), depths)
    torch.testing.assert_close(network(images), expected, rtol=1e-10, atol=1e-10)
    assert expected.std() > 0.1


def test_a_skip_gain_of_0_leaves_the_shortcuts_alone(model):
    network = model(skip_gain=0.0)
    images = torch.randn(2, 3, 32, 32)
    before = network(images)
    for block in network.blocks:
        for parameter in block.path.parameters():
            nn.init.normal_(parameter)
    assert torch.equal(network(images), before)
    assert not torch.allclose(model(skip_gain=1.0)(images), before)


# --- the variance at the start ---


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_a_scaled_activation_of_a_normal_input_has_variance_1(kind):
    function, gamma = ACTIVATIONS[kind]
    x, weights = np.polynomial.hermite_e.hermegauss(200)
    values, weights = gamma * function(torch.from_numpy(x)).numpy(), weights / weights.sum()
    mean = (weights * values).sum()
    assert (weights * (values - mean) ** 2).sum() == pytest.approx(1, abs=2e-3)


def test_the_variance_of_activations_is_the_one_that_the_design_promises(model):
    """It grows by α² a block, and begins anew in the first block of each stage."""
    network, seen = model(depth=50, width=1 / 4), []
    for block in network.blocks:
        block.register_forward_hook(lambda layer, inputs, output: seen.append(output.var((0, 2, 3)).mean().item()))
    with torch.no_grad():
        network(torch.randn(8, 3, 128, 128))
    expected = [1 + 0.04 * (number + 1) for blocks in DEPTHS[50] for number in range(blocks)]
    assert seen == pytest.approx(expected, rel=0.1)
    factors = [block.activation.factor / 1.7139588594436646 for block in network.blocks]
    assert factors == pytest.approx([1.0] + [variance**-0.5 for variance in expected[:-1]])


def test_weights_start_as_in_deepminds_code(model):
    network = model(1000, width=1.0)
    convs = [layer for layer in network.modules() if isinstance(layer, StandardizedConv2d)]
    assert all((conv.gain == 1).all() and not conv.bias.any() for conv in convs)
    large = max(convs, key=lambda conv: conv.weight.numel()).weight
    assert large.std().item() == pytest.approx(large[0].numel() ** -0.5, rel=0.01)
    assert network.classifier.weight.std().item() == pytest.approx(0.01, rel=0.01)
    assert not network.classifier.bias.any()


# --- gradients ---


@pytest.mark.parametrize("train", ["all", "norms"])
def test_clipped_gradients_are_those_of_one_example_at_a_time(model, train, clips_each_example):
    network = shake(model(3).double())
    if train == "norms":
        freeze(network, "norms")
        trained = {name.rsplit(".", 1)[1] for name, p in network.blocks.named_parameters() if p.requires_grad}
        assert trained == {"skip_gain", "gain", "bias"}
    images, labels = torch.randn(4, 3, 20, 20, dtype=torch.float64), torch.tensor([0, 1, 2, 1])
    clips_each_example(network, images, labels)
