"""Records of before say less, in other words: what they say is verified, and what they do not say is no fault."""

import pytest

from dpvision.plan import specs
from dpvision.privacy.ledger import price, spent
from dpvision.privacy.mechanism import mechanism_of
from dpvision.verify.records import _price_of_trials
from dpvision.verify.runs import _ledger

VALUES = {"recipe.clip": 1.5}
ROWS = [{"recipe.clip": "1.5"}]


@pytest.fixture
def search(run_spec):
    return {"run": run_spec(), "space": {"recipe.clip": [1.5, 2.0]}, "trials": 1}


@pytest.fixture
def record(run_spec, search):
    """Return the spec of a run with secret noise, what its search found, its history and its ledger."""
    run = run_spec({"recipe.noise": "secret", "data.validation": 0})
    mechanism, found = mechanism_of(run), {"study": {"values": VALUES, "privacy": price(search, [VALUES])}}
    assert mechanism is not None
    row = {"epoch": "1", "step": str(mechanism.steps), "epsilon": str(mechanism.epsilon(run["budget"]["delta"]))}
    return run, found, [row], spent(run, mechanism, found)


def problems(run: specs.Spec, found: dict, history: list, ledger: dict) -> list[str]:
    return [finding.what for finding in _ledger(run, found, history, ledger, "runs/ours")]


def test_a_ledger_that_names_fewer_needs_and_says_them_otherwise_holds(record):
    *rest, ledger = record
    assert problems(*rest, ledger) == []
    ledger["release"]["needs"] = ["that it is said in other words"]
    del ledger["not_accounted"][-1]
    ledger["searches"][0]["meaning"] = "all trials and this run, which holds for this search"
    assert problems(*rest, ledger) == []


def test_what_such_a_ledger_says_in_numbers_is_verified_all_the_same(record):
    *rest, ledger = record
    ledger["release"]["needs"] = []
    ledger["searches"][0]["epsilon_all_composed"] = 1.0
    assert problems(*rest, ledger) == ["searches[0].epsilon_all_composed, recomputed"]


def test_a_search_that_does_not_say_what_it_held_out_holds_and_one_that_says_it_wrongly_does_not(search):
    best = {"trials": 1, "privacy": price(search, [VALUES])}
    assert not [*_price_of_trials(search, best, ROWS, "best.json")]
    best["privacy"]["split"] = {"validation": 0, "by": "permutation"}
    assert [finding.what for finding in _price_of_trials(search, best, ROWS, "best.json")] == ["privacy.split by the spec"]
    del best["privacy"]["split"]
    assert not [*_price_of_trials(search, best, ROWS, "best.json")]
