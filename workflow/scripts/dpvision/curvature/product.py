"""The Hessian of the mean cross-entropy at a model's weights, as an operator on flat vectors.

The loss is averaged over all examples of all physical batches, with the model in evaluation mode.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpvision.curvature.mish import ClosedMish
from dpvision.memory import peak_mb

UNUSED: dict[str, Any] = {
    "allow_unused": True,
    "materialize_grads": True,
}  # auxiliary classifiers, which are there in training alone
Batch = tuple[Tensor, Tensor]
"""Images, in the model's dtype, and labels."""


class Hessian:
    """The map v ↦ Hv, for flat v over the model's trainable parameters in their order, dtype and device.

    The weights must not move between products. Then a batch's gradient is the same for all of them: it is kept with its
    graph, and a product is only a second backward pass. The first product decides how many of the first batches are
    kept. The graph of every other batch is built anew in each product and freed before the next one's.
    """

    def __init__(self, model: nn.Module, batches: Sequence[Batch], memory_mb: float = 0) -> None:
        """Set what is multiplied; `memory_mb` may be in use, as `peak_mb` counts it, and with 0 no graph is kept."""
        self.model, self.batches, self.memory_mb = model, batches, memory_mb
        self.examples = count_examples(batches)
        self.kept: list[Tensor] = []
        self.decided = memory_mb <= 0

    def __call__(self, vector: Tensor) -> Tensor:
        total = torch.zeros_like(vector)
        with undisturbed(self.model) as parameters:
            for number in range(len(self.batches)):
                along = self._derivative if self.decided or number < len(self.kept) else self._first_derivative
                total += along(vector, number, parameters)
        self.decided = True
        return total / self.examples

    def quadratic_forms(self, vectors: Callable[[], Iterable[Tensor]]) -> Tensor:
        """Return vᵀHv for each of the vectors.

        Vectors that are known beforehand share each batch's graph, kept or not. They are asked for anew, in the same
        order, for every batch, so as not to be kept in memory.
        """
        total = torch.zeros(())
        with undisturbed(self.model) as parameters:
            for number in range(len(self.batches)):
                gradient = self._gradient(number, parameters)
                forms = [v @ _derivative_along(v, gradient, parameters, again=True) for v in vectors()]
                total = total + torch.stack(forms).cpu()
                del gradient  # and with it its graph, before the next batch's is built
        return total / self.examples

    def _gradient(self, number: int, parameters: list[nn.Parameter]) -> Tensor:
        return self.kept[number] if number < len(self.kept) else _gradient(self.model, parameters, self.batches[number])

    def _derivative(self, vector: Tensor, number: int, parameters: list[nn.Parameter]) -> Tensor:
        return _derivative_along(vector, self._gradient(number, parameters), parameters, again=number < len(self.kept))

    def _first_derivative(self, vector: Tensor, number: int, parameters: list[nn.Parameter]) -> Tensor:
        """Return the derivative of a batch, and keep its graph where the next batch still fits beside it.

        The next one is taken to need as much as this one did: beside a kept graph it reaches higher by the graph's size.
        """
        with peak_mb(vector.device) as before:
            pass
        with peak_mb(vector.device) as highest:
            gradient = _gradient(self.model, parameters, self.batches[number])
            derivative = _derivative_along(vector, gradient, parameters, again=True)
        with peak_mb(vector.device) as after:
            pass
        graph = after[0] - before[0] if number + 1 < len(self.batches) else 0  # nothing follows the last one
        if highest[0] + graph <= self.memory_mb:
            self.kept.append(gradient)
        else:
            self.decided = True
        return derivative


@contextlib.contextmanager
def undisturbed(model: nn.Module) -> Iterator[list[nn.Parameter]]:
    """Yield the trainable parameters, with the model in evaluation mode; after it, modes and gradients are as before."""
    parameters = list(model.parameters())
    gradients = [parameter.grad for parameter in parameters]
    training = [module for module in model.modules() if module.training]
    try:
        model.eval()
        with torch.enable_grad():
            yield [parameter for parameter in parameters if parameter.requires_grad]
    finally:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        for module in training:
            module.training = True


def count_examples(batches: Sequence[Batch]) -> int:
    return sum(len(labels) for _, labels in batches)


def flat_weights(model: nn.Module) -> Tensor:
    """Return the model's trainable parameters as the vectors are: their size, dtype and device."""
    return flat(parameter.detach() for parameter in model.parameters() if parameter.requires_grad)


def flat(tensors: Iterable[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _gradient(model: nn.Module, parameters: list[nn.Parameter], batch: Batch) -> Tensor:
    """Return the summed loss's gradient, flat, with the graph to differentiate it once more.

    It avoids backward(create_graph=True), which hangs that graph on the very parameters it refers to.
    """
    images, labels = (tensor.to(parameters[0].device) for tensor in batch)
    with ClosedMish():
        loss = functional.cross_entropy(model(images), labels, reduction="sum")
    return flat(torch.autograd.grad(loss, parameters, create_graph=True, **UNUSED))


def _derivative_along(vector: Tensor, gradient: Tensor, parameters: list[nn.Parameter], *, again: bool = False) -> Tensor:
    """Return the derivative of vᵀ∇L, which is Hv. `again` keeps the graph for the next vector."""
    return flat(torch.autograd.grad(gradient, parameters, vector, retain_graph=again, **UNUSED))
