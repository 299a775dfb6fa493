"""Accounting: the privacy that a training spends, and the noise that a budget needs.

The mechanism is the Poisson-subsampled Gaussian: at every step each example joins with probability q, the sum
of clipped gradients gets noise of standard deviation sigma * C. Neighbouring data sets differ by adding or
removing one example. Renyi accounting and its conversion are Opacus' own functions, over a wider grid of orders:
its default ends at 63, where small budgets (large sigma) have their optimum beyond.
"""

import functools
import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from dpvision.errors import UserError
from dpvision.privacy.opacus_accountants import PRVAccountant, compute_rdp, get_privacy_spent

ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64)) + [64 + 8 * x for x in range(24)] + [256, 384, 512]
MOST_NOISE = 1e6


@dataclass(frozen=True)
class Mechanism:
    """The training as the accountant sees it.

    Attributes:
        q: The probability with which each example joins a step, in (0, 1].
        sigma: The noise multiplier: the noise's standard deviation as a multiple of C, positive.
        steps: How many steps are made: a whole number. Before the first it is 0, and ε is 0.
    """

    q: float
    sigma: float
    steps: int

    def __post_init__(self) -> None:
        check_range("q", self.q, 0 < self.q <= 1, "a probability in (0, 1], the expected batch / the number of examples")
        check_range("sigma", self.sigma, 0 < self.sigma < math.inf, "the noise multiplier, positive and finite")
        check_range("steps", self.steps, self.steps >= 0 and self.steps % 1 == 0, "a whole number of steps, not negative")

    def rdp(self) -> np.ndarray:
        """Return the Renyi divergence at each order. It adds up over mechanisms that are run one after the other."""
        return _rdp_of_a_step(self.q, self.sigma) * self.steps

    def epsilon(self, delta: float) -> float:
        return epsilon_of(self.rdp(), delta)


@functools.lru_cache(maxsize=256)
def _rdp_of_a_step(q: float, sigma: float) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(compute_rdp(q=q, noise_multiplier=sigma, steps=1, orders=ORDERS))


def check_range(name: str, value: float, fits: bool, meaning: str) -> None:
    """Raise a ValueError that names an argument, its value and what it must be, unless it fits."""
    if not fits:
        raise ValueError(f"{name} = {value}: it must be {meaning}")


def epsilon_of(rdp: np.ndarray, delta: float) -> float:
    """Return the smallest epsilon over the orders (Balle et al. 2020); 0 where nothing was spent."""
    check_range("delta", delta, 0 < delta < 1, "a probability in (0, 1), well below 1 / the number of examples")
    if not rdp.any():
        return 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Optimal order is the")
        return max(0.0, float(get_privacy_spent(orders=ORDERS, rdp=rdp, delta=delta)[0]))


def calibrate(epsilon: float, delta: float, q: float, steps: int, tolerance: float = 1e-5) -> float:
    """Return the least sigma, up to the tolerance, at which `steps` steps spend at most `epsilon`: it never overshoots.

    Args:
        epsilon: The budget, positive.
        delta: The probability in (0, 1) with which ε may not hold, well below 1 / the number of examples.
        q: The probability with which each example joins a step, in (0, 1].
        steps: How many steps are made, at least one.
        tolerance: By how much sigma may be above the least.

    Raises:
        ValueError: An argument is out of its range.
        UserError: No noise is enough.
    """
    check_range("epsilon", epsilon, 0 < epsilon < math.inf, "a positive, finite number")
    check_range("steps", steps, steps >= 1, "a whole number of steps, at least 1")

    def excess(sigma: float) -> float:
        return Mechanism(q, sigma, steps).epsilon(delta) - epsilon

    enough = 1.0
    while excess(enough) > 0:
        enough *= 2
        if enough > MOST_NOISE:
            least = excess(MOST_NOISE) + epsilon
            raise UserError(
                f"no noise keeps {steps} steps at ε = {epsilon} and δ = {delta:g}: at σ = {MOST_NOISE:g} the accountant "
                f"still says ε = {least:.3g}, the least that its orders can show. Choose a larger ε or δ."
            )
    too_little = enough / 2
    while excess(too_little) <= 0:
        enough, too_little = too_little, too_little / 2
    sigma: float = brentq(excess, too_little, enough, xtol=tolerance / 2)
    return sigma if excess(sigma) <= 0 else sigma + tolerance / 2


def most_steps(epsilon: float, delta: float, q: float, sigma: float) -> int:
    """Return the most steps that spend at most `epsilon`."""

    def fits(steps: int) -> bool:
        return Mechanism(q, sigma, steps).epsilon(delta) <= epsilon

    if not fits(1):
        spends = Mechanism(q, sigma, 1).epsilon(delta)
        raise UserError(f"not one step fits ε = {epsilon:g}: at q = {q:.4g} and σ = {sigma:g} one spends {spends:.3g}")
    many = 2
    while fits(many):
        many *= 2
    few = many // 2
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if fits(middle) else (few, middle)
    return few


def prv_epsilon(mechanism: Mechanism, delta: float) -> float | None:
    """Return the upper bound by privacy random variables (Gopi et al. 2021), tighter than Renyi accounting.

    It is exact to a thousandth or 0.01, the coarser, which keeps it affordable; none where exp(epsilon) would overflow.
    """
    about = mechanism.epsilon(delta)
    if about > 500:
        return None
    accountant = PRVAccountant()
    accountant.history = [(mechanism.sigma, mechanism.q, mechanism.steps)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # its first guess at the domain is coarse and says so
        found = float(accountant.get_epsilon(delta=delta, eps_error=max(0.01, about / 1000)))
    return max(0.0, found)  # its curve goes on below 0, where a δ is more than even ε = 0 needs


def selection_epsilon(rdp: np.ndarray, mean_trials: float, delta: float) -> float:
    """Return ε of the best of a geometric number of trials with this mean; `rdp` is one trial's."""
    return epsilon_of(selection_rdp(rdp, mean_trials), delta)


def selection_rdp(rdp: np.ndarray, mean_trials: float) -> np.ndarray:
    """Return the Renyi divergence of the best of K trials, K geometric with this mean (Papernot and Steinke 2022, theorem 2).

    `rdp` is one trial's. For eta = 1: at order a the selection's divergence is at most
    rdp(a) + 2 (1 - 1/b) rdp(b) + 2 log(1/gamma) / b + log(mean) / (a - 1), for any order b, with gamma = 1 / mean.
    """
    orders = np.array(ORDERS)
    extra = np.min(2 * (1 - 1 / orders) * rdp + 2 * np.log(mean_trials) / orders)
    return np.asarray(rdp + extra + np.log(mean_trials) / (orders - 1))
