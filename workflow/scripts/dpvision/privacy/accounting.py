"""How much privacy a training spends, and how much noise a budget needs.

The mechanism is the Poisson-subsampled Gaussian: at every step each example joins with probability q, the sum
of clipped gradients gets noise of standard deviation sigma * C. Neighbouring data sets differ by adding or
removing one example. Renyi accounting and its conversion are Opacus' own functions, over a wider grid of orders:
its default ends at 63, where small budgets (large sigma) have their optimum beyond.
"""

import functools
import warnings
from dataclasses import dataclass

import numpy as np
from opacus.accountants import PRVAccountant
from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent

ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64)) + [64 + 8 * x for x in range(24)] + [256, 384, 512]


@dataclass(frozen=True)
class Mechanism:
    """The training as the accountant sees it."""

    q: float
    sigma: float
    steps: int

    def rdp(self) -> np.ndarray:
        """Renyi divergence at each order. It adds up over mechanisms that are run one after the other."""
        return _rdp_of_a_step(self.q, self.sigma) * self.steps

    def epsilon(self, delta: float) -> float:
        return epsilon_of(self.rdp(), delta)


@functools.lru_cache(maxsize=256)
def _rdp_of_a_step(q: float, sigma: float) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(compute_rdp(q=q, noise_multiplier=sigma, steps=1, orders=ORDERS))


def epsilon_of(rdp: np.ndarray, delta: float) -> float:
    """The smallest epsilon over the orders (Balle et al. 2020); 0 where nothing was spent."""
    if not rdp.any():
        return 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Optimal order is the")
        return max(0.0, float(get_privacy_spent(orders=ORDERS, rdp=rdp, delta=delta)[0]))


def calibrate(epsilon: float, delta: float, q: float, steps: int, tolerance: float = 1e-5) -> float:
    """The least sigma, up to the tolerance, at which `steps` steps spend at most `epsilon`: it never overshoots.

    Halving the interval that holds the root and returning its private end.
    """
    enough = 1.0
    while Mechanism(q, enough, steps).epsilon(delta) > epsilon:
        enough *= 2
        if enough > 1e6:
            raise ValueError(f"no noise up to sigma = 1e6 gives epsilon = {epsilon} at delta = {delta}")
    too_little = 0.0
    while enough - too_little > tolerance:
        middle = (enough + too_little) / 2
        if Mechanism(q, middle, steps).epsilon(delta) > epsilon:
            too_little = middle
        else:
            enough = middle
    return enough


def prv_epsilon(mechanism: Mechanism, delta: float) -> float:
    """The upper bound by privacy random variables (Gopi et al. 2021), tighter than Renyi accounting."""
    accountant = PRVAccountant()
    accountant.history = [(mechanism.sigma, mechanism.q, mechanism.steps)]
    return float(accountant.get_epsilon(delta=delta))


def selection_epsilon(rdp: np.ndarray, mean_trials: float, delta: float) -> float:
    """Epsilon of the best of K trials, K geometric with this mean (Papernot and Steinke 2022, theorem 2, eta = 1).

    `rdp` is one trial's. For eta = 1: at order a the selection's divergence is at most
    rdp(a) + 2 (1 - 1/b) rdp(b) + 2 log(1/gamma) / b + log(mean) / (a - 1), for any order b, with gamma = 1 / mean.
    """
    orders = np.array(ORDERS)
    extra = np.min(2 * (1 - 1 / orders) * rdp + 2 * np.log(mean_trials) / orders)
    return epsilon_of(rdp + extra + np.log(mean_trials) / (orders - 1), delta)
