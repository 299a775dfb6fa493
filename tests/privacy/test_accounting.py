"""ε and σ agree with published values, with exact formulas, and with each other; a budget is never overdrawn."""

import subprocess
import sys
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants.analysis.gdp import compute_eps_poisson
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

from dpvision.errors import UserError
from dpvision.privacy.accounting import MOST_NOISE, ORDERS, Mechanism, calibrate, epsilon_of, prv_epsilon, selection_epsilon

# --- noise for a budget (Klause et al. 2022): N, epochs, ε, the exact root of ε(σ) = ε at q = 1024 / N, δ = 1e-5 ---

ROOTS = [
    (50_000, 50, 2.89, 1.74391),
    (50_000, 50, 7.42, 0.97308),
    (50_000, 50, 9.88, 0.85230),
    (9_469, 50, 2.89, 3.73149),
    (9_469, 50, 7.42, 1.77991),
    (9_469, 50, 9.88, 1.46425),
    (100_000, 90, 5.0, 1.14818),
    (100_000, 90, 10.0, 0.81488),
    (100_000, 90, 70.0, 0.44262),
]


@pytest.mark.parametrize(("count", "epochs", "epsilon", "root"), ROOTS)
def test_sigma_is_the_least_that_keeps_the_budget(count, epochs, epsilon, root):
    q, steps = 1024 / count, epochs * count // 1024
    sigma = calibrate(epsilon, 1e-5, q, steps)
    assert root - 5e-6 <= sigma <= root + 1e-4  # the root is printed to five digits
    assert epsilon - 0.01 <= Mechanism(q, sigma, steps).epsilon(1e-5) <= epsilon


@pytest.mark.parametrize(("epsilon", "root"), [(3.0, 1.6966), (7.62, 0.9605), (10.0, 0.8480)])
def test_sigma_of_the_authors_own_targets(epsilon, root):
    assert calibrate(epsilon, 1e-5, 1024 / 50_000, 2441) == pytest.approx(root, abs=5e-5 + 1e-5)


@settings(max_examples=12, deadline=None)
@given(
    epsilon=st.floats(0.05, 50),
    delta=st.floats(-8, -3).map(lambda x: 10**x),
    q=st.one_of(st.just(1.0), st.floats(-4, 0).map(lambda x: 10**x)),
    steps=st.integers(1, 20_000),
)
def test_no_budget_is_overdrawn_or_left_unused(epsilon, delta, q, steps):
    sigma = calibrate(epsilon, delta, q, steps)
    assert Mechanism(q, sigma, steps).epsilon(delta) <= epsilon
    assert Mechanism(q, sigma - 2e-5, steps).epsilon(delta) > epsilon


def test_a_budget_below_what_the_orders_can_show_is_refused_with_what_they_can():
    with pytest.raises(UserError, match="ε = 0.001 and δ = 1e-05.*still says ε = 0.00") as refused:
        calibrate(0.001, 1e-5, 0.1, 100)
    least = Mechanism(0.1, MOST_NOISE, 100).epsilon(1e-5)
    assert f"{least:.3g}, the least" in str(refused.value)
    assert calibrate(least * 1.01, 1e-5, 0.1, 100) < MOST_NOISE


# --- De et al. 2022, tables 13, 14, 16 to 20: B, σ, T, then ε at δ = 1e-5 by Rényi accounting for N = 50,000 and
# N = 45,000 and by PRV for N = 50,000, and the most steps that Rényi accounting allows at the nominal ε, N = 50,000 ---

DE = [
    (4096, 10, 875, 0.9877, 1.108, 0.9128, 1, 895),
    (4096, 6, 1125, 1.9996, 2.247, 1.8465, 2, 1125),
    (4096, 5, 1593, 2.9825, 3.357, 2.7573, 3, 1609),
    (4096, 4, 1687, 3.9962, 4.505, 3.6979, 4, 1689),
    (4096, 3, 1843, 5.9522, 6.729, 5.5170, 6, 1868),
    (4096, 3, 2468, 7.0458, 7.977, 6.5396, 8, 3066),
    (16384, 40, 906, 0.9986, 1.120, 0.9236, 1, 908),
    (16384, 24, 1156, 1.9991, 2.246, 1.8483, 2, 1156),
    (16384, 20, 1656, 2.9921, 3.368, 2.7696, 3, 1663),
    (16384, 16, 1765, 3.9937, 4.503, 3.7012, 4, 1769),
    (16384, 12, 2007, 5.9956, 6.781, 5.5686, 6, 2009),
    (16384, 9.4, 2000, 7.9905, 9.060, 7.4347, 8, 2003),
    (16384, 21.1, 250, 0.9976, 1.119, 0.9222, 1, 251),
    (16384, 15.8, 500, 2.0026, 2.250, 1.8509, 2, 498),
    (16384, 12, 1000, 4.0196, 4.532, 3.7243, 4, 991),
    (4096, 5, 164, 0.8728, 0.978, 0.8038, 1, 212),
    (4096, 6, 531, 1.3297, 1.493, 1.2267, 1.5, 663),
    (4096, 6, 906, 1.7768, 1.995, 1.6399, 2, 1125),
    (4096, 5, 2171, 3.5450, 3.994, 3.2804, 4, 2690),
    (4096, 6, 6421, 5.3064, 5.996, 4.9239, 6, 7940),
    (4096, 5, 7226, 7.0614, 7.999, 6.5633, 8, 8927),
    (1024, 5, 781, 0.4457, 0.499, 0.4142, 0.5, 969),
]


@pytest.mark.parametrize(("batch", "sigma", "steps", "rdp", "rdp_45k", "prv", "nominal", "most_steps"), DE)
def test_epsilon_of_published_trainings(batch, sigma, steps, rdp, rdp_45k, prv, nominal, most_steps):
    q = batch / 50_000
    mechanism = Mechanism(q, sigma, steps)
    assert mechanism.epsilon(1e-5) == pytest.approx(rdp, rel=1e-4, abs=5e-5)
    assert Mechanism(batch / 45_000, sigma, steps).epsilon(1e-5) == pytest.approx(rdp_45k, rel=1e-4, abs=5e-4)
    assert prv_epsilon(mechanism, 1e-5) == pytest.approx(prv, rel=2e-3)
    assert Mechanism(q, sigma, most_steps).epsilon(1e-5) <= nominal < Mechanism(q, sigma, most_steps + 1).epsilon(1e-5)


@pytest.mark.parametrize(("batch", "sigma", "steps"), [row[:3] for row in DE])
def test_the_central_limit_is_below_prv_which_is_below_renyi(batch, sigma, steps):
    mechanism = Mechanism(batch / 50_000, sigma, steps)
    gaussian = compute_eps_poisson(steps=steps, noise_multiplier=sigma, sample_rate=mechanism.q, delta=1e-5)
    assert gaussian <= prv_epsilon(mechanism, 1e-5) <= mechanism.epsilon(1e-5)


def test_imagenet_at_its_own_delta():
    assert Mechanism(16384 / 1_271_167, 2.5, 71_589).epsilon(8e-7) == pytest.approx(8.0001, rel=1e-4)


def test_the_constants_that_opacus_tests_itself_with():
    mechanism = Mechanism(0.04, 1.5, 2250)
    assert mechanism.epsilon(1e-5) == pytest.approx(7.32911117143, rel=1e-9)
    assert prv_epsilon(mechanism, 1e-5) == pytest.approx(6.777395712150674, rel=2e-3)


def test_the_accountants_are_opacus_own_though_it_is_not_imported():
    from opacus.accountants import PRVAccountant
    from opacus.accountants.analysis import rdp

    whole = PRVAccountant()
    whole.history = [(1.3, 0.02, 500)]
    assert prv_epsilon(Mechanism(0.02, 1.3, 500), 1e-5) == whole.get_epsilon(delta=1e-5, eps_error=0.01)
    ours = Mechanism(0.02, 1.3, 500).rdp()
    assert (ours == rdp.compute_rdp(q=0.02, noise_multiplier=1.3, steps=1, orders=ORDERS) * 500).all()
    alone = "import sys; import dpvision.privacy.accounting; assert not {'torch', 'opacus'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", alone], check=True)


def test_small_budgets_find_their_order_beyond_the_usual_grid():
    """Table 22's ε = 0.1 is 0.1633 on orders to 63, 0.1045 on dp_accounting's orders, 0.0916 by its PLD accountant."""
    mechanism = Mechanism(2**18 / 1_271_167, 82.6, 100)
    usual = [i for i, order in enumerate(ORDERS) if order <= 63]
    cut = np.where(np.isin(np.arange(len(ORDERS)), usual), mechanism.rdp(), np.inf)
    assert epsilon_of(cut, 8e-7) == pytest.approx(0.1633, abs=5e-5)
    assert 0.0916 < mechanism.epsilon(8e-7) < 0.1045
    assert mechanism.epsilon(8e-7) == pytest.approx(renyi_epsilon(mechanism, 8e-7, range(2, 600)), rel=1e-3)


# --- exact formulas ---


def renyi_epsilon(mechanism: Mechanism, delta: float, orders: Iterable[int]) -> float:
    """Compute ε at whole orders, from the definition: the a-th moment of a binomial mixture of Gaussians."""
    epsilons = []
    for order in orders:
        k = np.arange(order + 1)
        binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
        coins = k * np.log(mechanism.q) + (order - k) * np.log1p(-mechanism.q)
        moment = logsumexp(binomial + coins + k * (k - 1) / (2 * mechanism.sigma**2))
        conversion = np.log1p(-1 / order) - np.log(delta * order) / (order - 1)
        epsilons.append(mechanism.steps * moment / (order - 1) + conversion)
    return min(epsilons)


def exact_epsilon(mechanism: Mechanism, delta: float) -> float:
    """Compute ε of one step, or of any number at q = 1, by the hockey-stick divergence in closed form."""
    assert mechanism.steps == 1 or mechanism.q == 1
    q, sigma = mechanism.q, mechanism.sigma / np.sqrt(mechanism.steps)

    def removed(epsilon: float) -> float:
        x = sigma**2 * np.log((np.exp(epsilon) - 1 + q) / q) + 0.5  # where the mixture is exp(ε) times as dense
        return q * norm.sf(x - 1, scale=sigma) + (1 - q - np.exp(epsilon)) * norm.sf(x, scale=sigma)

    return brentq(lambda epsilon: removed(epsilon) - delta, 1e-9, 200) if removed(1e-9) > delta else 0.0


@settings(max_examples=30, deadline=None)
@given(q=st.floats(-3, 0).map(lambda x: 10**x), sigma=st.floats(0.5, 20), delta=st.sampled_from([1e-6, 1e-5, 1e-3]))
def test_one_step_is_never_said_to_cost_less_than_it_does(q, sigma, delta):
    mechanism = Mechanism(q, sigma, 1)
    exact = exact_epsilon(mechanism, delta)
    assert exact <= mechanism.epsilon(delta)
    assert exact <= prv_epsilon(mechanism, delta) <= exact + 0.025


@pytest.mark.parametrize("steps", [1, 10, 300])
@pytest.mark.parametrize("sigma", [5.0, 20.0])
def test_full_batches_are_the_gaussian_mechanism(sigma, steps):
    mechanism = Mechanism(1.0, sigma, steps)
    exact = exact_epsilon(mechanism, 1e-5)
    np.testing.assert_allclose(mechanism.rdp(), np.array(ORDERS) * steps / (2 * sigma**2), rtol=1e-12)
    assert exact <= prv_epsilon(mechanism, 1e-5) <= exact + 0.025
    assert exact <= mechanism.epsilon(1e-5) <= 1.15 * exact + 0.02


def test_a_tiny_sampling_rate_costs_next_to_nothing():
    """Fewer than one example in a million is ever drawn: δ alone covers it."""
    mechanism = Mechanism(1e-8, 1.0, 100)
    assert 0 <= prv_epsilon(mechanism, 1e-5) < 0.02
    assert mechanism.epsilon(1e-5) == pytest.approx(renyi_epsilon(mechanism, 1e-5, range(2, 100)), rel=0.01)


# --- what must hold everywhere ---

RATES = st.one_of(st.just(1.0), st.floats(-6, 0).map(lambda x: 10**x))
SIGMAS = st.floats(-0.7, 2).map(lambda x: 10**x)


@settings(max_examples=25, deadline=None)
@given(q=RATES, sigma=SIGMAS, steps=st.integers(1, 10**6), more=st.floats(1.01, 3))
def test_more_steps_cost_more_and_more_noise_costs_less(q, sigma, steps, more):
    epsilon = Mechanism(q, sigma, steps).epsilon(1e-5)
    assert Mechanism(q, sigma, int(np.ceil(steps * more))).epsilon(1e-5) >= epsilon
    assert Mechanism(q, sigma * more, steps).epsilon(1e-5) <= epsilon


@given(q=RATES, sigma=SIGMAS)
@settings(max_examples=10, deadline=None)
def test_zero_steps_cost_nothing(q, sigma):
    assert Mechanism(q, sigma, 0).epsilon(1e-5) == 0


def test_prv_of_a_large_epsilon_is_affordable_and_of_an_absurd_one_left_out():
    assert prv_epsilon(Mechanism(1024 / 100_000, 0.44262, 8789), 1e-5) == pytest.approx(64.47, rel=3e-3)
    assert prv_epsilon(Mechanism(1.0, 0.333, 900_000), 1e-5) is None


# --- selection (Papernot and Steinke 2022): ε of the best of a geometric number of trials, mean 10, 30, 100 ---

BASE = 4096 / 50_000
SELECTION = [
    (Mechanism(BASE, 10, 875), (2.10, 2.39, 2.66)),
    (Mechanism(BASE, 6, 1125), (4.01, 4.55, 5.05)),
    (Mechanism(BASE, 5, 1593), (5.72, 6.49, 7.21)),
    (Mechanism(BASE, 4, 1687), (7.38, 8.36, 9.30)),
    (Mechanism(BASE, 3, 1843), (10.3, 11.7, 13.0)),
    (Mechanism(BASE, 3, 3066), (13.4, 14.9, 16.5)),
    (Mechanism(1024 / 50_000, 1.74391, 2441), (None, 6.30, None)),
    (Mechanism(1024 / 50_000, 0.97308, 2441), (None, 13.9, None)),
    (Mechanism(1024 / 50_000, 0.85230, 2441), (None, 17.6, None)),
]


def divergence(mechanism: Mechanism, order: float) -> float:
    """Compute Rényi's divergence of the mixture from the Gaussian by quadrature."""
    q, variance = mechanism.q, mechanism.sigma**2

    def integrand(x: float) -> float:
        return np.exp(order * np.log1p(q * np.expm1((2 * x - 1) / (2 * variance))) + norm.logpdf(x, scale=mechanism.sigma))

    reach = 40 * mechanism.sigma + 3 * order
    moment = quad(integrand, -reach, reach, points=[0, order], limit=500, epsabs=1e-14, epsrel=1e-12)[0]
    return mechanism.steps * np.log(moment) / (order - 1)


@pytest.mark.parametrize(("trial", "published"), SELECTION)
def test_the_price_of_choosing_the_best_of_some_trials(trial, published):
    """Published values are on orders that are coarse where the theorem's second order, b, is below 2."""
    for mean, epsilon in zip((10, 30, 100), published, strict=True):
        if epsilon:
            assert 0.97 * epsilon < selection_epsilon(trial.rdp(), mean, 1e-5) < 1.005 * epsilon


@pytest.mark.parametrize("trial", [SELECTION[0][0], SELECTION[5][0]])
def test_the_price_of_choosing_is_that_of_the_theorem(trial):
    a, b = np.geomspace(2, 26, 60), np.geomspace(1.05, 60, 40)
    at_a, at_b = (np.array([divergence(trial, order) for order in orders]) for orders in (a, b))
    choosing = (2 * (1 - 1 / b) * at_b + 2 * np.log(30) / b).min() + np.log(30) / (a - 1)
    epsilon = (at_a + choosing - np.log(1e-5 * a) / (a - 1) + np.log1p(-1 / a)).min()
    assert selection_epsilon(trial.rdp(), 30, 1e-5) == pytest.approx(epsilon, rel=2e-3)


def test_choosing_costs_more_than_a_trial_and_the_more_trials_the_more():
    trial = Mechanism(BASE, 6, 1125)
    costs = [selection_epsilon(trial.rdp(), mean, 1e-5) for mean in (1, 2, 5, 50)]
    assert [trial.epsilon(1e-5), *costs] == sorted({trial.epsilon(1e-5), *costs})


@pytest.mark.parametrize("delta", [0.5, 0.9])
def test_the_tighter_accountant_never_goes_below_zero(delta):
    assert prv_epsilon(Mechanism(0.64, 10.0, 50), delta) == 0.0
    assert prv_epsilon(Mechanism(0.64, 2.0, 50), 0.01) > 5


# --- arguments out of range ---

GOOD = {"epsilon": 8.0, "delta": 1e-5, "q": 0.1, "steps": 100}
BAD = [
    ("q", 0.0),
    ("q", 1.5),
    ("q", np.nan),
    ("delta", 0.0),
    ("delta", 1.0),
    ("delta", -1e-5),
    ("steps", 0),
    ("steps", 99.5),
    ("steps", np.inf),
    ("epsilon", 0.0),
    ("epsilon", np.inf),
]


@pytest.mark.filterwarnings("error")  # the accountant's own warnings would come before the message
@pytest.mark.parametrize(("name", "value"), BAD)
def test_calibrate_names_the_argument_out_of_range(name, value):
    with pytest.raises(ValueError, match=rf"^{name} = {value}: it must be"):
        calibrate(**(GOOD | {name: value}))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "value"), [("q", 0), ("q", 1.01), ("sigma", 0.0), ("sigma", -1.0), ("steps", -1), ("steps", 1.5)]
)
def test_mechanism_names_the_argument_out_of_range(name, value):
    with pytest.raises(ValueError, match=rf"^{name} = {value}: it must be"):
        Mechanism(**({"q": 0.1, "sigma": 1.0, "steps": 10} | {name: value}))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("delta", [0, 1, 2.0])
def test_epsilon_names_a_delta_out_of_range(delta):
    with pytest.raises(ValueError, match=rf"^delta = {delta}: it must be .* in \(0, 1\)"):
        Mechanism(0.1, 1.0, 10).epsilon(delta)


def test_whole_numbers_of_steps_may_be_of_any_type():
    assert Mechanism(0.1, 1.0, 10.0).epsilon(1e-5) == Mechanism(0.1, 1.0, np.int64(10)).epsilon(1e-5)
