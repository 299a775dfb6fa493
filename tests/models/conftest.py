"""Fixtures that the tests of every family of networks share."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from dpvision.models import build
from dpvision.privacy.clipping import OneAtATime, loss_of
from dpvision.privacy.fast import UNTIMED, ClippedSum


@pytest.fixture(autouse=True)
def one_stream_of_random_numbers() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Callable[..., nn.Module]:
    """Build a network of the test file's MODEL, with changes."""
    usual = request.module.MODEL
    return lambda classes=10, channels=3, **changes: build(usual | changes, classes, channels)


@pytest.fixture
def clips_each_example() -> Callable[[nn.Module, Tensor, Tensor], None]:
    """Hold a network's clipped sums against those of one example at a time, at a norm between the least and the greatest."""

    def compare(network: nn.Module, images: Tensor, labels: Tensor) -> None:
        clip = OneAtATime(network, 1.0)(images, labels).norms.mean().item()
        expected = OneAtATime(network, clip)(images, labels)
        found = ClippedSum(network, clip, loss=loss_of(network), choices=UNTIMED)(images, labels)
        torch.testing.assert_close(found.norms, expected.norms, atol=1e-10, rtol=1e-10)
        for ours, theirs in zip(found.sums, expected.sums, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-10)

    return compare
