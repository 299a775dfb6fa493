"""Secret noise: distributed as the accountant assumes, on a grid that tells nothing of the sum, from no seed."""

import os

import numpy as np
import pytest
import torch
from scipy import stats

from dpvision import secret
from dpvision.data.augmentation import Views
from dpvision.data.sampling import PoissonSampler
from dpvision.secret import BITS, GRID, Secret, add_noise

COUNT = 200_000


@pytest.fixture
def from_a_seed(monkeypatch) -> None:
    """Put numbers of a seed in the place of the system's, so that a test of a distribution comes out the same each time."""
    random = np.random.default_rng(0)
    monkeypatch.setattr(os, "urandom", random.bytes)


@pytest.mark.usefixtures("from_a_seed")
def test_numbers_are_uniform_and_gaussian():
    uniform, gaussian = Secret().uniform(COUNT), Secret().gaussian(COUNT)
    assert stats.kstest(uniform.numpy(), "uniform").pvalue > 1e-3
    assert stats.kstest(gaussian.numpy(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(gaussian[1:], gaussian[:-1])[0, 1]) < 5 / COUNT**0.5


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_no_number_is_an_end_nor_infinite_whatever_the_system_gives(byte, monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda count: byte * count)
    (number,) = Secret().uniform(1)
    assert 0 < number < 1
    assert (number if byte == b"\x00" else 1 - number) == 2.0 ** -(BITS + 1)
    assert Secret().gaussian(1).isfinite()


def test_all_numbers_come_from_the_system(monkeypatch):
    """Where the system gives zeros alone, no other source is left that could make two numbers differ."""
    monkeypatch.setattr(os, "urandom", bytes)
    least = torch.tensor(2.0 ** -(BITS + 1), dtype=torch.float64)
    assert (Secret().uniform(1000) == least).all()
    assert (Secret().gaussian(1000) == secret.DRAWS**0.5 * torch.special.ndtri(least)).all()
    sums = [torch.zeros(1000)]
    add_noise(sums, 1.0, Secret())
    assert len(sums[0].unique()) == 1
    assert len(PoissonSampler(1000, 2.0**-50, Secret()).sample()) == 1000


def test_each_gaussian_takes_bytes_of_its_own(monkeypatch):
    counts = []
    monkeypatch.setattr(os, "urandom", lambda count: counts.append(count) or bytes(count))
    Secret().gaussian(1000)
    assert sum(counts) == 8 * secret.DRAWS * 1000


@pytest.mark.usefixtures("from_a_seed")
def test_noise_reaches_sums_of_any_order_in_memory():
    sums = [torch.zeros(30, 40).t(), torch.zeros(2, 3, 20, 20).to(memory_format=torch.channels_last)]
    add_noise(sums, 3.0, Secret())
    for total in sums:
        assert stats.kstest((total / 3).flatten().numpy(), "norm").pvalue > 1e-3


@pytest.mark.usefixtures("from_a_seed")
def test_noise_has_the_deviation_that_is_asked_for_on_every_tensor(monkeypatch):
    monkeypatch.setattr(secret, "AT_ONCE", 1000)
    sums = [torch.full((70, 100), 5.0), torch.zeros(3001), torch.zeros(())]
    add_noise(sums, 3.0, Secret())
    assert stats.kstest(torch.cat([((sums[0] - 5) / 3).flatten(), sums[1] / 3]).numpy(), "norm").pvalue > 1e-3
    assert sums[2] != 0


def test_noisy_sums_lie_on_one_grid_whatever_was_in_them():
    """Else the digits of a sum close to 0 would say that it had been 0: noise alone has finer ones than noise on a 1."""
    for start in (0.0, 1.0, 1 / 3, -2.2):
        sums = [torch.full((50_000,), start)]
        add_noise(sums, 3.0, Secret())
        places = sums[0].double() / (3 * GRID)
        near = places.abs() < 2**20  # where single precision shows every place
        assert (places - places.round())[near].abs().max() < 0.1
        assert len(places[near].round().remainder(8).unique()) == 8


def test_nothing_is_drawn_twice_and_no_seed_decides():
    draws = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)
        source = Secret()
        sampler, views = PoissonSampler(1000, 0.5, source), Views(4, 0.5, 2, True, source, rotate=10.0, erase=0.5)
        draws.append((sampler.sample(), views.draw(100), source.gaussian(100)))
    assert not any(one.shape == other.shape and torch.equal(one, other) for one, other in zip(*draws, strict=True))


@pytest.mark.usefixtures("from_a_seed")
def test_coins_and_views_are_those_of_a_generator_in_distribution():
    sizes = [len(PoissonSampler(1000, 0.1, Secret()).sample()) for _ in range(400)]
    assert abs(np.mean(sizes) - 100) < 5 * (90 / 400) ** 0.5
    assert 60 < np.var(sizes) < 130
    options = {"pad": 2, "flip": 0.3, "views": 2, "include_original": False, "rotate": 20.0, "erase": 0.4}
    ours, theirs = (Views(**options, generator=g).draw(4000) for g in (Secret(), torch.Generator().manual_seed(0)))
    assert ours.dtype == theirs.dtype
    for one, other in zip(ours.flatten(0, 1).T, theirs.flatten(0, 1).T, strict=True):
        assert stats.ks_2samp(one.numpy(), other.numpy()).pvalue > 1e-3
    assert set(ours[..., 0].flatten().tolist()) == {-2, -1, 0, 1, 2}
    assert Views(**options, generator=Secret()).draw(0).shape == (0, 2, 8)
