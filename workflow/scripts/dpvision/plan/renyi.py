"""An estimate without numpy of how many steps a budget allows: for minutes, memory, and "not one step fits".

Rényi differential privacy of the Poisson-subsampled Gaussian at whole orders (Mironov, Talwar and Zhang 2019, section 3.3).
The job solves exactly, with the accountant of the ledger (privacy/mechanism.py).
"""

import functools
import math

ORDERS = (*range(2, 64), *range(64, 257, 16))


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


def steps_within(epsilon: float, delta: float, q: float, sigma: float) -> int:
    """Return how many steps spend at most ε, by the conversion of Balle et al. (2020)."""
    left = ((order, epsilon - math.log1p(-1 / order) + math.log(delta * order) / (order - 1)) for order in ORDERS)
    return max((int(budget / divergence(q, sigma, order)) for order, budget in left if budget > 0), default=0)
