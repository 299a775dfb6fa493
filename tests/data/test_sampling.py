"""Every example joins a batch with probability q, by its own coin."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpvision.data.sampling import PoissonSampler

BATCHES = 4000
COUNT = 50


def sampler(q: float, count: int = COUNT, seed: int = 0) -> PoissonSampler:
    return PoissonSampler(count, q, torch.Generator().manual_seed(seed))


def inclusions(q: float) -> np.ndarray:
    """Draw all batches and return who joined: batches x examples."""
    drawn, joined = sampler(q), np.zeros((BATCHES, COUNT), dtype=np.int64)
    for row in joined:
        row[drawn.sample().numpy()] = 1
    return joined


@pytest.mark.parametrize("q", [0.01, 0.3, 0.95])
def test_each_example_and_all_together_join_as_often_as_q_says(q):
    joined = inclusions(q)
    assert stats.binomtest(int(joined.sum()), BATCHES * COUNT, q).pvalue > 1e-4
    expected = BATCHES * q
    chi_square = ((joined.sum(0) - expected) ** 2).sum() / (expected * (1 - q))
    assert 1e-4 < stats.chi2.sf(chi_square, COUNT) < 1 - 1e-4


def test_batch_sizes_are_binomial_not_constant():
    sizes = inclusions(0.3).sum(1)
    assert stats.chisquare(*_cells(sizes, stats.binom(COUNT, 0.3))).pvalue > 1e-4


def _cells(sizes: np.ndarray, law: "stats.rv_discrete") -> tuple[list[float], list[float]]:
    """Return observed and expected counts, each tail put together in one cell."""
    low, high = int(law.ppf(0.01)), int(law.ppf(0.99))
    observed = [np.sum(sizes <= low), *(np.sum(sizes == size) for size in range(low + 1, high)), np.sum(sizes >= high)]
    expected = [law.cdf(low), *law.pmf(np.arange(low + 1, high)), law.sf(high - 1)]
    return observed, [BATCHES * p for p in expected]


def test_examples_and_batches_are_drawn_independently():
    joined = inclusions(0.3)
    pairs = np.corrcoef(joined.T)[np.triu_indices(COUNT, 1)]
    assert abs(pairs).max() * np.sqrt(BATCHES) < stats.norm.isf(1e-4 / len(pairs))
    following = np.corrcoef(joined[:-1].ravel(), joined[1:].ravel())[0, 1]
    assert abs(following) * np.sqrt(joined[1:].size) < 4


def test_small_q_gives_empty_batches():
    drawn = sampler(0.01)
    empty = sum(len(drawn.sample()) == 0 for _ in range(1000))
    assert stats.binomtest(empty, 1000, 0.99**COUNT).pvalue > 1e-4


def test_coins_are_finer_than_float32(monkeypatch):
    tossed = []
    rand = torch.rand
    monkeypatch.setattr(torch, "rand", lambda *size, **how: tossed.append(rand(*size, **how)) or tossed[-1])
    sampler(0.5).sample()
    assert (tossed[0] * 2**24 % 1 > 0).any()  # float32 draws are multiples of 2^-24, and q would be rounded to one


@settings(max_examples=50)
@given(st.integers(0, 200), st.floats(0, 1, exclude_min=True), st.integers(0, 2**63))
def test_a_sample_is_ascending_indices_that_the_generators_state_decides(count, q, seed):
    first = sampler(q, count, seed)
    first.sample()
    state = first.generator.get_state()
    sample = first.sample()
    resumed = sampler(q, count)
    resumed.generator.set_state(state)
    assert torch.equal(sample, resumed.sample())
    assert sample.dtype == torch.int64
    assert sample.tolist() == sorted(set(sample.tolist()) & set(range(count)))


def test_q_of_one_draws_everybody():
    assert sampler(1.0).sample().tolist() == list(range(COUNT))


@pytest.mark.parametrize("q", [0.0, -0.1, 1.1, float("nan")])
def test_a_q_that_is_no_probability_is_refused(q):
    with pytest.raises(ValueError, match="probability"):
        sampler(q)
