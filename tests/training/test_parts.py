"""What is frozen stays to the bit and has no gradient; what trains is clipped by its own gradient alone."""

import copy
import logging

import pytest
import torch
from torch import nn

from dpvision.errors import UserError
from dpvision.models import build
from dpvision.privacy.clipping import OneAtATime, trainable
from dpvision.privacy.fast import ClippedSum
from dpvision.training import parts
from dpvision.training.record import write_record

SGD = {"name": "sgd", "learning_rate": 0.5, "momentum": 0.5, "weight_decay": 0.1}
WRN = {"family": "wrn", "depth": 10, "width": 1, "groups": 4, "scale_norm": True, "standardize": True}


def with_batch_norm(dtype: torch.dtype = torch.float64) -> nn.Module:
    """Return a network whose statistics are no longer 0 and 1."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)
    ).to(dtype)
    network.train()(torch.randn(64, 1, 8, 8, dtype=dtype))
    return network


def batch(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.randn(6, 1, 8, 8, dtype=dtype), torch.arange(6) % 3


@pytest.mark.parametrize("part", ["head", "norms"])
def test_the_clipped_sum_of_a_part_is_that_of_one_example_at_a_time(narrow, part):
    network = narrow()
    parts.freeze(network, part)
    sums, norms = ClippedSum(network, 0.5)(*batch()), OneAtATime(network, 0.5)(*batch())
    assert len(sums.sums) == len(trainable(network)) < len(list(network.parameters()))
    for ours, reference in zip(sums.sums, norms.sums, strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(sums.norms, norms.norms, rtol=1e-10, atol=0)


def test_norms_are_scales_shifts_gains_the_biases_beside_them_and_the_head():
    network = build(WRN, 10, 3)
    parts.freeze(network, "norms")
    frozen = [name for name, p in network.named_parameters() if not p.requires_grad]
    convolutions = [name for name, layer in network.named_modules() if isinstance(layer, nn.Conv2d)]
    assert frozen == [f"{name}.weight" for name in convolutions]


def test_the_head_is_the_last_linear_layer(narrow):
    network = narrow()
    parts.freeze(network, "head")
    name, layer = parts.head_of(network)
    assert [n for n, p in network.named_parameters() if p.requires_grad] == [f"{name}.weight", f"{name}.bias"]
    assert layer.out_features == 3
    with pytest.raises(UserError, match="no linear layer"):
        parts.head_of(nn.Conv2d(1, 1, 1))


def test_fixed_statistics_mix_no_examples_and_moving_ones_are_refused():
    moving = with_batch_norm()
    fixed = copy.deepcopy(moving)
    parts.freeze(fixed, "norms")
    images, labels = batch()
    with pytest.raises(Exception, match="depends on the others of its batch"):
        ClippedSum(moving.train(), 0.5)(images, labels)
    before = {name: value.clone() for name, value in fixed.state_dict().items()}
    ours, reference = ClippedSum(fixed.train(), 0.5)(images, labels), OneAtATime(fixed, 0.5)(images, labels)
    for one, other in zip(ours.sums, reference.sums, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
    assert all(torch.equal(value, before[name]) for name, value in fixed.state_dict().items())
    torch.testing.assert_close(fixed.train()(images), moving.eval()(images))
    assert list(fixed.state_dict()) == list(moving.state_dict())


@pytest.mark.parametrize("part", ["head", "norms"])
def test_a_training_moves_its_part_and_says_that_the_rest_stayed(training, tmp_path, part):
    changes = {"train": part, "recipe.optimizer": SGD, "recipe.epochs": 1, "recipe.averaging": {"decay": 0.9}}
    done = training({**changes, "recipe.schedule": {"name": "constant"}})
    begun = {name: value.clone() for name, value in done.network.state_dict().items()}
    assert not parts.head_of(done.network)[1].weight.any()
    done.run()
    write_record(tmp_path, done, {}, {"spec": "x"}, lambda: None)
    from dpvision.files import read_json

    said = read_json(tmp_path / "provenance.json")["trained"]
    assert (said["part"], said["unmoved"]) == (part, [])
    assert said["frozen_sha256"]["before"] == said["frozen_sha256"]["after"]
    for network in (done.network, done.average.network):
        for name, value in network.state_dict().items():
            assert torch.equal(value, begun[name]) == (name not in said["trained"]), name


def test_a_frozen_part_that_moved_is_an_error_and_a_trained_one_that_did_not_is_said(narrow, caplog):
    network = narrow()
    parts.freeze(network, "head")
    before = parts.digests_of(network)
    with caplog.at_level(logging.WARNING):
        said = parts.account(network, before, "head")
    assert said["unmoved"] == said["trained"]
    assert "still to the bit what they were" in caplog.text
    first, parameter = next(iter(network.named_parameters()))
    with torch.no_grad():
        parameter.view(-1)[0] += 1e-9
    with pytest.raises(UserError, match=f"{first}: frozen"):
        parts.account(network, before, "head")


def test_what_trains_is_part_of_what_is_decided_by_timing(training):
    assert training().decided.file != training({"train": "head"}).decided.file
