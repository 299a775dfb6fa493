"""A run's q, σ and steps follow from its spec alone."""

from dpvision.privacy.accounting import Mechanism, calibrate
from dpvision.privacy.mechanism import mechanism_of


def test_sigma_is_the_least_for_the_budget_and_the_steps(run_spec):
    assert mechanism_of(run_spec()) == Mechanism(0.1, calibrate(7.42, 1e-4, 0.1, 40), 40)


def test_a_simulation_has_the_mechanism_of_what_it_simulates(run_spec):
    assert mechanism_of(run_spec({"recipe.simulate": 4})) == mechanism_of(run_spec())


def test_the_authors_protocol_says_its_own(run_spec):
    protocol = {"name": "paper", "batches": 15, "sigma": 0.9, "steps": 45}
    assert mechanism_of(run_spec({"protocol": protocol})) == Mechanism(1 / 15, 0.9, 45)


def test_without_a_budget_there_is_none(run_spec):
    assert mechanism_of(run_spec({"budget": None})) is None
