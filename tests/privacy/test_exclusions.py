"""What a run's ε leaves out."""

import pytest

from dpvision.privacy.exclusions import list_exclusions

WHOLE = {"data.validation": 0, "recipe.schedule": {"name": "constant"}}
FOUND = {"found_by": {"recipe.clip": "a-search"}}
AUTHORS = {"data.validation": 0, "protocol": {"name": "paper", "batches": 10, "sigma": 2.0, "steps": 40}}


def exclusions(run: dict, *held_out: int | None) -> str:
    """List what is left out, where each search held out so many examples; None: its record does not say."""
    searched = [None if count is None else run["data"] | {"validation": count} for count in held_out]
    return " ".join(list_exclusions({**run, "budget": run["budget"] and {**run["budget"], "delta": 1e-6}}, searched))


def test_nothing_is_left_out_without_search_and_held_out(run_spec):
    assert exclusions(run_spec(WHOLE)) == ""
    assert exclusions(run_spec({"budget": None})) == ""  # there is no ε


def test_examples_of_a_search_that_are_trained_on_are_counted(run_spec):
    whole = run_spec(WHOLE | FOUND)
    assert exclusions(whole, 48) == "No ε holds for the 48 examples that the search held out and this run trains on."
    assert "the 48 examples" in exclusions(whole, 12, 48)  # the first twelve are among the others
    assert "No ε holds for the examples that the search" in exclusions(whole, None)
    part = run_spec(WHOLE | FOUND | {"data.validation": 40})
    assert "the 8 examples that the search held out" in exclusions(part, 48)
    assert "trains on" not in exclusions(part, 40) + exclusions(part, None)


def test_roles_of_held_out_examples_are_told(run_spec):
    assert exclusions(run_spec()) == (
        "No ε holds for the 437 held-out examples: they steer the learning rate and pick the best epoch, without noise."
    )
    constant = {"recipe.schedule": {"name": "constant"}}
    assert "examples: they pick the best epoch" in exclusions(run_spec(constant))
    stopped = exclusions(run_spec(constant | FOUND | {"recipe.stop": {"patience": 2, "above": None}}), 437)
    assert "they end the training, decide what the search finds and pick the best epoch" in stopped


def test_choice_by_test_examples_is_told(run_spec):
    said = exclusions(run_spec(AUTHORS))
    assert "test examples steer the learning rate and pick the best epoch" in said and "too high" in said


@pytest.mark.parametrize("changes", [{}, AUTHORS])
def test_simulation_has_no_epsilon(run_spec, changes):
    said = exclusions(run_spec(changes | {"recipe.simulate": 8}))
    assert said.startswith("Simulated: no ε holds for this run")
    assert ("test examples" in said) == (changes == AUTHORS)


def test_large_delta_is_told(run_spec):
    said = list_exclusions(run_spec(WHOLE), [])  # δ = 1e-4, N = 1437
    assert len(said) == 1 and said[0].startswith("δ N = 0.14, above 0.01") and said[0].endswith(".")
