"""A run's q, σ and steps follow from its spec alone."""

from dpvision.privacy.accounting import Mechanism, calibrate
from dpvision.privacy.mechanism import mechanism_of, possible_trials, trial_mechanisms


def test_sigma_is_the_least_for_the_budget_and_the_steps(run_spec):
    assert mechanism_of(run_spec()) == Mechanism(0.1, calibrate(7.42, 1e-4, 0.1, 40), 40)


def test_a_simulation_has_the_mechanism_of_what_it_simulates(run_spec):
    assert mechanism_of(run_spec({"recipe.simulate": 4})) == mechanism_of(run_spec())


def test_the_authors_protocol_says_its_own(run_spec):
    protocol = {"name": "paper", "batches": 15, "sigma": 0.9, "steps": 45}
    assert mechanism_of(run_spec({"protocol": protocol})) == Mechanism(1 / 15, 0.9, 45)


def test_without_a_budget_there_is_none(run_spec):
    assert mechanism_of(run_spec({"budget": None})) is None


def test_a_simulated_trial_spends_what_it_did_and_not_what_it_stands_for(run_spec):
    search = {"run": run_spec({"recipe.simulate": 4}), "space": {"recipe.clip": [1.0, 2.0]}}
    whole = mechanism_of(run_spec())
    (trial,) = trial_mechanisms(search, [{"recipe.clip": 2.0}])
    assert trial == Mechanism(whole.q / 4, whole.sigma / 4, whole.steps)


def test_each_simulation_that_a_search_can_draw_spends_its_own(run_spec):
    search = {"run": run_spec(), "space": {"recipe.clip": [1.0, 2.0], "recipe.simulate": [2, 4]}}
    assert [trial.q for trial in possible_trials(search)] == [0.05, 0.025]
