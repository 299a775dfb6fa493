"""Gaussian differential privacy (Dong et al. 2019): telling N(0, 1) from N(μ, 1) is as hard as telling neighbours."""

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

MOST = 1e4


def delta_of(mu: float, epsilon: float) -> float:
    """Return the δ of a μ-GDP mechanism at an ε; in logarithms, since the plain difference underflows."""
    first, second = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(math.exp(first) * -math.expm1(min(0.0, second - first)))


def epsilon_of(mu: float, delta: float) -> float:
    """Return the ε of a μ-GDP mechanism at a δ; 0 where μ proves nothing."""
    if mu <= 0 or delta_of(mu, 0.0) <= delta:
        return 0.0
    most = 1.0
    while delta_of(mu, most) > delta:
        most *= 2
    return float(brentq(lambda epsilon: delta_of(mu, epsilon) - delta, 0.0, most, xtol=1e-9))


def mu_of(epsilon: float, delta: float) -> float:
    """Return the μ at which a Gaussian mechanism spends ε at δ."""
    return float(brentq(lambda mu: delta_of(mu, epsilon) - delta, 1e-6, MOST, xtol=1e-12))


def advantage_of(mu: float) -> float:
    """Return the most by which the rates of true and false positives can differ."""
    return float(2 * ndtr(mu / 2) - 1)
