"""Two worlds: a canary is out or in, a test with a threshold that was fixed beforehand says which (Jagielski et al. 2020)."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri


def upper(count: int, of: int, alpha: float) -> float:
    """Return the largest rate that is compatible with so many errors at the level α (Clopper and Pearson 1934)."""
    return 1.0 if count >= of else float(betaincinv(count + 1, of - count, 1 - alpha))


@dataclass(frozen=True)
class Counts:
    """The errors of a test: `fp` of `out` observations without the canary, `fn` of `inside` observations with it."""

    inside: int
    out: int
    fn: int
    fp: int

    def bounds(self, confidence: float) -> "Bounds":
        """Return bounds of both rates that hold together with this confidence, whatever their dependence."""
        alpha = (1 - confidence) / 2
        return Bounds(upper(self.fp, self.out, alpha), upper(self.fn, self.inside, alpha))


@dataclass(frozen=True)
class Bounds:
    """Upper bounds of the rates of false positives and false negatives."""

    fpr: float
    fnr: float

    def forward(self, delta: float) -> float:
        """Return the ε that tells the canary's presence from its absence, at least; 0 where nothing is proved."""
        return _epsilon(1 - self.fnr - delta, self.fpr)

    def backward(self, delta: float) -> float:
        """Return the same with the two worlds exchanged."""
        return _epsilon(1 - self.fpr - delta, self.fnr)

    def epsilon(self, delta: float) -> float:
        """Return the larger of both orders: one pair of bounds proves both, and every δ, at no further price."""
        return max(self.forward(delta), self.backward(delta))

    @property
    def mu(self) -> float:
        """Return μ such that the mechanism is not μ'-GDP for any μ' below; not above 0, nothing is proved."""
        return float(-ndtri(self.fpr) - ndtri(self.fnr))


def _epsilon(right: float, wrong: float) -> float:
    return max(0.0, math.log(right / wrong)) if right > 0 else 0.0


def counts_of(inside: np.ndarray, out: np.ndarray, threshold: float) -> Counts:
    """Count the errors of "in, if the score is above the threshold"."""
    return Counts(len(inside), len(out), int((inside <= threshold).sum()), int((out > threshold).sum()))
