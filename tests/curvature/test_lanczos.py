"""The Lanczos iteration against matrices whose spectrum is known."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dpvision.curvature import lanczos as module
from dpvision.curvature.lanczos import lanczos

DOUBLE: dict[str, Any] = {"device": "cpu", "dtype": torch.float64}


def rotated(eigenvalues: Tensor, seed: int = 0) -> Tensor:
    """Make a dense symmetric matrix with these eigenvalues."""
    size = len(eigenvalues)
    random = torch.randn(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    rotation = torch.linalg.qr(random).Q
    return (rotation * eigenvalues.double()) @ rotation.T


def close(left: Tensor, right: Tensor, tolerance: float) -> bool:
    return left.shape == right.shape and bool(((left - right).abs() <= tolerance).all())


def test_extreme_eigenvalues_are_found_in_fewer_steps_than_dimensions():
    bulk = torch.linspace(-0.5, 0.5, 300)
    eigenvalues = torch.cat([torch.tensor([-40.0, -7.5, 60.0, 60.0, 90.5]), bulk, torch.zeros(20)])
    matrix = rotated(eigenvalues)
    values, _ = lanczos(lambda v: matrix @ v, len(matrix), 60, seed=0, **DOUBLE)
    assert close(values[:2], torch.tensor([-40.0, -7.5], dtype=torch.float64), 1e-8)
    assert close(values[-2:], torch.tensor([60.0, 90.5], dtype=torch.float64), 1e-8)  # 60 once, as it is one value


def test_as_many_steps_as_dimensions_give_the_whole_spectrum():
    eigenvalues = torch.cat([torch.linspace(-3, -1, 30), torch.zeros(1), torch.logspace(-3, 2, 50)]).double()
    matrix = rotated(eigenvalues)
    values, weights = lanczos(lambda v: matrix @ v, 81, 81, seed=0, **DOUBLE)
    assert close(values, eigenvalues, 1e-10)
    assert (weights > 0).all()


def test_more_steps_than_dimensions_are_not_made():
    matrix, told = rotated(torch.arange(5.0)), []
    values, weights = lanczos(lambda v: matrix @ v, 5, 1000, seed=0, **DOUBLE, progress=lambda *steps: told.append(steps))
    assert len(values) == len(weights) == 5
    assert told[-1] == (5, 5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_it_stops_once_the_vectors_span_an_invariant_subspace(dtype):
    diagonal = torch.tensor([-2.0, 0.0, 5.0]).repeat(60).to(dtype)
    values, weights = lanczos(lambda v: diagonal * v, 180, 100, seed=0, device="cpu", dtype=dtype)
    assert close(values, torch.tensor([-2.0, 0.0, 5.0], dtype=torch.float64), 100 * torch.finfo(dtype).eps)
    assert weights.tolist() == pytest.approx([1 / 3] * 3, abs=0.1)  # each has a third of the directions


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_subspace_that_rounding_hides_only_yields_further_copies_of_eigenvalues(dtype):
    distinct = torch.tensor([-2.0, 0.0, 1.0, 5.0]).double()
    matrix = rotated(distinct.repeat(50)).to(dtype)
    values, weights = lanczos(lambda v: matrix @ v, 200, 200, seed=0, device="cpu", dtype=dtype)
    away = (values[:, None] - distinct).abs()
    assert away.min(dim=1).values.max() < 100 * torch.finfo(dtype).eps
    shares = torch.stack([weights[nearest].sum() for nearest in (away < 0.1).T])
    assert shares.tolist() == pytest.approx([0.25] * 4, abs=0.1)


def test_an_operator_of_nothing_but_zeros_takes_one_step():
    values, weights = lanczos(torch.zeros_like, 50, 20, seed=0, **DOUBLE)
    assert values.tolist() == [0.0] and weights.tolist() == [1.0]


def recording(matrix: Tensor) -> tuple[Callable[[Tensor], Tensor], list[Tensor]]:
    """Return the product, and the list of the vectors that it is asked for."""
    asked: list[Tensor] = []

    def product(vector: Tensor) -> Tensor:
        asked.append(vector.clone())
        return matrix @ vector

    return product, asked


def orthogonality(matrix: Tensor, steps: int) -> float:
    """Measure how far the vectors that the operator was asked about are from orthonormal."""
    product, asked = recording(matrix)
    lanczos(product, len(matrix), steps, seed=0, **DOUBLE)
    basis = torch.stack(asked)
    assert len(basis) == steps
    return float((basis @ basis.T - torch.eye(steps, dtype=torch.float64)).abs().max())


def test_the_basis_stays_orthogonal_where_three_term_recurrence_loses_it(monkeypatch):
    spread = torch.cat([torch.logspace(0, 8, 20), -torch.logspace(0, 5, 10), torch.linspace(-1, 1, 470)])
    matrix = rotated(spread)
    assert orthogonality(matrix, 250) < 1e-10
    whole = module._orthogonal
    monkeypatch.setattr(module, "_orthogonal", lambda vector, basis: whole(vector, basis[-2:]))
    assert orthogonality(matrix, 250) > 0.1


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 30), steps=st.integers(1, 30), seed=st.integers(0, 2**32 - 1))
def test_the_weighted_ritz_values_have_the_operators_moments(size, steps, seed):
    """Lanczos is a quadrature: k points integrate polynomials below degree 2k."""
    random = torch.randn(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    matrix = random + random.T
    product, asked = recording(matrix)
    values, weights = lanczos(product, size, steps, seed=seed, **DOUBLE)
    scale, power = torch.linalg.eigvalsh(matrix).abs().max(), asked[0]
    assert values.abs().max() <= scale * (1 + 1e-12)
    for degree in range(2 * len(values)):
        moment = float((weights * (values / scale) ** degree).sum())
        assert moment == pytest.approx(float(asked[0] @ power), abs=1e-11)
        power = matrix @ power / scale


def test_the_seed_decides_and_the_global_random_state_is_not_touched():
    matrix = rotated(torch.linspace(-1, 1, 100))

    def run(seed: int) -> Tensor:
        return lanczos(lambda v: matrix @ v, 100, 10, seed=seed, **DOUBLE)[0]

    before = torch.get_rng_state()
    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))
    assert torch.equal(before, torch.get_rng_state())


def test_single_precision_starts_from_the_same_vector():
    matrix = rotated(torch.linspace(-1, 1, 100))
    double, _ = lanczos(lambda v: matrix @ v, 100, 20, seed=3, **DOUBLE)
    single, _ = lanczos(lambda v: matrix.float() @ v, 100, 20, seed=3, device="cpu", dtype=torch.float32)
    assert close(single, double, 1e-5)


def test_every_step_is_told():
    matrix, told = rotated(torch.linspace(-1, 1, 30)), []
    lanczos(lambda v: matrix @ v, 30, 4, seed=0, **DOUBLE, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
