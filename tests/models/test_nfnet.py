"""NFNets are timm's in DeepMind's layout: counts, outputs with the same weights, the variance that they promise, gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dpvision.models.catalogue import MODELS
from dpvision.models.count import parameter_count
from dpvision.models.layers import StandardizedConv2d
from dpvision.models.nfnet.network import Excite
from dpvision.models.nfnet.options import Options
from dpvision.models.norm_free import Block
from dpvision.training.parts import head_of
from dpvision.vision import torchvision  # noqa: F401  (timm imports it)

MODEL: dict[str, Any] = {"family": "nfnet", "variant": "f0", "width": 1 / 8, "skip_gain": 1.0}
EPS = 1e-30  # next to none: timm adds it to a variance, where DeepMind has a floor that no variance here comes near


def shake(network: nn.Module) -> nn.Module:
    """Move weights from where they start: there biases are 0, gains 1."""
    for parameter in network.parameters():
        parameter.data += 0.2 * parameter.abs().mean() * torch.randn_like(parameter)
    return network


# --- counts ---


def test_f3_has_as_many_parameters_as_deepminds_and_timms(model):
    import timm

    with torch.device("meta"):
        network = model(1000, variant="f3", width=1.0)
        theirs = timm.create_model("dm_nfnet_f3", pretrained=False)
    assert parameter_count(network) == parameter_count(theirs) == 254_924_200
    assert sum(parameter.dim() == 0 for parameter in network.parameters()) == 48  # skip gains
    assert head_of(network)[1].in_features == 3072


@pytest.mark.parametrize("variant", ["f0", "f1", "f6"])
def test_the_others_are_timms_too(model, variant):
    import timm

    with torch.device("meta"):
        theirs = timm.create_model(f"dm_nfnet_{variant}", pretrained=False)
        assert parameter_count(model(1000, variant=variant, width=1.0)) == parameter_count(theirs)


def test_names_and_widths():
    assert MODELS["nfnet_f3"].slug() == "nfnet-f3"
    assert Options(family="nfnet", label="NFNet", variant="f0", width=1 / 8).as_spec({"label"}) == MODEL
    ((key, fault),) = Options(family="nfnet", label="NFNet", width=0.3).faults(private=True)
    assert (key, "multiple of 1/16" in fault) == ("width", True)


# --- against timm's ---


def of_timm(weights: dict[str, Tensor], like: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return timm's weights under our names: both have the same tensors, in another order within a block, of other shapes."""
    in_a_block = ["skipinit_gain", "conv1.", "conv2.", "conv2b.", "conv3.", "attn_last.fc1.", "attn_last.fc2.", "downsample."]

    def place(name: str) -> tuple[Any, ...]:
        parts = name.split(".")
        part = ("stem", "stages", "final_conv", "head").index(parts[0])
        within = name.split(".", 3)[3] if parts[0] == "stages" else name
        rank = next((i for i, prefix in enumerate(in_a_block) if within.startswith(prefix)), 0) if part == 1 else 0
        numbers = [int(digit) for digit in parts[1:3]] if part == 1 else [int(parts[1][4:])] if part == 0 else []
        return part, numbers, rank, ("weight", "bias", "gain").index(parts[-1]) if "skipinit" not in name else 0

    pairs = zip(like.items(), sorted(weights, key=place), strict=True)
    return {ours: weights[theirs].reshape(tensor.shape) for (ours, tensor), theirs in pairs}


def both(model: Any, timm_network: nn.Module, classes: int, **changes: Any) -> nn.Module:
    """Return our network with a network of timm's weights."""
    network = model(classes, **changes).to(next(timm_network.parameters()).dtype)
    network.load_state_dict(of_timm(timm_network.state_dict(), network.state_dict()))
    return network.eval()


@pytest.mark.parametrize("sides", [(32, 32), (33, 47), (65, 70)])
def test_a_narrow_one_gives_what_timms_gives_with_the_same_weights(model, sides):
    from timm.models.nfnet import NormFreeNet, _dm_nfnet_cfg

    cfg = _dm_nfnet_cfg((1, 2, 6, 3), channels=(32, 64, 192, 192))
    theirs = NormFreeNet(cfg, num_classes=5, stem_chs=16, group_size=16, std_conv_eps=EPS).double().eval()
    shake(theirs)
    for module in theirs.modules():
        if hasattr(module, "skipinit_gain"):
            module.skipinit_gain.data.uniform_(0.5, 1.5)
    ours, images = both(model, theirs, 5), torch.randn(2, 3, *sides, dtype=torch.float64)
    with torch.no_grad():
        expected = theirs(images)
        torch.testing.assert_close(ours(images), expected, rtol=1e-9, atol=1e-9)
    assert expected.std() > 0.01


@pytest.mark.slow
def test_features_of_f3_from_random_weights_are_those_of_timms(model):
    import timm

    theirs = timm.create_model("dm_nfnet_f3", pretrained=False, std_conv_eps=EPS).eval()
    for module in theirs.modules():
        if hasattr(module, "skipinit_gain"):
            module.skipinit_gain.data.fill_(1.0)
    ours, found, images = both(model, theirs, 1000, variant="f3", width=1.0), [], torch.randn(2, 3, 96, 96)
    head_of(ours)[1].register_forward_pre_hook(lambda layer, inputs: found.append(inputs[0]))
    with torch.no_grad():
        ours(images)
        expected = theirs.forward_head(theirs.forward_features(images), pre_logits=True)
    assert expected.shape == (2, 3072) and expected.std() > 0.01
    torch.testing.assert_close(found[0], expected, rtol=1e-3, atol=1e-4)


# --- the variance at the start ---


def test_each_block_gives_the_variance_that_the_design_promises(model):
    """A block divides by the deviation that its input has, and adds α². Means over 2x2 pixels of noise quarter it before."""
    network = model(width=1 / 2)
    deviations = [1.7015043497085571 / block.activation.factor for block in network.blocks]
    assert deviations[:5] == pytest.approx([1.0, 1.04**0.5, 1.04**0.5, 1.08**0.5, 1.04**0.5])
    for block, deviation in zip(network.blocks, deviations, strict=True):
        inputs = next(block.path.parameters()).shape[1]
        x = deviation * torch.randn(4, inputs, 24, 24)
        with torch.no_grad():
            out, shortcut = block(x), x if block.shortcut is None else block.shortcut(block.activation(x))
        halved = out.shape[-1] < x.shape[-1]
        kept = deviation**2 if block.shortcut is None else 0.25 if halved else 1.0
        assert shortcut.var((0, 2, 3)).mean().item() == pytest.approx(kept, rel=0.05)
        assert (out - shortcut).var((0, 2, 3)).mean().item() == pytest.approx(0.04, rel=0.35)


def test_a_gate_that_knows_nothing_leaves_its_channels_as_they_are():
    gate, x = Excite(8), torch.randn(2, 8, 3, 3)
    nn.init.zeros_(gate.gate[2].weight)
    nn.init.zeros_(gate.gate[2].bias)
    torch.testing.assert_close(gate(x), x)


def test_every_convolution_is_standardised(model):
    convs = [layer for layer in model().modules() if isinstance(layer, nn.Conv2d)]
    assert len(convs) == 4 + 12 * 4 + 4 + 1
    assert all(isinstance(conv, StandardizedConv2d) for conv in convs)


# --- gradients ---


def test_clipped_gradients_are_those_of_one_example_at_a_time(model, clips_each_example):
    network = shake(model(3).double())
    assert sum(isinstance(layer, Block) for layer in network.modules()) == 12
    images, labels = torch.randn(3, 3, 20, 20, dtype=torch.float64), torch.tensor([0, 1, 2])
    clips_each_example(network, images, labels)
