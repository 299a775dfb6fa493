"""One run with many canaries, each in by its own fair coin: guesses of the coins, some right, bound what the run gave away."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom

MOST = 60.0


def p_value(canaries: int, guesses: int, right: int, delta: float, epsilon: float) -> float:
    """Return how likely so many right guesses are, at most, under (ε, δ) (Steinke, Nasr and Jagielski 2023, theorem 5.2)."""
    chance = expit(epsilon)
    below = binom.cdf(np.arange(-1, right), guesses, chance)  # P[W < 0], P[W < 1], ..., P[W < right]
    beta = binom.sf(right - 1, guesses, chance)
    steps = np.arange(1, right + 1)
    alpha = np.max((below[-1] - below[right - steps]) / steps, initial=0.0)
    return float(min(1.0, beta + 2 * canaries * delta * alpha))


def epsilon(canaries: int, guesses: int, right: int, delta: float, level: float) -> float:
    """Return the ε that is refuted at this level, and every one below it; `canaries` counts those without a guess too."""

    def excess(e: float) -> float:
        return p_value(canaries, guesses, right, delta, e) - level

    if excess(0.0) >= 0:
        return 0.0
    return float(brentq(excess, 0.0, MOST, xtol=1e-9)) if excess(MOST) > 0 else MOST


def is_refuted(canaries: int, guesses: int, right: int, level: float, mu: float) -> bool:
    """Return whether so many right guesses refute μ-GDP (Mahloujifar, Melis and Chaudhuri 2024, algorithm 3, k = 2)."""
    r, h = level * right / canaries, level * (guesses - right) / canaries
    for i in range(right - 1, -1, -1):
        if r + h > guesses / canaries:
            return True  # both only grow
        more = max(h, float(ndtr(ndtri(r) - mu)))
        r, h = r + i / (guesses - i) * (more - h), more
    return r + h > guesses / canaries


def mu(canaries: int, guesses: int, right: int, level: float, tolerance: float = 1e-7) -> float:
    """Return μ such that every smaller one is refuted; 0 where nothing is. It does not suffer from many canaries."""
    if not is_refuted(canaries, guesses, right, level, 0.0):
        return 0.0
    low, high = 0.0, 1.0
    while is_refuted(canaries, guesses, right, level, high):
        low, high = high, 2 * high
    while high - low > tolerance:
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(canaries, guesses, right, level, middle) else (low, middle)
    return low
