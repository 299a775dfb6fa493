"""The power of comparisons: how many seeds would decide one, and what a verdict by chosen seeds would be worth."""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr

from dpvision.reporting.verdicts import CONTRADICTED, LEVEL, SUPPORTED, UNDECIDED, Estimate, critical

POWER = 0.8
MOST = 100_000  # seeds: beyond, nobody trains so often
QUANTILES = (np.arange(400) + 0.5) / 400
WORLDS = 20_000


class Spread(NamedTuple):
    """The spread of what an effect is the mean of, on the scale of its interval."""

    of_one: float
    """The standard deviation of one seed's effect; of a line, so much that its error falls with the root of the points."""
    n: int
    lost: int = 1
    """Degrees of freedom that the estimate took."""


def spread_of(found: Estimate, n: int, lost: int = 1, logarithmic: bool = False, among: int = 1) -> Spread | None:
    """Return the spread behind an interval; none where there is no interval."""
    if found.low is None or found.high is None:
        return None
    low, high = (math.log(end) if logarithmic else end for end in (found.low, found.high))
    return Spread((high - low) / 2 / critical(n - lost, among) * math.sqrt(n), n, lost)


def distance(effect: float, claimed: dict[str, Any], logarithmic: bool = False) -> float:
    """Return how far an effect is from what would make it undecided: from the farthest end that it is beyond, or else the
    nearest end of where it is claimed to be."""
    scale = math.log if logarithmic else float

    def at(value: float | None, otherwise: float) -> float:
        return otherwise if value is None else -math.inf if logarithmic and value <= 0 else scale(value)

    effect, above, below = scale(effect), at(claimed["above"], -math.inf), at(claimed["below"], math.inf)
    least, most = claimed["about"] or (None, None)
    beyond = max(above - effect, effect - below, at(least, -math.inf) - effect, effect - at(most, math.inf))
    return beyond if beyond > 0 else min(effect - above, below - effect)


def power(effect: float, n: int, lost: int = 1, among: int = 1) -> float:
    """Return the probability that an interval excludes what lies `effect` standard deviations away from the truth."""
    return float(ndtr(effect * math.sqrt(n) - critical(n - lost, among) * _spreads(n - lost)).mean())


@functools.lru_cache(maxsize=4096)
def _spreads(free: int) -> np.ndarray:
    """Return the spreads that are estimated of a spread of 1, each as likely as any other."""
    return np.sqrt(stats.chi2.ppf(QUANTILES, free) / free)


@functools.lru_cache(maxsize=4096)
def least_effect(n: int, lost: int = 1, among: int = 1) -> float:
    """Return the effect, in standard deviations, that n seeds decide with enough power."""
    return float(brentq(lambda effect: power(effect, n, lost, among) - POWER, 0, 1e4))


def seeds_for(effect: float, lost: int = 1, among: int = 1) -> int | None:
    """Return the least number of seeds that decide an effect, in standard deviations; none: more than anybody trains."""
    if effect <= 0:
        return None
    few, many = lost, lost + 1
    while least_effect(many, lost, among) > effect:
        if many > MOST:
            return None
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if least_effect(middle, lost, among) <= effect else (middle, many)
    return many


def with_power(verdict: str, effects: list[float], spread: Spread | None, among: int = 1) -> str:
    """Return a verdict, or that it is undecided where n seeds have too little power.

    `effects`: how far from undecided the effect that was seen is, and that in print; power for one of them is enough.
    """
    if verdict not in (SUPPORTED, CONTRADICTED) or spread is None:
        return verdict
    least = least_effect(spread.n, spread.lost, among) * spread.of_one
    return verdict if max(effects) >= least * (1 - 1e-12) else UNDECIDED


@functools.lru_cache(maxsize=64)
def risk_of_chosen(n: int) -> float:
    """Return how often a sentence without any truth is supported where the n best of 2 n seeds are shown, by simulation."""
    drawn = np.sort(np.random.default_rng(0).standard_normal((WORLDS, 2 * n)), axis=1)[:, n:]
    mean, spread = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
    least = max(critical(n - 1) / math.sqrt(n), least_effect(n))
    return float((mean >= least * spread).mean())


def chosen_in_words(counts: set[int]) -> str:
    """Say what a verdict would be worth had its seeds been chosen."""
    said = [f"{risk_of_chosen(n):.0%} of cases (n = {n})" for n in sorted(counts) if n > 1]
    if not said:
        return ""
    return (
        f"- **Chosen seeds.** Seeds stand in the configuration before any is run. Had they been chosen among twice as many, "
        f"the n with the best effects, a sentence without any truth would be *supported* in {', '.join(said)}, and not in "
        f"{(1 - LEVEL) / 2:.1%} at most. Whoever repeats these runs with other seeds finds that out."
    )
