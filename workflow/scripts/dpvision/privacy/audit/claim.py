"""The claim of a ledger's q, σ and steps about a canary's score, and what would refute it.

The score is the logarithm of the likelihood ratio of all that was observed along a canary: no test of it is better. Its
distribution in both worlds is worked out here by convolution, apart from the accountants whose claim is audited.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from dpvision.privacy.accounting import Mechanism
from dpvision.privacy.audit.rates import Bounds

DELTAS = [float(delta) for delta in np.geomspace(1e-5, 0.9, 16)]
FINEST, SHARE = 2**21, 1 / 50  # points of the grid at most; of a step's standard deviation, the distance of two
REACH = 12  # standard deviations to both sides
CANDIDATES = 500  # thresholds
CLOSE = 1e-3  # relative, of σ


def log_ratio(observed: np.ndarray, q: float, sigma: float) -> np.ndarray:
    """Return the logarithm of how much likelier an observation is with the canary in the data: N(0, σ²), with q N(1, σ²)."""
    return np.logaddexp(math.log1p(-q) if q < 1 else -np.inf, math.log(q) + (2 * observed - 1) / (2 * sigma**2))


def excess(bounds: Bounds, claims: list[tuple[float, float]]) -> float:
    """Return by how much a pair of rates exceeds the claimed ε, at the δ where that is most: above 0, it is refuted.

    One pair of bounds speaks of all δ at once: that is one event, at the confidence of the pair.
    """
    return max(bounds.epsilon(delta) - epsilon for delta, epsilon in claims)


class Rates(Protocol):
    """A choice of thresholds to plan by, each with the rates of false positives and negatives that it has."""

    def rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...


@dataclass(frozen=True)
class Scores:
    """The distribution of a canary's score after all steps, in both worlds: probabilities on an even grid."""

    values: np.ndarray
    inside: np.ndarray
    out: np.ndarray

    @classmethod
    def of(cls, mechanism: Mechanism) -> "Scores":
        """Convolve the score of one step with itself, as often as there are steps."""
        q, sigma, steps = mechanism.q, mechanism.sigma, mechanism.steps
        x = np.linspace(-9 * sigma, 1 + 9 * sigma, 20001)
        ratio = log_ratio(x, q, sigma)
        density = np.exp(-(x**2) / (2 * sigma**2)) * (x[1] - x[0]) / (sigma * math.sqrt(2 * math.pi))
        moments = [(p @ ratio, math.sqrt(p @ ratio**2 - (p @ ratio) ** 2)) for p in (density, density * np.exp(ratio))]
        ends = [steps * mean + side * REACH * (math.sqrt(steps) * spread) for mean, spread in moments for side in (-1, 1)]
        most = max(1.0, *map(abs, ends)) + float(ratio.max())
        wide = max(2 * most / FINEST, SHARE * min(spread for _, spread in moments))
        count = 2 ** math.ceil(math.log2(2 * most / wide))
        grid = wide * (np.arange(count) - count // 2)
        edges = np.concatenate([grid - wide / 2, [np.inf]])
        # x where the score crosses an edge; below log(1 - q) there is none
        with np.errstate(invalid="ignore", divide="ignore"):
            inner = np.log(np.maximum(np.exp(np.minimum(edges, 700)) - (1 - q), 0)) - math.log(q)
        crossing = np.where(edges > 700, np.inf, sigma**2 * np.where(np.isfinite(edges), inner, np.inf) + 0.5)
        of_none, of_one = (np.diff(ndtr((crossing - mean) / sigma)) for mean in (0, 1))
        whole = [_power(p, steps, count // 2) for p in ((1 - q) * of_none + q * of_one, of_none)]
        return cls(grid, *whole)

    def delta(self, epsilon: float) -> float:
        """Return the δ at an ε, of the worse order."""
        forward = self.inside @ np.clip(-np.expm1(np.minimum(epsilon - self.values, 0)), 0, 1)
        backward = self.out @ np.clip(-np.expm1(np.minimum(epsilon + self.values, 0)), 0, 1)
        return float(max(forward, backward))

    def epsilon(self, delta: float) -> float:
        """Return the ε at a δ, to a millionth."""
        low, high = 0.0, float(self.values[-1])
        if self.delta(low) <= delta:
            return 0.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high

    def curve(self) -> list[tuple[float, float]]:
        return [(delta, self.epsilon(delta)) for delta in DELTAS]

    def rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return thresholds, and the rates of false positives and negatives that each has."""
        kept = np.linspace(0, len(self.values) - 1, len(self.values)).astype(int)
        fpr, fnr = np.clip(1 - np.cumsum(self.out), 0, 1), np.clip(np.cumsum(self.inside), 0, 1)
        some = kept[(fpr > 1e-9) & (fnr > 1e-9)]
        some = some[:: max(1, len(some) // CANDIDATES)]
        return self.values[some] + (self.values[1] - self.values[0]) / 2, fpr[some], fnr[some]


@dataclass(frozen=True)
class Planned:
    """A threshold that was chosen before any data, from the claim alone, and the bound that it is expected to give."""

    threshold: float
    expected: float


def planned(scores: Rates, inside: int, out: int, confidence: float, delta: float | None) -> Planned:
    """Return the threshold whose expected counts give the best ε at δ, or without δ the best μ."""
    thresholds, fpr, fnr = scores.rates()
    level = (1 - confidence) / 2
    a = betaincinv(out * fpr + 1, np.maximum(out * (1 - fpr), 1e-9), 1 - level)
    b = betaincinv(inside * fnr + 1, np.maximum(inside * (1 - fnr), 1e-9), 1 - level)
    if delta is None:
        found = -ndtri(a) - ndtri(b)
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            orders = [np.log(np.maximum(1 - miss - delta, 1e-300) / wrong) for miss, wrong in ((b, a), (a, b))]
        found = np.maximum(*orders)
    best = int(np.argmax(found))
    return Planned(float(thresholds[best]), max(0.0, float(found[best])))


def family_epsilon(bounds: Bounds, mechanism: Mechanism, delta: float) -> float:
    """Return the ε of the most noise that is not refuted, q and steps as claimed: a bound within this family alone."""
    if bounds.fpr + bounds.fnr >= 1:
        return 0.0

    def refuted(sigma: float) -> Scores | None:
        scores = Scores.of(Mechanism(mechanism.q, sigma, mechanism.steps))
        return scores if excess(bounds, scores.curve()) > 0 else None

    low = high = mechanism.sigma
    while not refuted(high):
        low, high = high, 1.5 * high
        if high > 100 * mechanism.sigma:
            return 0.0
    while refuted(low):
        low, high = low / 1.5, low
    while high / low > 1 + CLOSE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return Scores.of(Mechanism(mechanism.q, high, mechanism.steps)).epsilon(delta)


def _power(probabilities: np.ndarray, steps: int, zero: int) -> np.ndarray:
    """Convolve probabilities with themselves, as often as there are steps; place `zero` of the grid is the number 0."""
    turned = np.fft.rfft(np.roll(probabilities, -zero))
    return np.clip(np.roll(np.fft.irfft(turned**steps, len(probabilities)), zero), 0, 1)
