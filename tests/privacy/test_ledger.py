"""The ledger says what was spent, by whom it is counted, and what it does not count."""

import numpy as np
import pytest
from dp_accounting.dp_event import (
    ComposedDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.rdp import RdpAccountant

from dpvision.privacy.accounting import ORDERS, Mechanism, epsilon_of, prv_epsilon, selection_epsilon, selection_rdp
from dpvision.privacy.curve import Curve
from dpvision.privacy.ledger import (
    FORMAT,
    PUBLIC_FEATURES,
    PUBLIC_START,
    choice_of,
    counted,
    ledger,
    no_ledger,
    parts_of,
    price,
    simulated_ledger,
    spent,
)
from dpvision.privacy.mechanism import mechanism_of

PLATEAU = {"name": "plateau", "factor": 0.5, "patience": 3}
BUDGET = {"epsilon": 3.0, "delta": 1e-5, "accountant": "rdp"}
RUN = Mechanism(0.02, 1.7, 1000)
SEARCH = {"study": "groups", "trials": 5, "sampling_rate": 0.02, "noise_multiplier": 1.7, "steps": 1000}


def test_every_number_that_the_guarantee_rests_on_is_there():
    found = ledger(RUN, 1000, 1.5, BUDGET, 45_000, [])
    assert found["private"]
    curve = Curve.of(RUN, 1e-5)
    spent = {"rdp": RUN.epsilon(1e-5), "prv": prv_epsilon(RUN, 1e-5), "pld": curve.epsilon(1e-5)}
    assert found["epsilon"] == {"target": 3.0, **spent}
    assert found["curve"] == curve.summary(1e-5)
    assert found["steps"] == {"planned": 1000, "made": 1000}
    assert (found["examples"], found["sampling_rate"], found["noise_multiplier"]) == (45_000, 0.02, 1.7)
    assert (found["clip"], found["delta"], found["accountant"]) == (1.5, 1e-5, "rdp")
    assert found["neighbours"] == "add or remove one training example"
    assert found["sampling"].startswith("Poisson")
    assert found["searches"] == []
    assert "stopped" not in found


def test_large_delta_is_in_the_ledger():
    large, small = (ledger(RUN, 1000, 1.5, BUDGET, count, []) for count in (45_000, 1000))
    assert large["large_delta"].startswith("δ N = 0.45")
    assert "large_delta" not in small
    assert simulated_ledger(RUN, 1000, 1.5, BUDGET, 45_000, 8)["simulated"]["large_delta"] == large["large_delta"]


def test_it_names_what_was_not_accounted_for():
    without, with_search = (
        " ".join(ledger(RUN, 1000, 1.5, BUDGET, 45_000, searches)["not_accounted"]) for searches in ([], [SEARCH])
    )
    assert "validation" in without
    assert "learning rate" in without
    assert "search" not in without
    assert "search" in with_search


def test_it_says_where_the_test_split_chose():
    said = ledger(RUN, 1000, 1.5, BUDGET, 50_000, [], chooser="test")["not_accounted"]
    assert "accuracies on them are too high" in said[0]
    assert not any(line.startswith("validation examples") for line in said)


def test_it_says_where_nothing_was_held_out_and_so_nothing_chose():
    said = ledger(RUN, 1000, 1.5, BUDGET, 50_000, [], chooser=None)["not_accounted"]
    assert "nothing being held out" in said[0]
    assert "no accuracy picks an epoch" in said[0]
    assert said[1:] == ledger(RUN, 1000, 1.5, BUDGET, 50_000, [])["not_accounted"][1:]


def test_it_says_that_a_loss_steers_the_rate_where_the_schedule_follows_one_alone(run_spec):
    follows, constant = (run_spec({"recipe.schedule": schedule}) for schedule in (PLATEAU, {"name": "constant"}))
    said = [spent(spec, mechanism_of(spec), {})["not_accounted"][0] for spec in (follows, constant)]
    assert said == [choice_of(follows), choice_of(constant)]
    assert "their loss steers the learning rate" in said[0] and "their loss steers no learning rate" in said[1]
    assert all("the best epoch, which the metrics have beside the last step" in line for line in said)


def test_a_search_costs_all_its_trials_or_a_random_number_of_them():
    (found,) = ledger(RUN, 1000, 1.5, BUDGET, 45_000, [SEARCH])["searches"]
    assert found["study"] == "groups"
    assert found["trials"] == 5
    assert found["epsilon_all_composed"] == pytest.approx(Mechanism(0.02, 1.7, 6000).epsilon(1e-5), rel=1e-12)
    assert found["epsilon_if_random"] == selection_epsilon(RUN.rdp(), 5, 1e-5)
    assert RUN.epsilon(1e-5) < found["epsilon_if_random"] < found["epsilon_all_composed"] * 2


def test_a_search_at_another_level_is_charged_at_its_own():
    cheap = ledger(RUN, 1000, 1.5, BUDGET, 45_000, [SEARCH | {"noise_multiplier": 17.0}])["searches"][0]
    dear = ledger(RUN, 1000, 1.5, BUDGET, 45_000, [SEARCH])["searches"][0]
    assert RUN.epsilon(1e-5) < cheap["epsilon_all_composed"] < dear["epsilon_all_composed"]


def test_trials_that_differ_are_composed_each_by_its_own():
    trials = [RUN, Mechanism(0.04, 2.0, 500), RUN]
    search = {"study": "batches", **counted(trials)}
    assert parts_of(search) == [(2, RUN), (1, trials[1])]
    (found,) = ledger(RUN, 1000, 1.5, BUDGET, 45_000, [search])["searches"]
    assert found["trials"] == 3
    composed = epsilon_of(sum(trial.rdp() for trial in trials) + RUN.rdp(), 1e-5)
    assert found["epsilon_all_composed"] == pytest.approx(composed, rel=1e-12)
    assert found["epsilon_if_random"] >= max(selection_epsilon(trial.rdp(), 3, 1e-5) for trial in trials)


def test_an_epsilon_that_an_accountant_cannot_compute_is_left_out():
    absurd = ledger(Mechanism(1.0, 0.3, 100_000), 100_000, 1.5, BUDGET, 45_000, [])["epsilon"]
    assert set(absurd) == {"target", "rdp"}


def test_a_run_without_a_budget_claims_nothing():
    assert no_ledger() == {"private": False, "epsilon": None}


def test_a_simulation_says_that_it_is_not_private_what_it_stands_for_and_what_it_did():
    found = simulated_ledger(RUN, 1000, 1.5, BUDGET, 45_000, 8)
    assert (found["private"], found["epsilon"]) == (False, None)
    assert found["meaning"].startswith("simulated, not private")
    true = ledger(RUN, 1000, 1.5, BUDGET, 45_000, [])
    assert found["simulated"] == {"divisor": 8} | {key: true[key] for key in found["simulated"] if key != "divisor"}
    assert found["done"]["epsilon"]["rdp"] == Mechanism(RUN.q / 8, RUN.sigma / 8, RUN.steps).epsilon(1e-5)
    assert found["done"]["epsilon"]["rdp"] > 10 * true["epsilon"]["rdp"]


def test_a_covered_search_is_charged_for_its_mean_number_of_trials_and_the_run():
    # not for the number that was drawn: that is a secret, and the theorem has it in its mean
    dear, cheap = Mechanism(0.02, 1.7, 1000), Mechanism(0.02, 1.9, 1000)
    covered = {"mean_trials": 15, "possible": counted([dear, cheap])}
    searches = [{"study": "rates", **counted([cheap] * drawn), "covered": covered} for drawn in (2, 40)]
    few, many = (ledger(RUN, 1000, 1.5, BUDGET, 45_000, [search])["searches"][0] for search in searches)
    assert few == many
    assert few["epsilon_covered"] == epsilon_of(selection_rdp(dear.rdp(), 15) + RUN.rdp(), 1e-5)
    assert "must leave out" in few["meaning"]


COVERED_BATCHES = {"space": {"recipe.batch": [50, 400], "recipe.clip": [1.0, 2.0]}, "trials": 15, "sampler": "covered"}


@pytest.fixture
def by_batch(run_spec):
    """Make the ledger of a run whose batch a covered search found, of those that were possible."""

    def make(batch: int, change=lambda privacy: None, written: int = FORMAT) -> dict:
        search = {"run": run_spec({"data.validation": 437}), **COVERED_BATCHES}
        values = {"recipe.batch": batch, "recipe.clip": 1.0}
        privacy = price(search, [values])
        change(privacy)
        run = {**run_spec({f"recipe.{key.split('.')[1]}": value for key, value in values.items()})}
        run["found_by"] = dict.fromkeys(values, "study")
        best = {"study": {"values": values, "privacy": privacy}}
        return spent(run, mechanism_of(run), best, written)["searches"][0]

    return make


def test_covered_search_counts_the_dearest_run_it_could_have_found(by_batch, run_spec):
    possible = [mechanism_of(run_spec({"recipe.batch": batch})) for batch in (50, 400)]
    dearest = np.maximum.reduce([mechanism.rdp() for mechanism in possible])
    expected = epsilon_of(selection_rdp(dearest, 15) + dearest, 1e-4)
    assert [by_batch(batch)["epsilon_covered"] for batch in (50, 400)] == [expected, expected]
    older = [by_batch(batch, written=1)["epsilon_covered"] for batch in (50, 400)]
    assert older == [epsilon_of(selection_rdp(dearest, 15) + mechanism.rdp(), 1e-4) for mechanism in possible]
    assert min(older) < expected


def test_covered_search_by_a_known_seed_is_priced_as_any_other(by_batch):
    """Its best.json has no choices: its values came from the seed in its spec, and name the trial."""
    priced = by_batch(50, change=lambda privacy: privacy["covered"].pop("choices"))
    assert "epsilon_covered" not in priced
    assert priced["epsilon_all_composed"] > 0


def test_the_price_of_a_covered_search_is_that_of_another_accountant():
    event = PoissonSampledDpEvent(0.02, GaussianDpEvent(1.7))
    trials = RepeatAndSelectDpEvent(SelfComposedDpEvent(event, 1000), mean=15, shape=1)
    accountant = RdpAccountant(orders=ORDERS)
    accountant.compose(ComposedDpEvent([trials, SelfComposedDpEvent(event, 1000)]))
    search = {"study": "rates", **counted([RUN]), "covered": {"mean_trials": 15, "possible": counted([RUN])}}
    (found,) = ledger(RUN, 1000, 1.5, BUDGET, 45_000, [search])["searches"]
    assert found["epsilon_covered"] == pytest.approx(accountant.get_epsilon(1e-5), rel=2e-3)


READ = "the examples that the search held out and this run trains on"


@pytest.fixture
def chosen(run_spec):
    """Return the ledger of a run that holds out so much, by what a search chose whose trials held out 437 examples."""

    def make(validation: int, by: str = "permutation", old: bool = False, **changes) -> dict:
        search = {"run": run_spec(), "space": {"recipe.clip": [1.0, 2.0]}, "trials": 2, **changes.pop("search", {})}
        privacy = price(search, [{"recipe.clip": 1.0}])
        if old:
            del privacy["split"]
        run = run_spec({"data.validation": validation, "data.by": by, **changes})
        return spent(run, mechanism_of(run), {"study": {"values": {"recipe.clip": 1.0}, "privacy": privacy}})

    return make


@pytest.mark.parametrize(
    ("validation", "by", "old"),
    [(0, "permutation", False), (436, "permutation", False), (437, "last", False), (0, "first", True)],
)
def test_it_says_where_the_run_trains_on_what_the_search_held_out_and_read(chosen, validation, by, old):
    said = chosen(validation, by, old)
    assert said["not_accounted"][-1].startswith(READ)
    (search,) = said["searches"]
    assert f"No ε here holds for {READ}" in search["meaning"]
    assert "holds for this search" not in search["meaning"]


@pytest.mark.parametrize(("validation", "old"), [(437, False), (500, False), (437, True)])
def test_all_trials_composed_hold_where_the_run_holds_out_what_the_search_did(chosen, validation, old):
    said = chosen(validation, old=old)
    assert not any(line.startswith(READ) for line in said["not_accounted"])
    (search,) = said["searches"]
    assert "which holds for this search" in search["meaning"]
    assert READ not in search["meaning"]


def test_a_covered_search_says_so_too(chosen):
    meanings = [chosen(held, search={"sampler": "covered"})["searches"][0]["meaning"] for held in (0, 437)]
    assert [READ in meaning for meaning in meanings] == [True, False]


@pytest.mark.parametrize(("validation", "trained"), [(0, True), (437, False)])
def test_a_release_needs_what_a_search_held_out_to_be_public(chosen, validation, trained):
    needs = chosen(validation, **{"recipe.noise": "secret"})["release"]["needs"]
    (line,) = (line for line in needs if "the search held out are public" in line)
    assert line.endswith(", and this run trains on them") == trained


@pytest.mark.parametrize(
    ("changes", "public"),
    [({"start": {"run": "before", "take": "last"}}, PUBLIC_START), ({"data.kind": "features"}, PUBLIC_FEATURES)],
)
def test_a_release_needs_what_the_run_was_given_to_be_public(run_spec, changes, public):
    for run, there in ((run_spec({"recipe.noise": "secret"}), False), (run_spec({"recipe.noise": "secret", **changes}), True)):
        said = spent(run, mechanism_of(run), {})
        assert (public in said["release"]["needs"], public in said["not_accounted"]) == (there, there)
