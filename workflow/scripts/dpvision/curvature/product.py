"""The Hessian of the mean cross-entropy at a model's weights, as what it does to flat vectors.

The loss is averaged over all examples of all physical batches, with the model in evaluation mode. A
batch's graph is freed before the next one's is built: the physical batch bounds the memory, not the data.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

Batch = tuple[Tensor, Tensor]
"""Images, in the model's dtype, and labels."""
Product = Callable[[Tensor], Tensor]


def hessian_product(model: nn.Module, batches: Sequence[Batch]) -> Product:
    """v ↦ Hv, for flat v over the model's trainable parameters in their order, dtype and device."""
    examples = count_examples(batches)

    def product(vector: Tensor) -> Tensor:
        total = torch.zeros_like(vector)
        with undisturbed(model) as parameters:
            for batch in batches:
                total += _derivative_along(vector, _gradient(model, parameters, batch), parameters)
        return total / examples

    return product


def quadratic_forms(model: nn.Module, batches: Sequence[Batch], vectors: Callable[[], Iterable[Tensor]]) -> Tensor:
    """vᵀHv for each of the vectors.

    Vectors that are known beforehand share each batch's graph, which saves a third of a product's cost or
    more. They are asked for anew, in the same order, for every batch, so as not to be kept in memory.
    """
    total = torch.zeros(())
    with undisturbed(model) as parameters:
        for batch in batches:
            gradient = _gradient(model, parameters, batch)
            forms = [v @ _derivative_along(v, gradient, parameters, again=True) for v in vectors()]
            total = total + torch.stack(forms).cpu()
            del gradient  # and with it its graph, before the next batch's is built
    return total / count_examples(batches)


@contextlib.contextmanager
def undisturbed(model: nn.Module) -> Iterator[list[nn.Parameter]]:
    """The trainable parameters, with the model in evaluation mode; after it, modes and gradients are as before."""
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
    """The model's trainable parameters as the vectors are: their size, dtype and device."""
    return _flat(parameter.detach() for parameter in model.parameters() if parameter.requires_grad)


def _flat(tensors: Iterable[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _gradient(model: nn.Module, parameters: list[nn.Parameter], batch: Batch) -> Tensor:
    """Of the summed loss, flat, with the graph to differentiate it once more.

    Not by backward(create_graph=True), which hangs that graph on the very parameters it refers to.
    """
    images, labels = (tensor.to(parameters[0].device) for tensor in batch)
    loss = functional.cross_entropy(model(images), labels, reduction="sum")
    return _flat(torch.autograd.grad(loss, parameters, create_graph=True))


def _derivative_along(vector: Tensor, gradient: Tensor, parameters: list[nn.Parameter], *, again: bool = False) -> Tensor:
    """The derivative of vᵀ∇L, which is Hv. `again` keeps the graph for the next vector."""
    return _flat(torch.autograd.grad(gradient, parameters, vector, retain_graph=again))
