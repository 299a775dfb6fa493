"""The whole privacy curve of a training: ε at every δ, and what an attacker can reach at most.

The curve comes from the distribution of the privacy loss (PLD, by dp_accounting), the tightest accountant here. Every number
of it is an upper bound: losses are rounded up to a grid.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr

from dpvision.privacy.accounting import Mechanism

GRID = 1e-4  # distance of two losses on the grid, or this share of ε where ε is above 1
FALSE_POSITIVES = 1e-3
LARGEST = 500  # ε by Renyi accounting: beyond, exp(ε) is next to an overflow, and the guarantee is none
POINTS = 9  # of the curve at which μ is fitted


@dataclass(frozen=True)
class Curve:
    """A mechanism's guarantee at every δ, in the worse of the two orders of the neighbours."""

    losses: PrivacyLossDistribution

    @classmethod
    def of(cls, mechanism: Mechanism, delta: float) -> "Curve | None":
        """Return the curve of a whole training; none where its ε at δ is so large that it promises nothing."""
        about = mechanism.epsilon(delta)
        if about > LARGEST:
            return None
        grid = GRID * max(1.0, about)
        step = from_gaussian_mechanism(mechanism.sigma, value_discretization_interval=grid, sampling_prob=mechanism.q)
        return cls(step.self_compose(mechanism.steps))

    def epsilon(self, delta: float) -> float:
        """Return the least ε at a δ."""
        return float(self.losses.get_epsilon_for_delta(delta))

    def delta(self, epsilon: float) -> float:
        """Return the least δ at an ε."""
        return min(1.0, float(self.losses.get_delta_for_epsilon(epsilon)))

    @property
    def advantage(self) -> float:
        """Return the most by which an attacker's true positive rate can exceed the false positive rate."""
        return self.delta(0.0)

    def true_positives(self, false_positives: float) -> float:
        """Return the highest true positive rate that an attacker can reach at a false positive rate.

        Each point of the curve bounds it: TPR <= e^ε FPR + δ, and 1 - FPR <= e^ε (1 - TPR) + δ.
        """

        def by_false_positives(epsilon: float) -> float:
            return np.exp(epsilon) * false_positives + self.delta(epsilon)

        def by_false_negatives(epsilon: float) -> float:
            return 1 - np.exp(-epsilon) * (1 - self.delta(epsilon) - false_positives)

        # each has one minimum: the curve is convex in e^ε, and its perspective in e^-ε
        reach = (0.0, self.epsilon(1e-10))
        bounds = (by_false_positives, by_false_negatives)
        return min(1.0, *(float(minimize_scalar(bound, bounds=reach, method="bounded").fun) for bound in bounds))

    def mu(self, delta: float) -> float:
        """Return the least μ so that a Gaussian mechanism of that μ (GDP) promises no more at any δ from here to 1."""
        return max(gaussian_mu(epsilon, self.delta(epsilon)) for epsilon in np.linspace(0.0, self.epsilon(delta), POINTS))

    def summary(self, delta: float) -> dict[str, Any]:
        """Return what a ledger says of the curve."""
        return {
            "mu": self.mu(delta),
            "advantage": self.advantage,
            "true_positives": self.true_positives(FALSE_POSITIVES),
            "at_false_positives": FALSE_POSITIVES,
        }


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the δ at an ε of a mechanism that is μ-GDP (Dong et al. 2022, corollary 2.13)."""
    here, there = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(-np.exp(here) * np.expm1(there - here))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the μ of the Gaussian mechanism that has this δ at this ε."""
    if delta <= 0:
        return 0.0
    delta, high = min(delta, 1 - 1e-12), 1.0  # at δ = 1 no μ is large enough
    while gaussian_delta(high, epsilon) < delta:
        high *= 2
    return float(brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, 1e-9, high, xtol=1e-12))
