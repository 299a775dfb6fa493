"""Fixtures that the tests of every family of networks share."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from dpvision.models import build


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
