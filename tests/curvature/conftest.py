"""Models whose Hessian is known, and a meter of the memory that tensors hold."""

import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, hessian
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

EXAMPLES = 24


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread. Nothing here is large enough for two."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def net() -> nn.Module:
    """Build a network of a few hundred parameters, with the kinds of layer that the papers' networks have."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.GroupNorm(2, 4),
            nn.Mish(),
            nn.Conv2d(4, 6, 3, padding=1),
            nn.GroupNorm(2, 6),
            nn.Mish(),
            nn.AdaptiveMaxPool2d(2),
            nn.Flatten(),
            nn.Linear(24, 3),
        ).double()


@pytest.fixture
def cut() -> Callable[..., list[tuple[Tensor, Tensor]]]:
    """Cut the same data into physical batches of the sizes that are asked for."""
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(EXAMPLES, 1, 6, 6, generator=generator, dtype=torch.float64)
    labels = torch.randint(3, (EXAMPLES,), generator=generator)
    return lambda *sizes: list(zip(images.split(sizes), labels.split(sizes), strict=True))


@pytest.fixture
def dense() -> Callable[..., Tensor]:
    """Compute the whole Hessian, by forward over reverse differentiation of the whole data's mean loss."""

    def matrix(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> Tensor:
        images, labels = (torch.cat(tensors) for tensors in zip(*batches, strict=True))
        names, parameters = zip(*model.named_parameters(), strict=True)
        sizes = [parameter.numel() for parameter in parameters]

        def loss(vector: Tensor) -> Tensor:
            pieces = [p.view_as(like) for p, like in zip(vector.split(sizes), parameters, strict=True)]
            logits = functional_call(model, dict(zip(names, pieces, strict=True)), (images,))
            return nn.functional.cross_entropy(logits, labels)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # torch's of itself
            return hessian(loss)(torch.cat([parameter.detach().flatten() for parameter in parameters])).detach()

    return matrix


class Quadratic(nn.Module):
    """A model with this matrix as Hessian at weights of zero for cross-entropy of label 1, its negative for label 0."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.matrix = matrix
        self.weights = nn.Parameter(torch.zeros(len(matrix), dtype=matrix.dtype))

    def forward(self, images: Tensor) -> Tensor:
        logit = self.weights @ self.matrix @ self.weights * torch.ones_like(images[:, 0])
        return torch.stack([logit, torch.zeros_like(logit)], dim=1)


@pytest.fixture
def quadratic() -> Callable[..., tuple[nn.Module, list[tuple[Tensor, Tensor]]]]:
    """Make a model with this Hessian, and its data in two batches that each give one half of it."""

    def make(matrix: Tensor, label: int = 1) -> tuple[nn.Module, list[tuple[Tensor, Tensor]]]:
        return Quadratic(matrix), [(torch.ones(2, 1, dtype=matrix.dtype), torch.full((2,), label))] * 2

    return make


class Live(TorchDispatchMode):
    """A count of the bytes that tensors made since it began still hold, autograd's saved ones included."""

    def __init__(self, *known: Tensor) -> None:
        super().__init__()
        self.known = {StorageWeakRef(tensor.untyped_storage()).cdata for tensor in known}
        self.made: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0

    def now(self) -> int:
        self.made = {key: held for key, held in self.made.items() if not held[0].expired()}
        return sum(size for _, size in self.made.values())

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                reference = StorageWeakRef(tensor.untyped_storage())
                if reference.cdata not in self.known:
                    self.made[reference.cdata] = reference, tensor.untyped_storage().nbytes()
        self.peak = max(self.peak, self.now())
        return result


@pytest.fixture
def live() -> type[Live]:
    return Live
