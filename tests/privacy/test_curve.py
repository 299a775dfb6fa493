"""The privacy curve: exact where the mechanism is Gaussian, tighter than other accountants, never better than the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants.analysis.gdp import compute_eps_poisson
from scipy.special import ndtr, ndtri

from dpvision.privacy.accounting import Mechanism, prv_epsilon
from dpvision.privacy.audit.claim import Scores
from dpvision.privacy.curve import Curve, gaussian_delta, gaussian_mu

PUBLISHED = [
    (4096 / 50_000, 3.0, 2468, 1e-5),  # De et al., table 13, ε = 8
    (16_384 / 50_000, 9.4, 2000, 1e-5),  # table 14
    (1024 / 50_000, 0.973, 2441, 1e-5),  # Klause et al., ε = 7.42
    (256 / 40_000, 0.841, 14_062, 1e-5),  # Remerscheid et al., ε = 7
]


@pytest.mark.parametrize(("sigma", "steps"), [(1.0, 1), (40.0, 100), (9.4, 400), (2.0, 36)])
def test_without_sampling_the_curve_is_that_of_one_gaussian(sigma, steps):
    curve, mu = Curve.of(Mechanism(1.0, sigma, steps), 1e-5), np.sqrt(steps) / sigma
    assert curve.mu(1e-5) == pytest.approx(mu, rel=1e-5)
    assert curve.advantage == pytest.approx(2 * ndtr(mu / 2) - 1, rel=1e-5)
    assert curve.true_positives(1e-3) == pytest.approx(ndtr(ndtri(1e-3) + mu), rel=1e-4)
    assert curve.true_positives(0.3) == pytest.approx(ndtr(ndtri(0.3) + mu), rel=1e-4)


@pytest.mark.parametrize(("q", "sigma", "steps", "delta"), PUBLISHED)
def test_epsilon_is_below_that_of_the_other_accountants_and_above_the_central_limit(q, sigma, steps, delta):
    mechanism = Mechanism(q, sigma, steps)
    ours = Curve.of(mechanism, delta).epsilon(delta)
    limit = compute_eps_poisson(steps=steps, noise_multiplier=sigma, sample_rate=q, delta=delta)
    assert 0.97 * limit < ours < prv_epsilon(mechanism, delta) < mechanism.epsilon(delta)


def test_values_of_another_computation():
    # one step's density convolved with itself (privacy/audit/claim.py), which shares no code with dp_accounting
    mechanism = Mechanism(0.08192, 3.0, 2468)
    curve, scores = Curve.of(mechanism, 1e-5), Scores.of(mechanism)
    assert curve.epsilon(1e-5) == pytest.approx(scores.epsilon(1e-5), abs=2e-3)
    for false_positives in (1e-3, 0.05, 0.4):
        # the best attacker guesses "in" above a threshold of the score
        above = np.cumsum(scores.out[::-1])[::-1]
        threshold = int(np.searchsorted(-above, -false_positives))
        reached = scores.inside[threshold:].sum()
        assert reached <= curve.true_positives(false_positives) + 1e-6
        assert curve.true_positives(false_positives) == pytest.approx(reached, abs=2e-3)


def test_a_small_epsilon_is_not_rounded_up():
    # the bound by privacy random variables is to hundredths: 0.0226 here
    assert Curve.of(Mechanism(0.3, 60.0, 1), 1e-5).epsilon(1e-5) == pytest.approx(0.0127, abs=1e-4)


@settings(max_examples=15, deadline=None)
@given(
    q=st.one_of(st.just(1.0), st.floats(-3, 0).map(lambda x: 10**x)),
    sigma=st.floats(0.5, 30),
    steps=st.integers(1, 3000),
    delta=st.floats(-8, -2).map(lambda x: 10**x),
)
def test_all_summaries_bound_each_other(q, sigma, steps, delta):
    curve = Curve.of(Mechanism(q, sigma, steps), delta)
    if curve is None:
        return
    epsilon, mu = curve.epsilon(delta), curve.mu(delta)
    assert 0 <= curve.advantage <= 1
    assert curve.true_positives(1e-3) <= min(1.0, np.exp(epsilon) * 1e-3 + delta) + 1e-9
    assert 1e-3 <= curve.true_positives(1e-3) <= 1e-3 + curve.advantage + 1e-9
    # the Gaussian of this μ promises no more: a larger δ at every ε up to that of δ
    for at in np.linspace(0, epsilon, 5):
        assert curve.delta(at) <= gaussian_delta(mu, at) * (1 + 1e-3) + 1e-9 if mu else curve.delta(at) <= 1e-9


@given(mu=st.floats(0.01, 12), epsilon=st.floats(0, 20))
def test_mu_is_found_again_from_a_point_of_its_curve(mu, epsilon):
    delta = gaussian_delta(mu, epsilon)
    if 1e-12 < delta < 1 - 1e-9:
        assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=1e-6)


def test_mu_of_known_epsilons():
    # audit of Gaussian mechanisms, 60-digit arithmetic: μ of ε = 1, 2, 4, 8 at δ = 1e-5
    found = [gaussian_mu(epsilon, 1e-5) for epsilon in (1, 2, 4, 8)]
    assert found == pytest.approx([0.2681, 0.5016, 0.9249, 1.6660], abs=1e-4)


def test_a_budget_that_promises_nothing_has_no_curve():
    assert Curve.of(Mechanism(0.5, 0.2, 5000), 1e-5) is None
