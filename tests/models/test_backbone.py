"""Backbones are torchvision's and timm's by name, without dropout, their weights from a file, nothing from the network."""

import copy
import socket
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from safetensors.torch import save_file
from torch import nn

from dpvision.data import weights
from dpvision.errors import UserError
from dpvision.files import file_digest
from dpvision.models.backbone.options import Options
from dpvision.models.found import Model
from dpvision.privacy.fast import UNTIMED, ClippedSum
from dpvision.training import parts
from dpvision.vision import torchvision  # noqa: F401  (timm imports it)

MODEL: dict[str, Any] = {"family": "backbone", "network": "timm/test_efficientnet"}
"""One of timm's own, small: its batch normalisation has the activation inside."""


@pytest.fixture(autouse=True)
def nothing_from_the_network(monkeypatch):
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("name", ["test_efficientnet", "test_vit", "test_nfnet", "resnet18"])
def test_a_network_of_timms_is_timms(model, name):
    import timm

    ours, theirs = model(7, network=f"timm/{name}"), timm.create_model(name, num_classes=7)
    assert parts.head_of(ours)[1] is ours.get_classifier()
    ours.load_state_dict(theirs.state_dict())
    images = torch.randn(2, 3, *theirs.default_cfg["input_size"][1:])
    with torch.no_grad():
        torch.testing.assert_close(ours.eval()(images), theirs.eval()(images))


def test_there_is_no_dropout_and_no_stochastic_depth(monkeypatch, model):
    import timm

    plain = timm.create_model
    monkeypatch.setattr(timm, "create_model", lambda *a, **k: plain(*a, **k, drop_rate=0.5, drop_path_rate=0.5))
    network, images = model(7, network="timm/test_vit").train(), torch.randn(2, 3, 160, 160)
    assert torch.equal(network(images), network(images))


def test_a_network_that_timm_does_not_have_is_answered_with_those_alike(model):
    with pytest.raises(UserError, match=r"has no network resnet5o; alike: resnet50"):
        model(network="timm/resnet5o")


@pytest.mark.parametrize("name", ["deit_tiny_distilled_patch16_224", "resnetv2_50x1_bit"])
def test_a_head_that_is_not_the_last_linear_layer_is_refused(model, name):
    with torch.device("meta"), pytest.raises(UserError, match=f"timm/{name}: its head is not one linear layer"):
        model(network=f"timm/{name}")


def test_what_a_paper_can_say_of_it():
    def of(name: str) -> Options:
        return TypeAdapter(Model).validate_python({"family": "backbone", "label": "A network", "network": name})

    assert of("timm/vit_tiny_patch16_224").slug() == "timm-vit-tiny-patch16-224"
    assert of("mobilenet_v2").slug() == "mobilenet-v2"
    assert not of("timm/resnet18").mixes_examples()  # seen when it trains
    assert of("resnet18").mixes_examples()
    for wrong in ("resnet17", "timm/hf-hub:timm/resnet18", "timm/", "hf_hub:timm/resnet18"):
        with pytest.raises(ValidationError):
            of(wrong)


def test_weights_of_timms_come_from_a_file_of_the_users(model, tmp_path):
    network = model(5)
    save_file(network.state_dict(), tmp_path / "model.safetensors")
    spec = {"name": "ours", "model": MODEL, "classes": 5, "sha256": file_digest(tmp_path / "model.safetensors")}
    entry = {"title": "Ours", "licence": "none", "mean": [0.5] * 3, "std": [0.5] * 3}
    weights.obtain(spec, entry, tmp_path / "model.safetensors", tmp_path / "kept")
    found = weights.load(tmp_path / "kept", spec)
    assert all(torch.equal(found[name], tensor) for name, tensor in network.state_dict().items())


# --- batch normalisation with the activation inside ---


def used(network: nn.Module) -> nn.Module:
    """Return it with statistics that are no longer 0 and 1."""
    network.double().train()(torch.randn(16, 3, 32, 32, dtype=torch.float64))
    return network


def test_fixed_statistics_keep_the_activation_inside(model):
    moving = used(model(3))
    fixed, images = copy.deepcopy(moving), torch.randn(4, 3, 32, 32, dtype=torch.float64)
    parts.freeze(fixed, "norms")
    with torch.no_grad():
        torch.testing.assert_close(fixed.train()(images), moving.eval()(images))
    assert list(fixed.state_dict()) == list(moving.state_dict())


def test_its_norms_train_privately_and_all_of_it_is_refused(model, clips_each_example):
    network, images, labels = used(model(3)), torch.randn(3, 3, 32, 32, dtype=torch.float64), torch.tensor([0, 1, 2])
    with pytest.raises(Exception, match="depends on the others of its batch"):
        ClippedSum(network, 0.5, choices=UNTIMED)(images, labels)
    parts.freeze(network, "norms")
    clips_each_example(network, images, labels)
