"""ResNet-50 is torchvision's with group normalisation; ScaleNorm stands between addition and activation."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from dpvision.models.catalogue import MODELS
from dpvision.models.count import multiply_adds, parameter_count
from dpvision.models.resnet50.network import Bottleneck
from dpvision.models.resnet50.options import Options
from dpvision.vision import torchvision

MODEL = {"family": "resnet50", "scale_norm": False, "groups": 32, "activation": "mish", "width": 1.0}
ACTIVATIONS = {"mish": nn.Mish, "relu": nn.ReLU}


def of_torchvision(activation: str, classes: int = 10, groups: int = 32) -> nn.Module:
    network = torchvision.models.resnet50(
        num_classes=classes, norm_layer=lambda channels: nn.GroupNorm(min(groups, channels), channels)
    )
    for module in network.modules():
        if hasattr(module, "relu"):
            module.relu = ACTIVATIONS[activation]()
    return network


# --- counts ---


@pytest.mark.parametrize(("scale_norm", "count"), [(False, 23_528_522), (True, 23_558_730)])
def test_the_number_of_parameters_is_that_of_torchvision_and_one_norm_a_block_more(model, scale_norm, count):
    with torch.device("meta"):
        assert parameter_count(model(scale_norm=scale_norm)) == count


def test_multiply_adds_are_those_of_torchvision(model):
    with torch.device("meta"):
        ours, theirs = model(), of_torchvision("mish")
    for shape in ([3, 160, 160], [3, 33, 47]):
        assert multiply_adds(ours, shape) == multiply_adds(theirs, shape)


def test_what_the_configuration_says_by_default_is_as_in_the_authors_code(model):
    assert Options(family="resnet50", label="ResNet-50").model_dump(exclude={"label"}) == MODEL
    assert [MODELS[name].slug() for name in ("resnet50", "scaleresnet50")] == ["resnet50", "scaleresnet50"]


# --- what it computes ---


@pytest.mark.parametrize("activation", ["mish", "relu"])
def test_with_torchvision_s_weights_its_outputs_are_torchvision_s(model, activation):
    ours, theirs = model(activation=activation).double(), of_torchvision(activation).double()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.1 if parameter.dim() > 1 else 1.0)
    ours.load_state_dict(dict(zip(ours.state_dict(), theirs.state_dict().values(), strict=True)))
    images = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    expected = theirs(images).detach()
    assert expected.std() > 0.1
    torch.testing.assert_close(ours(images).detach(), expected, atol=1e-10, rtol=0)


def test_weights_at_the_start_are_drawn_as_torchvision_s(model):
    network = model()
    for conv in (layer for layer in network.modules() if isinstance(layer, nn.Conv2d)):
        assert conv.bias is None
        fan_out = conv.weight.numel() / conv.weight.shape[1]
        assert conv.weight.std().item() * (fan_out / 2) ** 0.5 == pytest.approx(1, abs=5 / (2 * conv.weight.numel()) ** 0.5)
    for norm in (layer for layer in network.modules() if isinstance(layer, nn.GroupNorm)):
        assert (norm.weight == 1).all() and (norm.bias == 0).all()


@pytest.mark.parametrize(
    ("groups", "expected"), [(32, {64: 32, 256: 32}), (128, {64: 64, 256: 128}), ("channels", {64: 64, 256: 256})]
)
def test_groups_are_as_many_as_asked_for_but_at_most_one_a_channel(model, groups, expected):
    with torch.device("meta"):
        norms = [layer for layer in model(groups=groups, scale_norm=True).modules() if isinstance(layer, nn.GroupNorm)]
    assert len(norms) == 1 + 3 * 16 + 4 + 16
    assert {norm.num_channels: norm.num_groups for norm in norms}.items() >= expected.items()


def test_scale_norm_normalises_the_sum_and_the_activation_follows_it(model):
    network, seen = model(scale_norm=True, width=0.125, groups=1), []
    blocks = [layer for layer in network.modules() if isinstance(layer, Bottleneck)]
    for block in blocks:
        for part in (block.path, block.shortcut, block.scale_norm, block.activation, block):
            part.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    network(torch.randn(2, 3, 64, 64))
    assert len(seen) == 5 * len(blocks) == 80
    calls = [seen[i : i + 5] for i in range(0, 80, 5)]
    for path, shortcut, norm, activation, block in calls:
        assert path[0] is shortcut[0] is block[0]
        assert torch.equal(norm[0], path[1] + shortcut[1])
        assert activation[0] is norm[1]
        assert block[1] is activation[1]
    assert all(following[-1][0] is before[-1][1] for before, following in pairwise(calls))


def test_without_scale_norm_the_activation_follows_the_sum(model):
    assert not any(isinstance(block.scale_norm, nn.GroupNorm) for block in model(width=0.125).blocks)


@pytest.mark.parametrize("side", [32, 33, 160])
def test_images_of_any_size_pass(model, side):
    assert model(classes=7, width=0.125, scale_norm=True)(torch.randn(2, 3, side, side)).shape == (2, 7)


def test_activations_leave_their_input_as_it_is(model):
    for activation, kind in ACTIVATIONS.items():
        layers = [layer for layer in model(width=0.125, activation=activation).modules() if isinstance(layer, kind)]
        assert len(layers) == 1 + 3 * 16
        assert not any(layer.inplace for layer in layers)


def test_an_image_changes_its_own_output_only(model):
    network = model(width=0.125, scale_norm=True).double()
    images = torch.randn(4, 3, 32, 32, dtype=torch.float64)
    before, images[2] = network(images), 100 * torch.randn(3, 32, 32)
    after = network(images)
    torch.testing.assert_close(before[[0, 1, 3]], after[[0, 1, 3]], atol=1e-10, rtol=0)
    assert not torch.allclose(before[2], after[2])


def test_the_seed_decides_the_weights(model):
    def weights(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return torch.cat([p.detach().flatten() for p in model(width=0.125).parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
