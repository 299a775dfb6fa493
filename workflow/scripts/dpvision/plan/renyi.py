"""An estimate without numpy of how many steps a budget allows: for minutes, memory, and "not one step fits".

Rényi differential privacy of the Poisson-subsampled Gaussian (Mironov, Talwar and Zhang 2019): at whole orders by section 3.3,
between 1 and 3, where little noise has its best order, by its integral. The job solves exactly, with the accountant of the
ledger (privacy/mechanism.py).
"""

import functools
import math

ORDERS = (*range(2, 64), *range(64, 257, 16))
BETWEEN = tuple(order / 10 for order in range(11, 30) if order % 10)
STEP = 0.1  # of the integral; its integrand is as smooth as a normal density


@functools.cache
def divergence(q: float, sigma: float, order: int) -> float:
    """Return the Rényi divergence that one step spends at a whole order."""
    if q == 1:
        return order / (2 * sigma**2)
    terms = [
        math.lgamma(order + 1) - math.lgamma(k + 1) - math.lgamma(order - k + 1)
        + k * math.log(q) + (order - k) * math.log1p(-q) + k * (k - 1) / (2 * sigma**2)
        for k in range(order + 1)
    ]  # fmt: skip
    largest = max(terms)
    return (largest + math.log(sum(math.exp(term - largest) for term in terms))) / (order - 1)


@functools.cache
def divergence_between(q: float, sigma: float, order: float) -> float:
    """Return the Rényi divergence that one step spends at an order that is not whole."""
    places = [-8 + STEP * i for i in range(round((16 + order / sigma) / STEP))]
    ratios = [1 - q + q * math.exp(z / sigma - 1 / (2 * sigma**2)) for z in places]
    density = STEP / math.sqrt(2 * math.pi)
    moment = sum(ratio**order * math.exp(-(z**2) / 2) for ratio, z in zip(ratios, places, strict=True)) * density
    return max(math.log(moment), 1e-12) / (order - 1)


def steps_within(epsilon: float, delta: float, q: float, sigma: float) -> int:
    """Return how many steps spend at most ε, by the conversion of Balle et al. (2020)."""

    def within(order: float) -> int:
        budget = epsilon - math.log1p(-1 / order) + math.log(delta * order) / (order - 1)
        spent = divergence(q, sigma, order) if isinstance(order, int) else divergence_between(q, sigma, order)
        return int(budget / spent) if budget > 0 else 0

    best = max(ORDERS, key=within)
    return within(best) if best > 3 else max(map(within, (2, 3, *BETWEEN)))
