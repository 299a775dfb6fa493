"""Two-sided tests: what a lower bound of ε cannot see, since it is no leak, or not one along this canary.

Each returns the probability of a number as small and of one as large as what was found, if the claim holds.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

TINY = 1e-12  # for a deviation of constants


@dataclass(frozen=True)
class Found:
    """A number that a test looks at, and how likely the claim makes smaller and larger ones."""

    value: float
    expected: float
    less: float
    more: float
    count: int
    """Count of the numbers that it rests on."""

    def __post_init__(self) -> None:
        """Take what is no number, as the correlation of constants, for as large as can be."""
        if math.isnan(self.less) or math.isnan(self.more):
            object.__setattr__(self, "less", 1.0)
            object.__setattr__(self, "more", 0.0)


def normal(value: float, expected: float, deviation: float, count: int) -> Found:
    """Look at a number that is normal, or nearly so."""
    z = (value - expected) / deviation
    return Found(float(value), expected, float(stats.norm.cdf(z)), float(stats.norm.sf(z)), count)


def variance(values: np.ndarray) -> Found:
    """Look at the mean square of what is to be N(0, 1)."""
    squares, count = float(np.square(values, dtype=np.float64).sum()), values.size
    return Found(squares / count, 1.0, float(stats.chi2.cdf(squares, count)), float(stats.chi2.sf(squares, count)), count)


def tails(values: np.ndarray) -> Found:
    """Look at the fourth moment, 3 for a normal distribution of whatever variance; its logarithm is nearly normal."""
    flat = values.astype(np.float64).ravel()
    kurtosis = float(np.mean(flat**4) / np.mean(flat**2) ** 2)
    p = stats.kurtosistest(flat, alternative="less").pvalue
    return Found(kurtosis, 3.0, float(p), float(stats.kurtosistest(flat, alternative="greater").pvalue), flat.size)


def mean(values: np.ndarray, expected: float) -> Found:
    """Look at the mean of many numbers, by their own standard deviation: what else is wrong with them is not its matter."""
    return normal(float(values.mean()), expected, max(float(values.std()), TINY) / math.sqrt(values.size), values.size)


def correlation(first: np.ndarray, second: np.ndarray) -> Found:
    """Look at the correlation of what is to be independent and normal."""
    r, count = float(np.corrcoef(first.ravel(), second.ravel())[0, 1]), first.size
    r = min(max(r, -1 + 1e-15), 1 - 1e-15)
    t = r * math.sqrt((count - 2) / (1 - r**2))
    return Found(r, 0.0, float(stats.t.cdf(t, count - 2)), float(stats.t.sf(t, count - 2)), count)


def largest_correlation(rows: np.ndarray) -> Found:
    """Look at the pair of rows that is correlated most, for better or worse; there are many pairs."""
    count, length = rows.shape
    r = np.abs(np.corrcoef(rows) - np.eye(count)).max()
    t = min(r, 1 - 1e-12) * math.sqrt((length - 2) / (1 - min(r, 1 - 1e-12) ** 2))
    return Found(float(r), 0.0, 1.0, float(min(1.0, count * (count - 1) * stats.t.sf(t, length - 2))), rows.size)


def association(first: np.ndarray, second: np.ndarray) -> Found:
    """Look at the correlation of two rows of coins that are to be independent.

    The probabilities are exact for any q (Fisher 1935): given how many coins of each row are true, the number of places
    where both are is hypergeometric.

    Args:
        first: Coins, true or false.
        second: As many others.
    """
    count, of_first, of_second = first.size, int(first.sum()), int(second.sum())
    both, expected = int((first & second).sum()), of_first * of_second / first.size
    deviation = math.sqrt(expected * (count - of_first) * (count - of_second) / count)
    coins = stats.hypergeom(count, of_first, of_second)
    return Found((both - expected) / max(deviation, TINY), 0.0, float(coins.cdf(both)), float(coins.sf(both - 1)), count)


def oddest(tests: list[Found]) -> Found:
    """Return the oddest of some tests, its probabilities as many times as large as there are tests."""
    odd = min(tests, key=lambda found: min(found.less, found.more))
    many = len(tests)
    return Found(odd.value, odd.expected, min(1.0, many * odd.less), min(1.0, many * odd.more), many)


def rate(count: int, of: int, q: float) -> Found:
    """Look at how many of so many coins fell on one side."""
    less, more = stats.binom.cdf(count, of, q), stats.binom.sf(count - 1, of, q)
    return Found(count / of, q, float(less), float(more), of)


def dispersion(counts: np.ndarray, of: int, q: float) -> Found:
    """Look at how counts of `of` coins each vary over what independent coins do; gamma with the right two moments."""
    spread = of * q * (1 - q)
    statistic = float(np.square(counts - of * q).sum() / spread)
    of_one = 2 + (1 - 6 * q * (1 - q)) / spread  # variance of a square
    shape, scale = counts.size / of_one, of_one
    less, more = (float(f(statistic, shape, scale=scale)) for f in (stats.gamma.cdf, stats.gamma.sf))
    return Found(statistic / counts.size, 1.0, less, more, counts.size)


def coarse(values: np.ndarray) -> Found:
    """Look at how many numbers are those of bfloat16, to a hundred-thousandth: of fine ones it is few."""
    bits = values.astype(np.float32).view(np.uint32)
    near = ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)
    share = np.abs(near - values) <= 1e-5 * np.abs(values)
    found = rate(int(share.sum()), share.size, COARSE)
    return Found(found.value, COARSE, 1.0, found.more, found.count)


COARSE = 1e-5 * 2 * 2**8  # at most so many: numbers of bfloat16 are 2^-8 apart, where they are densest
