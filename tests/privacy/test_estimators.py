"""An audit's estimators say what counts prove: held against worked values, and mechanisms whose ε is known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpvision.privacy.accounting import Mechanism, prv_epsilon
from dpvision.privacy.audit import gaussian, one_run
from dpvision.privacy.audit.claim import Scores, excess, family_epsilon, log_ratio, planned
from dpvision.privacy.audit.rates import Bounds, Counts, counts_of, upper

# in, out, false negatives, false positives, δ, confidence: bounds of both rates, ε in both orders
TWO_WORLDS = [
    (1000, 1000, 0, 0, 0.0, 0.95, 0.003682, 0.003682, 5.600588, 5.600588),
    (1000, 1000, 0, 0, 0.01, 0.999, 0.007572, 0.007572, 4.865558, 4.865558),
    (1000, 1000, 100, 10, 1e-5, 0.95, 0.018313, 0.120288, 3.871959, 2.099374),
    (1000, 1000, 10, 100, 1e-5, 0.95, 0.120288, 0.018313, 2.099374, 3.871959),
    (1000, 1000, 500, 0, 1e-5, 0.95, 0.003682, 0.531451, 4.846141, 0.628446),
    (10000, 10000, 9000, 5, 1e-5, 0.95, 0.001166, 0.905813, 4.391218, 0.097745),
    (500, 1000, 20, 3, 1e-5, 0.99, 0.010934, 0.068319, 4.445123, 2.672561),
    (490000, 490000, 300000, 9000, 0.01, 0.999, 0.019007, 0.614535, 2.983358, 0.457454),
    (25172, 25004, 22654, 9, 0.01, 0.999, 0.00095, 0.90609, 4.481522, 0.087606),
    (200, 200, 100, 100, 0.0, 0.95, 0.571342, 0.571342, 0.0, 0.0),
    (100, 100, 100, 0, 1e-5, 0.95, 0.036217, 1.0, 0.0, 0.0),
]
# canaries, guesses, right ones, δ, level: ε; the first and the second are printed by Steinke et al.
ONE_RUN = [
    (1000, 100, 75, 1e-4, 0.05, 0.672985),
    (100000, 1510, 1439, 1e-5, 0.05, 2.675851),
    (100, 100, 100, 0.0, 0.05, 3.492965),
    (1000, 100, 75, 0.0, 0.05, 0.702214),
    (1000, 1000, 600, 1e-5, 0.05, 0.297227),
    (1000, 200, 190, 1e-5, 0.001, 1.905867),
    (784, 200, 198, 1e-5, 0.05, 3.428295),
    (784, 200, 198, 0.01, 0.05, 0.0),
    (1000, 100, 50, 1e-5, 0.05, 0.0),
]
# μ: ε at δ = 0.01, 1e-5, 1e-6
GAUSSIAN = [
    (0.1, 0.092708, 0.340669, 0.396857),
    (1.0, 2.317789, 4.377178, 4.886554),
    (2.0, 5.997893, 9.997256, 10.997151),
    (5.0, 23.31516, 33.103732, 35.566344),
]
MUS = [
    (1000, 1000, 100, 10, 0.95, 3.263452),
    (1000, 1000, 0, 0, 0.999, 4.857825),
    (10000, 10000, 3085, 3085, 0.999, 0.913701),
    (1000, 1000, 500, 500, 0.95, -0.157835),
]
F_DP = [
    (1000, 100, 75, 0.269495),
    (1000, 1000, 1000, 2.368074),
    (5000, 5000, 3500, 0.35818),
    (100000, 1510, 1439, 0.783859),
    (1000, 100, 50, 0.0),
]
CLAIMS = [
    Mechanism(0.64, 2.11536, 50),
    Mechanism(0.64, 10.01389, 50),
    Mechanism(4096 / 60000, 1.21658, 500),
    Mechanism(0.02, 1.0, 2000),
]


@pytest.mark.parametrize("row", TWO_WORLDS)
def test_counts_of_two_worlds_prove_the_worked_bounds(row):
    inside, out, fn, fp, delta, confidence, fpr, fnr, forward, backward = row
    bounds = Counts(inside, out, fn, fp).bounds(confidence)
    assert (bounds.fpr, bounds.fnr) == pytest.approx((fpr, fnr), abs=1e-6)
    assert (bounds.forward(delta), bounds.backward(delta)) == pytest.approx((forward, backward), abs=2e-5)


@given(st.integers(1, 5000), st.floats(0, 1), st.floats(1e-6, 0.5))
def test_a_bound_of_a_rate_is_the_rate_at_which_so_few_errors_have_that_probability(of, share, alpha):
    count = min(of - 1, int(share * of))
    assert stats.binom.cdf(count, of, upper(count, of, alpha)) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("row", ONE_RUN)
def test_guesses_of_one_run_prove_the_worked_epsilon(row):
    *guesses, epsilon = row
    assert one_run.epsilon(*guesses) == pytest.approx(epsilon, abs=2e-6)


@pytest.mark.parametrize(("canaries", "guesses", "right", "mu"), F_DP)
def test_guesses_of_one_run_prove_the_worked_mu(canaries, guesses, right, mu):
    assert one_run.mu(canaries, guesses, right, 0.05) == pytest.approx(mu, abs=1e-6)


@pytest.mark.parametrize("row", GAUSSIAN)
def test_a_gaussian_mechanism_spends_the_worked_epsilon(row):
    mu, *epsilons = row
    for delta, epsilon in zip((0.01, 1e-5, 1e-6), epsilons, strict=True):
        assert gaussian.epsilon_of(mu, delta) == pytest.approx(epsilon, abs=1e-5)
        assert gaussian.mu_of(epsilon, delta) == pytest.approx(mu, abs=1e-5)


@pytest.mark.parametrize("row", MUS)
def test_rates_prove_the_worked_mu_and_a_negative_one_proves_nothing(row):
    inside, out, fn, fp, confidence, mu = row
    found = Counts(inside, out, fn, fp).bounds(confidence).mu
    assert found == pytest.approx(mu, abs=2e-6)
    assert (gaussian.epsilon_of(found, 1e-5) > 0) == (mu > 0)


@pytest.mark.parametrize("mechanism", CLAIMS)
@pytest.mark.parametrize("delta", [1e-5, 0.01, 0.1])
def test_the_score_s_distribution_has_the_epsilon_of_the_tighter_accountant(mechanism, delta):
    """ε is worked out from one step's density and by privacy random variables, whose bound is higher, by its 0.01."""
    above = prv_epsilon(mechanism, delta) - Scores.of(mechanism).epsilon(delta)
    assert 0 < above < 0.02


@pytest.mark.parametrize("mechanism", CLAIMS[:3])
def test_scores_are_distributed_as_those_that_are_drawn(mechanism):
    random = np.random.default_rng(0)
    noise = random.normal(0, mechanism.sigma, (4000, mechanism.steps))
    for world, joins in (("out", 0), ("inside", random.random(noise.shape) < mechanism.q)):
        drawn = log_ratio(noise + joins, mechanism.q, mechanism.sigma).sum(1)
        scores = Scores.of(mechanism)
        expected = np.interp(drawn, scores.values, np.cumsum(getattr(scores, world)))
        assert stats.kstest(expected, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("mechanism", CLAIMS[:3])
def test_planned_thresholds_give_the_expected_bounds_of_the_claimed_mechanism_and_refute_one_with_less_noise(mechanism):
    random, count, claim = np.random.default_rng(1), 40000, Scores.of(mechanism)
    delta = 0.01
    best, middle = (planned(claim, count, count, 0.999, at) for at in (delta, None))

    def bounds(sigma: float, threshold: float) -> Bounds:
        done = Scores.of(Mechanism(mechanism.q, sigma, mechanism.steps))
        worlds = (random.choice(done.values, count, p=p / p.sum()) for p in (done.inside, done.out))
        return counts_of(*worlds, threshold).bounds(0.999)

    right = bounds(mechanism.sigma, best.threshold)
    assert right.epsilon(delta) == pytest.approx(best.expected, rel=0.1)
    assert excess(right, claim.curve()) <= 0
    wrong = bounds(0.6 * mechanism.sigma, middle.threshold)
    assert excess(wrong, claim.curve()) > 0
    family = family_epsilon(bounds(mechanism.sigma, middle.threshold), mechanism, delta)
    assert 0.7 * claim.epsilon(delta) < family < claim.epsilon(delta)


@settings(deadline=None, max_examples=20)
@given(st.floats(0.1, 3), st.integers(0, 10**6))
def test_bounds_are_missed_no_more_often_than_their_confidence_says(mu, seed):
    """200 audits of a Gaussian mechanism at 95 % miss more than 25 bounds by chance once in 10,000."""
    random, count, threshold = np.random.default_rng(seed), 300, mu / 2 + 0.3
    missed = 0
    for _ in range(200):
        counts = counts_of(random.normal(mu, 1, count), random.normal(0, 1, count), threshold)
        missed += counts.bounds(0.95).mu > mu
    assert missed <= 25


def test_where_nothing_is_proved_the_bound_is_zero():
    assert Bounds(1.0, 1.0).epsilon(0.0) == Bounds(0.6, 0.6).epsilon(0.0) == 0.0
    assert gaussian.epsilon_of(-1.0, 1e-5) == one_run.mu(100, 10, 5, 0.05) == 0.0
    assert family_epsilon(Bounds(0.6, 0.6), CLAIMS[0], 0.01) == 0.0
    assert math.isinf(Bounds(1.0, 1.0).mu)
