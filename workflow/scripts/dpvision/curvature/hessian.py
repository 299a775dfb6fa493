"""The Hessian of the training loss at the trained weights (Klause et al. 2022, appendix A).

The largest eigenvalue and the trace are computed by PyHessian, as the paper did; the spectrum, which the
paper's number of negative eigenvalues and condition number need and PyHessian cannot give, by Lanczos.
All take their products with vectors from `Hessian`: PyHessian's own are the same numbers at a higher price.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from pyhessian import hessian as PyHessian
from pyhessian.utils import group_product
from torch import Tensor, nn

from dpvision.curvature.lanczos import lanczos
from dpvision.curvature.product import (
    Batch,
    Hessian,
    flat,
    flat_weights,
    undisturbed,
)
from dpvision.curvature.spectrum import summary
from dpvision.errors import UserError

Progress = Callable[[str, int, int], None]
"""Function that is told the stage, how much of it is done, and how much there is at most."""


def analyse(
    model: nn.Module,
    batches: Sequence[Batch],
    *,
    iterations: int,
    tolerance: float,
    lanczos_steps: int,
    seed: int,
    memory_mb: float = 0,
    progress: Progress = lambda stage, done, total: None,
) -> dict[str, Any]:
    """Return all numbers of the Hessian of the mean cross-entropy over the batches, ready for JSON.

    The batches' images have the model's dtype. The model, its gradients and the global random state are
    left as they were. Each stage draws from its own seed, so that none depends on how long another took.
    As many batches' graphs are kept as `memory_mb` has room for beside Lanczos' vectors.
    """
    weights = flat_weights(model)
    vectors_mb = min(lanczos_steps, len(weights)) * weights.nbytes / 2**20
    hessian = Hessian(model, batches, memory_mb - vectors_mb)
    if not hessian(weights).isfinite().all():
        raise UserError(
            "The Hessian is not finite at these weights: the training diverged.\n"
            "Look at the run's history; take another run, or a smaller learning rate."
        )
    power_seed, trace_seed, more_seed, lanczos_seed = map(int, np.random.SeedSequence(seed).generate_state(4))
    power = largest_eigenvalue(hessian, iterations, tolerance, power_seed, progress)
    samples = trace_samples(hessian, iterations, tolerance, trace_seed, progress)
    more = more_trace_samples(hessian, iterations - len(samples), more_seed, progress)
    return {
        "examples": hessian.examples,
        "parameters": len(weights),
        **power,
        **_mean("trace", samples),
        **_mean("trace_full", samples + more),
        **lanczos_spectrum(hessian, lanczos_steps, lanczos_seed, progress),
    }


def largest_eigenvalue(
    hessian: Hessian, iterations: int, tolerance: float, seed: int, progress: Progress
) -> dict[str, float | int]:
    """Return the eigenvalue largest in magnitude, with its sign, by PyHessian's power iteration.

    PyHessian returns the estimate before the one that satisfied the tolerance; and since it adds 1e-6 to
    the norms it divides by, an estimate λ is too small by 2e-6 / λ of itself, which matters to none but
    very flat minima. lambda_max_lanczos has neither flaw.
    """
    with _pyhessian(hessian, seed, lambda done: progress("power", done, iterations)) as pyhessian:
        (value,), _ = pyhessian.eigenvalues(maxIter=iterations, tol=tolerance)
        return {"lambda_max_power": float(value), "power_iterations": pyhessian.products}


def trace_samples(hessian: Hessian, iterations: int, tolerance: float, seed: int, progress: Progress) -> list[float]:
    """Return vᵀHv for random signs v until the running mean changes by less than the tolerance: PyHessian's Hutchinson.

    It may end after a few samples, when one happens to lie near the mean of those before; so their mean
    is the paper's number, not a good one. And the change is divided by the mean itself rather than by its
    magnitude, so that any negative mean satisfies the tolerance, whatever the next sample is.
    """
    with _pyhessian(hessian, seed, lambda done: progress("trace", done, iterations)) as pyhessian:
        return [float(sample) for sample in pyhessian.trace(maxIter=iterations, tol=tolerance)]


def more_trace_samples(hessian: Hessian, count: int, seed: int, progress: Progress) -> list[float]:
    """Return the samples that PyHessian would have gone on to draw had it not stopped."""
    if count == 0:
        return []
    weights = flat_weights(hessian.model)
    done = itertools.count(1)

    def signs() -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(count):
            yield (2 * torch.randint(2, weights.shape, generator=generator) - 1).to(weights)
            progress("trace_full", next(done), count * len(hessian.batches))

    return hessian.quadratic_forms(signs).tolist()


def lanczos_spectrum(hessian: Hessian, steps: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Return the Ritz values with their weights, and what is read off them."""
    weights = flat_weights(hessian.model)
    values, ritz_weights = lanczos(
        hessian,
        len(weights),
        steps,
        seed=seed,
        device=weights.device,
        dtype=weights.dtype,
        progress=lambda done, total: progress("lanczos", done, total),
    )
    return {
        "lanczos_steps": len(values),
        "ritz_values": values.tolist(),
        "ritz_weights": ritz_weights.tolist(),
        **summary(values.numpy(), ritz_weights.numpy(), torch.finfo(weights.dtype).eps),
    }


def _mean(name: str, samples: list[float]) -> dict[str, float | int | None]:
    """Return the mean with its standard error, which takes two samples."""
    error = float(np.std(samples, ddof=1)) / math.sqrt(len(samples)) if len(samples) > 1 else None
    return {name: float(np.mean(samples)), f"{name}_standard_error": error, f"{name}_samples": len(samples)}


class _PyHessian(PyHessian):
    """PyHessian's iterations over our products."""

    def __init__(self, hessian: Hessian, progress: Callable[[int], None]) -> None:
        super().__init__(hessian.model, nn.CrossEntropyLoss(), dataloader=hessian.batches, cuda=False)
        self.device = self.params[0].device  # its own choice is between the CPU and the first GPU
        self.hessian, self.progress, self.products = hessian, progress, 0

    def dataloader_hv_product(self, v: list[Tensor]) -> tuple[float, list[Tensor]]:
        product = self.hessian(flat(v).to(self.params[0].dtype))
        pieces = product.split([parameter.numel() for parameter in self.params])
        shaped = [piece.view_as(parameter) for piece, parameter in zip(pieces, self.params, strict=True)]
        self.products += 1
        self.progress(self.products)
        return group_product(shaped, v).item(), shaped


@contextlib.contextmanager
def _pyhessian(hessian: Hessian, seed: int, progress: Callable[[int], None]) -> Iterator[_PyHessian]:
    """Yield PyHessian on the model's own device, with its draws from the global random state seeded."""
    with undisturbed(hessian.model) as parameters, _seeded(seed, parameters[0].device):
        yield _PyHessian(hessian, progress)


@contextlib.contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reach GPUs that were not forked
        for gpu in gpus:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
        yield
