"""Made-up images, and one stream of random numbers a test."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor


@pytest.fixture(autouse=True)
def one_stream_of_random_numbers() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture(scope="session")
def made_up() -> Callable[..., tuple[Tensor, Tensor]]:
    def make(count: int, shape: tuple[int, int, int] = (1, 8, 8), dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        return torch.randn(count, *shape, dtype=dtype), torch.randint(3, (count,))

    return make
