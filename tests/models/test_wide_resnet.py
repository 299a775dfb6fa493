"""Wide residual networks are those of De et al.'s code: counts, order of layers, padding, weights, outputs."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from dpvision.models import build
from dpvision.models.catalogue import MODELS, catalogue
from dpvision.models.count import multiply_adds, parameter_count
from dpvision.models.layers import SamePadding, StandardizedConv2d
from dpvision.models.wrn.network import Block
from dpvision.models.wrn.options import Options
from dpvision.standardized import standardized

MODEL = {"family": "wrn", "depth": 10, "width": 1, "groups": 16, "scale_norm": False, "standardize": True}


def shake(network: nn.Module) -> nn.Module:
    """Draw other weights than at the start, where normalisations and gains scale by one and nothing is shifted."""
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.5)
    return network


# --- counts ---


@pytest.mark.parametrize(
    ("depth", "width", "classes", "scale_norm", "count"),
    [
        (16, 4, 10, False, 2_753_818),
        (16, 4, 10, True, 2_755_610),
        (16, 4, 100, False, 2_776_948),
        (40, 4, 10, False, 8_961_306),
        (40, 4, 10, True, 8_966_682),
        (40, 4, 1000, False, 9_215_736),
        (28, 10, 10, False, 36_500_378),
        (28, 10, 10, True, 36_509_338),
    ],
)
def test_the_number_of_parameters_is_that_of_jax_privacy(model, depth, width, classes, scale_norm, count):
    with torch.device("meta"):
        assert parameter_count(model(classes, depth=depth, width=width, scale_norm=scale_norm)) == count


def test_plain_convolutions_lack_a_gain_and_a_bias_an_output_channel(model):
    outputs = 16 + 3 * (64 + 128 + 256) + 2 * (64 + 128 + 256)  # 4 convolutions and a shortcut a stage
    with torch.device("meta"):
        plain = model(depth=16, width=4, standardize=False)
    assert parameter_count(plain) == 2_753_818 - 2 * outputs
    assert not any(isinstance(layer, StandardizedConv2d) for layer in plain.modules())


@pytest.mark.parametrize(("scale_norm", "count"), [(False, 2_748_890), (True, 2_750_682)])
def test_without_norms_in_shortcuts_the_plain_network_would_be_the_textbook_s(model, scale_norm, count):
    """Batch normalisation, running means and variances counted, gives the 2,752,506 that Klause et al. print."""
    with torch.device("meta"):
        network = model(depth=16, width=4, standardize=False, scale_norm=scale_norm)
    shortcuts = [layer for block in network.blocks for layer in block.shortcut.modules() if isinstance(layer, nn.GroupNorm)]
    assert parameter_count(network) - sum(map(parameter_count, shortcuts)) == count
    if not scale_norm:
        norms = [layer for layer in network.modules() if isinstance(layer, nn.GroupNorm) and layer not in shortcuts]
        assert count + sum(2 * norm.num_channels for norm in norms) == 2_752_506


RUNGS: dict[str, dict[str, Any]] = {
    "no norm": {"norm": "none", "standardize": False, "bias": True},
    "group norm": {"standardize": False, "bias": True},
    "standardised weights": {},
}
"""The networks of De et al.'s ablation, from its baseline on."""


@pytest.mark.parametrize(
    ("depth", "counts"), [(16, [2_747_530, 2_751_562, 2_753_818]), (40, [8_944_266, 8_955_466, 8_961_306])]
)
def test_the_rungs_of_the_ablation_have_the_parameters_of_jax_privacy(model, depth, counts):
    with torch.device("meta"):
        assert [parameter_count(model(depth=depth, width=4, **rung)) for rung in RUNGS.values()] == counts


def test_a_network_without_norms_has_a_name_of_its_own_and_the_others_keep_theirs():
    def of(**said: Any) -> Options:
        return Options(family="wrn", label="WRN", depth=40, width=4, **said)

    assert of(norm="none").slug() == "wrn40-4-none"
    assert {of().slug(), of(bias=True).slug(), of(standardize=False).slug()} == {"wrn40-4"}
    assert of(norm="none", bias=True).as_spec({"label"}).items() >= {"norm": "none", "bias": True}.items()


def test_without_norms_there_is_none_and_every_convolution_has_a_bias(model):
    network = model(**RUNGS["no norm"])
    assert not any(isinstance(layer, nn.GroupNorm) for layer in network.modules())
    convs = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    assert len(convs) == 1 + 3 * 3
    assert all(type(conv) is nn.Conv2d and conv.bias is not None and not conv.bias.any() for conv in convs)


@pytest.mark.parametrize("rung", RUNGS.values(), ids=RUNGS)
def test_clipped_gradients_of_the_rungs_are_those_of_one_example_at_a_time(model, rung, clips_each_example):
    network = model(3, **rung).double()
    for parameter in network.parameters():  # shaken, one without norms would be so sure that nothing is left to learn
        parameter.data += 0.1 * torch.randn_like(parameter)
    images, labels = torch.randn(4, 3, 8, 8, dtype=torch.float64), torch.tensor([0, 1, 2, 1])
    clips_each_example(network, images, labels)


def test_multiply_adds_are_those_of_its_convolutions_and_its_linear_layer(model):
    by_hand = 32**2 * 9 * 3 * 16
    for side, inputs, outputs in [(32, 16, 64), (16, 64, 128), (8, 128, 256)]:
        by_hand += side**2 * (9 * inputs * outputs + 3 * 9 * outputs**2 + inputs * outputs)
    assert multiply_adds(model(depth=16, width=4), [3, 32, 32]) == by_hand + 256 * 10


def test_the_catalogue_lists_the_published_ones():
    counts = {row["model"]: row["parameters"] for row in catalogue(10, [3, 32, 32])}
    names = {"wrn16-4": 2_753_818, "scalewrn16-4": 2_755_610, "wrn40-4": 8_961_306, "wrn28-10": 36_500_378}
    assert {name: counts[name] for name in names} == names
    assert [MODELS[name].slug() for name in names] == list(names)


def test_what_the_configuration_says_by_default_is_jax_privacy_s(model):
    said = Options(family="wrn", label="WRN", depth=10, width=1).as_spec({"label"})
    assert said == MODEL
    assert [*model().state_dict()] == [*build(said, 10, 3).state_dict()]


# --- what it computes, written down once more in numpy ---


def same(side: int, kernel: int, stride: int) -> tuple[int, int]:
    """Compute XLA's SAME: what comes before and behind so that ceil(side / stride) windows fit."""
    total = max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
    return total // 2, total - total // 2


def conv_reference(x: np.ndarray, weight: np.ndarray, stride: int) -> np.ndarray:
    kernel = weight.shape[-1]
    padded = np.pad(x, ((0, 0), (0, 0), same(x.shape[2], kernel, stride), same(x.shape[3], kernel, stride)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nihwab,oiab->nohw", patches, weight)


def standardized_reference(weight: np.ndarray, gain: np.ndarray, eps: float = 1e-4) -> np.ndarray:
    channels = []
    for w, g in zip(weight, gain, strict=True):
        variance = np.mean((w - np.mean(w)) ** 2)
        channels.append(g * (w - np.mean(w)) / np.sqrt(max(variance * w.size, eps)))
    return np.stack(channels)


def reference(x: np.ndarray, weights: list[np.ndarray], model: dict[str, Any]) -> np.ndarray:
    """Compute the network; `weights` are in the order of use, a block's path before its shortcut."""
    left = iter(weights)

    def norm(x: np.ndarray) -> np.ndarray:
        if model.get("norm") == "none":
            return x
        groups = x.shape[1] if model["groups"] == "channels" else min(model["groups"], x.shape[1])
        grouped = x.reshape(len(x), groups, -1)
        scaled = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
        return scaled.reshape(x.shape) * next(left)[:, None, None] + next(left)[:, None, None]

    def conv(x: np.ndarray, stride: int = 1) -> np.ndarray:
        weight = next(left)
        if not model["standardize"]:
            bias = next(left) if model.get("bias") else np.zeros(len(weight))
            return conv_reference(x, weight, stride) + bias[:, None, None]
        bias, gain = next(left), next(left)
        return conv_reference(x, standardized_reference(weight, gain), stride) + bias[:, None, None]

    def unit(x: np.ndarray, stride: int = 1) -> np.ndarray:
        return conv(norm(np.maximum(x, 0)), stride)

    x = conv(x)
    for stage in range(3):
        for i in range((model["depth"] - 4) // 6):
            stride = 2 if stage > 0 and i == 0 else 1
            path = unit(unit(x, stride))
            x = path + (unit(x, stride) if i == 0 else x)
            x = norm(x) if model["scale_norm"] else x
    x = norm(np.maximum(x, 0)).mean((2, 3))
    outputs = x @ next(left).T + next(left)
    assert next(left, None) is None
    return outputs


@pytest.mark.parametrize(
    "changes",
    [*RUNGS.values(), {"scale_norm": True}, {"standardize": False}, {"groups": 4}, {"groups": "channels"}],
    ids=str,
)
@pytest.mark.parametrize("sides", [(8, 8), (9, 9), (11, 6), (32, 32)])
def test_outputs_are_those_of_the_formulas(model, changes, sides):
    network = shake(model(depth=16, **changes).double())
    images = torch.randn(2, 3, *sides, dtype=torch.float64)
    weights = [p.detach().numpy() for p in network.parameters()]
    expected = reference(images.numpy(), weights, MODEL | {"depth": 16} | changes)
    np.testing.assert_allclose(network(images).detach().numpy(), expected, rtol=1e-9, atol=1e-9)
    assert expected.std() > 0.1


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_padding_is_that_of_xla(kernel, stride):
    for high in range(1, 10):
        for wide in range(1, 10):
            image = torch.ones(1, 1, high, wide)
            (above, below), (before, behind) = same(high, kernel, stride), same(wide, kernel, stride)
            expected = np.pad(image.numpy(), ((0, 0), (0, 0), (above, below), (before, behind)))
            assert np.array_equal(SamePadding(kernel, stride)(image).numpy(), expected)


def test_a_stride_of_two_pads_even_sides_behind_and_odd_ones_on_both_sides():
    assert SamePadding(3, 2)(torch.ones(1, 1, 2, 3))[0, 0].tolist() == [[0, 1, 1, 1, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]]


def test_the_stages_halve_the_image_rounded_up(model):
    seen = []
    network = model(depth=16)
    for block in network.blocks:
        block.register_forward_hook(lambda _, inputs, output: seen.append(tuple(output.shape[1:])))
    network(torch.randn(1, 3, 9, 14))
    assert seen == [(16, 9, 14)] * 2 + [(32, 5, 7)] * 2 + [(64, 3, 4)] * 2


# --- standardised weights ---


@pytest.mark.parametrize("shape", [(6, 3, 3, 3), (4, 5, 1, 1), (3, 7), (5, 2, 4), (2, 2, 3, 2, 3)], ids=str)
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_weights_are_standardised_by_the_formula(shape, scale):
    weight = scale * torch.randn(shape, dtype=torch.float64) + 0.3
    gain = torch.randn(shape[0], dtype=torch.float64)
    made = standardized(weight, gain).numpy()
    np.testing.assert_allclose(made, standardized_reference(weight.numpy(), gain.numpy()), rtol=1e-9, atol=1e-12)
    rows = made.reshape(shape[0], -1)
    np.testing.assert_allclose(rows.mean(1), 0, atol=1e-12)
    squares = np.square(rows).sum(1)
    if scale == 1:  # variance 1 / fan-in times the gain's square: outputs as wide as inputs
        np.testing.assert_allclose(squares, gain.square().numpy())
    else:  # below the floor the weight is not blown up to that
        assert (squares < 0.1 * gain.square().numpy()).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_channel_of_equal_weights_becomes_zero_and_its_gradient_is_finite(dtype):
    weight = torch.randn(3, 4, 3, 3, dtype=dtype)
    weight[1] = 0.1
    weight.requires_grad_()
    gain = torch.full((3,), 2.0, dtype=dtype, requires_grad=True)
    made = standardized(weight, gain)
    assert made[1].abs().max() < 1e-5
    assert made[0].square().sum().item() == pytest.approx(4, rel=1e-5)
    (made * torch.randn_like(made)).sum().backward()
    assert weight.grad.isfinite().all()
    assert gain.grad.isfinite().all()


def test_the_floor_under_the_variance_is_the_one_given():
    weight, gain = torch.randn(3, 2, 3, 3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    made = standardized(weight, gain, eps=1e4)
    np.testing.assert_allclose(made, standardized_reference(weight.numpy(), gain.numpy(), 1e4))
    assert made.abs().max() < 0.1


def test_gradients_go_through_weight_and_gain():
    weight = torch.randn(3, 2, 2, 2, dtype=torch.float64)
    weight[1] *= 1e-4  # below the floor
    inputs = (weight.requires_grad_(), torch.randn(3, dtype=torch.float64, requires_grad=True))
    assert torch.autograd.gradcheck(standardized, inputs, eps=1e-7)


def test_a_torch_function_mode_may_put_something_else_in_its_place():
    calls = []

    class Replace(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
            if function is standardized:
                calls.append(args)
                return torch.zeros_like(args[0])
            return function(*args, **(kwargs or {}))

    conv = StandardizedConv2d(3, 4, 3)
    images = torch.randn(2, 3, 5, 5)
    before = conv(images)
    with Replace():
        assert not conv(images).any()
    ((weight, gain, eps),) = calls
    assert weight is conv.weight
    assert gain is conv.gain
    assert eps == 1e-4
    assert torch.equal(conv(images), before)
    assert before.any()


# --- layers ---


def test_scale_norm_normalises_the_sum_and_nothing_else_follows_it(model):
    network, seen = model(depth=16, scale_norm=True, groups=1), []
    blocks = [layer for layer in network.modules() if isinstance(layer, Block)]
    for block in blocks:
        for part in (block.path, block.shortcut, block.scale_norm, block):
            part.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    network(torch.randn(2, 3, 16, 16))
    assert len(seen) == 4 * len(blocks) == 24
    for i in range(0, 24, 4):
        path, shortcut, norm, block = seen[i : i + 4]
        assert path[0] is shortcut[0] is block[0]
        assert torch.equal(norm[0], path[1] + shortcut[1])
        assert block[1] is norm[1]
        torch.testing.assert_close(norm[1].mean((1, 2, 3)), torch.zeros(2), atol=1e-5, rtol=0)
        assert (norm[1] < -0.5).any()  # a ReLU would not let this through
        assert i == 20 or seen[i + 4][0] is norm[1]


def test_without_scale_norm_a_block_gives_the_sum(model):
    assert not any(isinstance(block.scale_norm, nn.GroupNorm) for block in model(depth=16).blocks)


@pytest.mark.parametrize("scale_norm", [False, True])
def test_no_module_and_no_parameter_is_used_twice(model, scale_norm):
    """One used twice would have the gradients of both uses, which engines that work by layers count once."""
    network, used = model(depth=16, scale_norm=scale_norm), []
    named = list(network.named_modules(remove_duplicate=False))
    assert len(named) == len(set(map(id, dict(named).values())))
    assert len(list(network.named_parameters(remove_duplicate=False))) == len(list(network.parameters()))
    leaves = [module for module in network.modules() if not list(module.children())]
    for leaf in leaves:
        leaf.register_forward_hook(lambda module, inputs, output: used.append(module))
    network(torch.randn(1, 3, 8, 8))
    assert len(used) == len(set(map(id, used))) == len(leaves)


def test_activations_leave_their_input_as_it_is(model):
    network = model(depth=16)
    relus = [layer for layer in network.modules() if isinstance(layer, nn.ReLU)]
    assert len(relus) == 2 * 6 + 3 + 1
    for relu in relus:
        kept: list[Tensor] = []
        relu.register_forward_pre_hook(lambda _, inputs, kept=kept: kept.append(inputs[0].clone()))
        relu.register_forward_hook(lambda _, inputs, output, kept=kept: kept.append(inputs[0]))
        network(torch.randn(1, 3, 8, 8))
        assert torch.equal(kept[0], kept[1])
        assert (kept[0] < 0).any()


@pytest.mark.parametrize("changes", [*RUNGS.values(), {"scale_norm": True}, {"standardize": False}], ids=str)
def test_every_parameter_gets_a_gradient(model, changes):
    network = model(depth=16, groups=4, **changes)  # with one group a channel, ScaleNorm takes away the biases before it
    (network(torch.randn(4, 3, 8, 8)) * torch.randn(4, 10)).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 1e-6, name


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_an_image_changes_its_own_output_only(model, mode):
    network = getattr(shake(model(scale_norm=True).double()), mode)()
    images = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    before, images[2] = network(images), 100 * torch.randn(3, 8, 8)
    after = network(images)
    torch.testing.assert_close(before[[0, 1, 3]], after[[0, 1, 3]], atol=1e-10, rtol=0)
    assert not torch.allclose(before[2], after[2])


# --- weights at the start ---


@pytest.mark.parametrize("standardize", [True, False])
def test_convolutions_start_from_a_normal_distribution_of_variance_one_over_fan_in(model, standardize):
    convs = [layer for layer in model(depth=16, width=4, standardize=standardize).modules() if isinstance(layer, nn.Conv2d)]
    assert len(convs) == 1 + 12 + 3
    scaled = [(conv.weight.detach() * math.sqrt(conv.weight[0].numel())).flatten() for conv in convs]
    for weights in scaled:
        count = len(weights)
        assert weights.mean().abs() < 5 / math.sqrt(count)
        assert (weights.std() - 1).abs() < 5 / math.sqrt(2 * count)
    everything = torch.cat(scaled)
    assert everything.pow(4).mean().item() == pytest.approx(3, abs=0.05)  # a uniform distribution's would be 1.8
    assert everything.abs().max() > 4  # nothing is cut off


def test_the_linear_layer_starts_from_a_distribution_cut_off_at_two_deviations_and_of_variance_one_over_fan_in(model):
    weights = model(classes=1000, depth=10, width=4).classifier.weight.detach() * math.sqrt(256)
    assert weights.mean().abs() < 5 / math.sqrt(weights.numel())
    assert weights.std().item() == pytest.approx(1, abs=5 / math.sqrt(2 * weights.numel()))
    assert 2 / 0.8796 - 0.01 < weights.abs().max() <= 2 / 0.87962
    assert weights.pow(4).mean().item() == pytest.approx(2.365, abs=0.05)  # of a normal distribution cut off at 2: 2.365


def test_biases_start_at_zero_gains_and_the_scales_of_norms_at_one(model):
    starts: dict[str, set[float]] = {}
    for name, parameter in model(scale_norm=True).named_parameters():
        if parameter.dim() == 1:
            starts.setdefault(name.rsplit(".", 1)[1], set()).update(parameter.tolist())
    assert starts == {"weight": {1.0}, "bias": {0.0}, "gain": {1.0}}


def test_the_seed_decides_the_weights(model):
    def weights(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return torch.cat([p.detach().flatten() for p in model().parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
