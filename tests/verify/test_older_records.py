"""Records of before say less, in other words: what they say is verified, and what they do not say is no fault."""

import pytest

from dpvision.plan import specs
from dpvision.privacy.ledger import COMPOSED, HOLDS, TRAINED_ON, price, spent
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


@pytest.fixture
def older(run_spec, search):
    """Return the same with a ledger of format 1, of a run that trains on some of what its search held out."""
    run = run_spec({"recipe.noise": "secret", "data.validation": 100})
    mechanism, found = mechanism_of(run), {"study": {"values": VALUES, "privacy": price(search, [VALUES])}}
    row = {"epoch": "1", "step": str(mechanism.steps), "epsilon": str(mechanism.epsilon(run["budget"]["delta"]))}
    return run, found, [row], spent(run, mechanism, found, written=1)


def test_ledger_in_its_first_words_holds(older):
    *rest, ledger = older
    assert problems(*rest, ledger) == []
    assert ledger["not_accounted"].pop() == TRAINED_ON
    assert ledger["release"]["needs"].pop().startswith("that the examples that the search held out")
    steering = "their loss steers the learning rate and their accuracy picks the best epoch, both without noise"
    ledger["not_accounted"][0] = f"validation examples: {steering}"
    ledger["searches"][0]["meaning"] = COMPOSED.format(holds=HOLDS)
    assert problems(*rest, ledger) == []


def test_older_words_do_not_hold_in_a_ledger_of_today(record):
    *rest, ledger = record
    assert problems(*rest, ledger) == []
    ledger["searches"][0]["meaning"] = COMPOSED.format(holds=HOLDS)
    assert problems(*rest, ledger) == ["searches[0].meaning, in the words of ledgers"]
    ledger["format"] = 3
    assert problems(*rest, ledger) == ["format"]


EDITS = [
    (["neighbours"], "replace one example by another", "neighbours, in the words"),
    (["noise"], "Gaussian, twice as much as stated", "noise, in the words"),
    (["not_accounted"], [], "not_accounted, sentence missing"),
    (["not_accounted"], None, "not_accounted, sentence missing"),
    (["not_accounted", 1], "nothing at all, this is private", "not_accounted, in the words"),
    (["release", "noise"], "these weights may be released", "release.noise, in the words"),
    (["release", "needs"], [], "release.needs, sentence missing"),
    (["searches", 0, "meaning"], "all trials and this run", "searches[0].meaning, in the words"),
    (["large_delta"], "δ N = 0.001: nothing to say", "large_delta, in the words"),
    (["searches", 0, "epsilon_all_composed"], 1.0, "searches[0].epsilon_all_composed, recomputed"),
]


@pytest.mark.parametrize("written", [1, 2])
@pytest.mark.parametrize(("keys", "to", "named"), EDITS)
def test_edited_sentence_of_a_ledger_is_found(record, older, keys, to, named, written):
    *rest, ledger = record if written == 2 else older
    at = ledger
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = to
    if to is None:
        del at[keys[-1]]
    named = "large_delta, recomputed" if "large_delta" in keys and written == 1 else named
    assert [problem for problem in problems(*rest, ledger) if problem.startswith(named)]


@pytest.mark.parametrize("key", ["repeatable", "meaning"])
def test_edited_sentence_of_a_simulation_is_found(run_spec, key):
    run = run_spec({"recipe.simulate": 2})
    mechanism = mechanism_of(run)
    ledger = spent(run, mechanism, {})
    epsilon = str(mechanism.epsilon(run["budget"]["delta"]))
    row = {"epoch": "1", "step": str(mechanism.steps), "simulated_epsilon": epsilon}
    assert problems(run, {}, [row], ledger) == []
    ledger[key] = "these weights may be released under differential privacy"
    assert problems(run, {}, [row], ledger) == [f"{key}, in the words of ledgers"]


def test_a_search_that_does_not_say_what_it_held_out_holds_and_one_that_says_it_wrongly_does_not(search):
    best = {"trials": 1, "privacy": price(search, [VALUES])}
    assert not [*_price_of_trials(search, best, ROWS, "best.json")]
    best["privacy"]["split"] = {"validation": 0, "by": "permutation"}
    assert [finding.what for finding in _price_of_trials(search, best, ROWS, "best.json")] == ["privacy.split by the spec"]
    del best["privacy"]["split"]
    assert not [*_price_of_trials(search, best, ROWS, "best.json")]
