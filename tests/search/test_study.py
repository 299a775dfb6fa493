"""Any number of workers share a study: nothing is tried twice, nothing is lost, and what it finds is one text."""

import csv
import itertools
import json
import math
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import jobs
import numpy as np
import optuna
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState
from places import GROUPS, Place

from dpvision.data.prepared import data_part, load
from dpvision.errors import UserError
from dpvision.locks import held, is_held
from dpvision.plan import specs
from dpvision.privacy.accounting import calibrate
from dpvision.search import study as study_module
from dpvision.search.study import FINISHED, JournalLock, Study, geometric
from dpvision.training.fit import Training
from dpvision.training.machine import device

# --- every value once ---


def test_one_worker_tries_every_value_once_and_chooses_the_best_by_validation(place):
    here = place().work()
    assert Counter(here.tried()) == Counter(GROUPS)
    assert json.loads(here.done(0).read_text()) == {"trials": [0, 1, 2, 3]}
    best = here.conclude()
    accuracies = {row["model.groups"]: float(row["validation_top1"]) for row in here.rows()}
    assert best["validation_top1"] == max(accuracies.values()) == accuracies[str(best["values"]["model.groups"])]
    assert [row["state"] for row in here.rows()] == ["complete"] * 4
    assert [row["epochs"] for row in here.rows()] == ["2"] * 4


def test_a_trial_is_the_training_of_its_values(place):
    here = place(trials=2).work()
    for trial in here.study().trials(*FINISHED):
        spec = specs.with_values(here.spec["run"], trial.params)
        alone = Training(spec, load(here.data, data_part(spec)), 512, device(), here.decided)
        alone.run()
        assert [trial.intermediate_values[row["epoch"]] for row in alone.history] == [
            row["validation_top1"] for row in alone.history
        ]
        assert trial.value == alone.history[-1]["validation_top1"]


@pytest.mark.slow
def test_two_workers_at_once_share_the_values(place):
    here = place()
    assert [job.end() for job in [here.start(0), here.start(1)]] == [0, 0]
    assert Counter(here.tried()) == Counter(GROUPS)
    ours = [json.loads(here.done(worker).read_text())["trials"] for worker in (0, 1)]
    assert sorted(ours[0] + ours[1]) == [0, 1, 2, 3]


def test_as_many_trials_as_asked_for_and_no_more(place, pretend):
    pretend(lambda groups: [0.5, 0.6])
    here = place(trials=3)
    here.work(0).work(1)
    assert len(here.tried()) == len(set(here.tried())) == 3
    assert json.loads(here.done(1).read_text()) == {"trials": []}
    assert here.conclude()["trials"] == 3


@pytest.fixture
def undisturbed(place) -> Place:
    here = place("undisturbed", epochs=3)
    assert here.start(0).end() == 0
    here.conclude()
    return here


def without_seconds(file: Path) -> list[dict[str, str]]:
    with open(file, encoding="utf-8", newline="") as lines:
        return [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(lines)]


@pytest.mark.slow
@pytest.mark.parametrize("survivor", [False, True], ids=["taken up later", "taken up by another worker"])
def test_a_killed_workers_trial_goes_on_from_its_checkpoint_to_the_same_result(place, undisturbed, survivor):
    here = place(epochs=3)
    victim = here.start(0, jobs.work_until, "_make_step", 6)
    other = None
    if survivor:
        victim.reaches((here.folder / "trials" / "0.lock").exists)
        other = here.start(1)
    assert victim.end() == -signal.SIGKILL
    assert (other or here.start(1)).end() == 0
    assert "trial 0 continues from step 6 of 12" in (here.folder / "1.log").read_text()
    here.conclude()
    assert here.best.read_bytes() == undisturbed.best.read_bytes()
    assert not here.tried(TrialState.FAIL)
    assert Counter(here.tried()) == Counter(GROUPS)
    if not survivor:  # whose trials come in another order
        assert without_seconds(here.table) == without_seconds(undisturbed.table)
    histories = [without_seconds(study.folder / "trials/0/history.csv") for study in (here, undisturbed)]
    assert histories[0] == histories[1]
    assert [row["epoch"] for row in histories[0]] == ["1", "2", "3"]
    assert not list(here.folder.glob("trials/*/checkpoint"))


def test_a_trial_killed_before_its_first_checkpoint_keeps_its_number_and_values(place, undisturbed):
    here = place(epochs=3)
    assert here.start(0, jobs.work_until, "_make_step", 0).end() == -signal.SIGKILL
    assert here.start(1).end() == 0
    here.conclude()
    assert without_seconds(here.table) == without_seconds(undisturbed.table)


def test_a_trial_left_behind_before_its_values_were_drawn_is_drawn_as_it_would_have_been(place, pretend):
    pretend(lambda groups: [0.5])
    whole, cut = place("whole").work(), place("cut")
    cut.study().optuna.ask()
    cut.work()
    assert [trial.params for trial in cut.study().trials(*FINISHED)] == [
        trial.params for trial in whole.study().trials(*FINISHED)
    ]


def test_a_covered_search_draws_how_many_trials_once_for_all_workers(place, pretend):
    pretend(lambda groups: [0.5])
    here = place(sampler="covered", trials=3)
    count = here.study().count
    assert {here.study().count for _ in range(5)} == {count}
    here.work()
    assert len(here.tried(TrialState.COMPLETE)) == count


def test_a_covered_search_draws_values_again_and_trains_each_trial_with_noise_of_its_own(place, pretend, monkeypatch):
    monkeypatch.setattr(study_module, "geometric", lambda mean: 12)
    pretend(lambda groups: [0.5])
    seeds, known = [], study_module.Training
    monkeypatch.setattr(study_module, "Training", lambda run, *_, **__: seeds.append(run["seed"]) or known(run))
    here = place(sampler="covered", trials=3).work()
    tried = [str(value) for value in here.tried(TrialState.COMPLETE)]
    assert len(tried) == 12 > len(set(tried)) > 1
    assert len(set(seeds)) == 12
    assert here.conclude()["privacy"]["covered"]["mean_trials"] == 3


RATES = {"recipe.optimizer.learning_rate": {"log_uniform": [0.01, 10.0]}, "recipe.clip": {"uniform": [0.1, 1.0]}}


@pytest.fixture
def covered(place, monkeypatch) -> Callable[..., Place]:
    """Make a covered search of ranges whose number of trials is known."""
    monkeypatch.setattr(study_module, "geometric", lambda mean: 3)
    return lambda name="study": place(name, sampler="covered", trials=3, space=RATES)


def values_and_seed(here: Place, trial: optuna.Trial) -> tuple[Any, ...]:
    return *trial.params.values(), study_module._run_of(here.spec, trial)["seed"]


def test_covered_search_draws_nothing_that_its_seed_tells(covered):
    """The seed is published: whoever could draw the values again would know which trial was the best."""
    drawn = []
    for here in (covered("one"), covered("other")):
        with here.study().next_trial() as first, here.study().next_trial() as second:
            drawn += [values_and_seed(here, first), values_and_seed(here, second)]
    assert all(len(set(values)) == 4 for values in zip(*drawn, strict=True))


def test_covered_trial_left_behind_keeps_what_was_drawn(covered):
    here = covered()
    with here.study().next_trial() as trial:
        before = values_and_seed(here, trial)
    with here.study().next_trial() as again:
        assert (again.number, values_and_seed(here, again)) == (trial.number, before)


def test_covered_trial_left_half_drawn_keeps_its_values(covered):
    here = covered()
    study = here.study()
    trial = study.optuna.ask()
    trial.set_user_attr("seed", 5)
    known = trial.suggest_float("recipe.optimizer.learning_rate", 0.01, 10.0, log=True)
    with here.study().next_trial() as again:
        assert list(again.params) == list(RATES)
        assert values_and_seed(here, again)[::2] == (known, 5)


def test_covered_search_refuses_values_drawn_from_its_seed(covered):
    here = covered()
    here.study().optuna.ask().suggest_float("recipe.optimizer.learning_rate", 0.01, 10.0, log=True)
    with pytest.raises(UserError, match=f"{here.folder}: .* published.* Delete this folder"):
        here.study()


def test_how_many_trials_a_covered_search_has_is_geometric_with_its_mean():
    # 4,000 numbers: the mean's standard deviation is 0.23, the share's 0.004; four of them are exceeded once in 10,000
    drawn = [geometric(15) for _ in range(4000)]
    assert abs(np.mean(drawn) - 15) < 4 * 0.23
    assert abs(np.mean(np.array(drawn) == 1) - 1 / 15) < 4 * 0.004
    assert geometric(1) == 1


@pytest.mark.slow
def test_what_was_reported_before_the_kill_decides_as_it_would_have(place):
    """An epoch that fell below the threshold was reported, and its worker killed before it could give the trial up."""
    here = place(trials=1, prune_below=0.2, prune_after=2)
    with here.study().next_trial() as trial:
        trial.report(0.9, 1)
        trial.report(0.1, 2)
    here.work()
    (pruned,) = here.study().trials(TrialState.PRUNED)
    assert pruned.intermediate_values == {1: 0.9, 2: 0.1}
    assert len(without_seconds(here.folder / "trials/0/history.csv")) == 2


def test_a_trials_checkpoint_of_another_spec_is_refused_by_name(place):
    here = place()
    assert here.start(0, jobs.work_until, "_make_step", 2).end() == -signal.SIGKILL
    file = here.folder / "trials/0/checkpoint/state.pt"
    here.study().checkpoint(0).save({**torch.load(file), "spec_digest": "another"})
    with pytest.raises(UserError, match=r"trials/0/checkpoint/state\.pt belongs to another spec \(another, not"):
        here.work()
    file.unlink()
    assert len(here.work().tried()) == 4


def test_a_checkpoint_that_outlived_its_trial_is_cleared_away(place, pretend):
    pretend(lambda groups: [0.5])
    here = place().work()
    here.study().checkpoint(2).save({})
    here.conclude()
    assert not list(here.folder.glob("trials/*/checkpoint"))


SPACE = {"model.groups": [1, 2, 4], "recipe.clip": [0.5, 1.0]}


def order_of(here: Place) -> list[tuple[Any, ...]]:
    return [tuple(trial.params[key] for key in SPACE) for trial in here.work().study().trials(*FINISHED)]


def test_a_grid_tries_every_combination_in_its_order(place, pretend):
    pretend(lambda groups: [0.5])
    found = order_of(place(space=SPACE, trials=6, sampler="grid"))
    assert found == list(itertools.product(*SPACE.values()))


def test_random_search_tries_every_combination_once_and_ignores_accuracies(place, pretend):
    orders = []
    for name, accuracy in [("low", [0.1]), ("high", [0.9])]:
        pretend(lambda groups, accuracy=accuracy: accuracy)
        orders.append(order_of(place(name, space=SPACE, trials=6, sampler="random")))
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == list(itertools.product(*SPACE.values()))
    assert orders[0] != sorted(orders[0])


RANGES = {
    "recipe.batch": {"integers": [1, 3]},
    "recipe.clip": {"uniform": [0.1, 20.0]},
    "recipe.optimizer.learning_rate": {"log_uniform": [1e-4, 1e-2]},
}


def score(params: dict[str, float]) -> float:
    """Score a trial whose training is pretended: best in the middle of every range."""
    return -abs(params["recipe.clip"] - 10) - abs(math.log10(params["recipe.optimizer.learning_rate"]) + 3)


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_ranges_are_searched_within_their_ends_each_on_its_scale(place, sampler):
    shared = place(space=RANGES, trials=60, sampler=sampler).study()
    while not shared.complete():
        with shared.next_trial() as trial:
            shared.optuna.tell(trial, score(trial.params))
    batches, clips, rates = ([trial.params[key] for trial in shared.trials(*FINISHED)] for key in RANGES)
    assert set(batches) == {1, 2, 3} and all(isinstance(batch, int) for batch in batches)
    assert 0.1 <= min(clips) < max(clips) <= 20.0 and len(set(clips)) == 60
    assert 1e-4 <= min(rates) < max(rates) <= 1e-2
    assert sum(rate < 1e-3 for rate in rates) > 10  # of a linear scale, one in ten


def test_whole_numbers_of_a_range_are_tried_once_each(place):
    for sampler in ("tpe", "random"):
        shared = place(sampler, space={"recipe.batch": {"integers": [5, 9]}}, trials=5, sampler=sampler).study()
        while not shared.complete():
            with shared.next_trial() as trial:
                shared.optuna.tell(trial, 0.5)
        assert sorted(trial.params["recipe.batch"] for trial in shared.trials(*FINISHED)) == [5, 6, 7, 8, 9]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_values_are_drawn_the_same_wherever_a_worker_died_while_it_drew_them(place, sampler, monkeypatch):
    """TPE itself proposes the eleventh trial and those after it, by what the others came to."""
    drawn: dict[str, list] = {}
    suggest = optuna.Trial._suggest
    for name in ("undisturbed", "disturbed"):
        shared = place(f"{name}-{sampler}", space=RANGES, trials=14, sampler=sampler).study()
        chance = random.Random(0)
        while not shared.complete():
            dies_at = chance.choice([*RANGES, None]) if name == "disturbed" else None

            def dying(self, key, distribution, dies_at=dies_at):
                if key == dies_at and key not in self.params:
                    raise KeyboardInterrupt
                return suggest(self, key, distribution)

            monkeypatch.setattr(optuna.Trial, "_suggest", dying)
            with suppress(KeyboardInterrupt), shared.next_trial() as trial:
                shared.optuna.tell(trial, score(trial.params))
        drawn[name] = [trial.params for trial in shared.trials(*FINISHED)]
    assert drawn["disturbed"] == drawn["undisturbed"]


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    left=st.sets(st.integers(0, 20), max_size=5),
    at_once=st.integers(1, 3),
    seed=st.integers(0, 100),
    sampler=st.sampled_from(["tpe", "grid", "random"]),
)
def test_of_a_space_of_several_keys_every_combination_comes_once(
    tmp_path_factory, run_spec, sizes, left, at_once, seed, sampler
):
    space = {f"model.key{i}": list(range(size)) for i, size in enumerate(sizes)}
    combinations = list(itertools.product(*space.values()))
    spec = {"kind": "study", "run": run_spec(), "space": space, "trials": len(combinations), "seed": seed, "sampler": sampler}
    shared = Study({**spec, "prune_below": 0.0, "prune_after": 1}, tmp_path_factory.mktemp("study"))
    values: dict[int, dict[str, Any]] = {}
    while not shared.complete():
        with ExitStack() as workers:
            asked = [workers.enter_context(shared.next_trial()) for _ in range(at_once)]
            for trial in filter(None, asked):
                assert values.setdefault(trial.number, trial.params) == trial.params
                if trial.number in left:  # once: whoever asks next takes it over
                    left = left - {trial.number}
                else:
                    shared.optuna.tell(trial, random.Random(trial.number).random())
    assert sorted(tuple(trial.params.values()) for trial in shared.trials(*FINISHED)) == combinations
    assert sorted(values) == list(range(len(combinations)))


# --- what it finds ---


@pytest.mark.slow
def test_best_json_is_the_same_bytes_whatever_the_workers(place):
    found = []
    for name, workers in [("one", 1), ("three", 3)]:
        here = place(name)
        assert {job.end() for job in [here.start(worker) for worker in range(workers)]} == {0}
        here.conclude()
        found.append(here.best.read_bytes())
    assert len(set(found)) == 1


@pytest.mark.slow
def test_best_json_is_the_same_bytes_whatever_the_order(place):
    accuracy = dict(zip(map(str, GROUPS), [0.3, 0.7, 0.5, 0.7], strict=True))
    found = set()
    for i, order in enumerate(itertools.permutations(range(4))):
        here = place(str(i))
        with ExitStack() as workers:
            trials = [workers.enter_context(here.study().next_trial()) for _ in range(4)]
            for number in order:
                here.study().optuna.tell(trials[number].number, accuracy[str(trials[number].params["model.groups"])])
        here.conclude()
        found.add(here.best.read_bytes())
    (only,) = found
    assert json.loads(only)["values"] == {"model.groups": "channels"}  # of 2 and "channels", which tie, the first as JSON


def test_a_second_conclusion_is_the_same_bytes(place, pretend):
    pretend(lambda groups: [0.5, 0.25])
    here = place().work()
    here.conclude()
    first = here.best.read_bytes(), here.table.read_bytes()
    here.conclude()
    assert (here.best.read_bytes(), here.table.read_bytes()) == first


def test_it_says_what_a_ledger_needs_to_charge_for_it(place, pretend):
    pretend(lambda groups: [0.5])
    here = place()
    best = here.work().conclude()
    assert best["study"] == specs.study_name(here.spec)
    steps, q = 8, 0.25
    assert best["privacy"] == {
        "trials": 4,
        "sampling_rate": q,
        "noise_multiplier": calibrate(7.42, 1e-4, q, steps),
        "steps": steps,
        "split": {"validation": 437, "by": "permutation"},
    }
    assert best["pruned"] == 0
    assert set(best) == {"study", "values", "validation_top1", "trials", "pruned", "privacy"}


def test_trials_that_differ_in_batch_and_length_are_each_charged_their_own(place, pretend):
    pretend(lambda groups: [0.5])
    here = place(space={"recipe.batch": [100, 250], "recipe.epochs": [1, 2]})
    here.spec["run"]["model"]["groups"] = 4
    best = here.work().conclude()
    expected = {(q, calibrate(7.42, 1e-4, q, round(epochs / q)), round(epochs / q)) for q in (0.1, 0.25) for epochs in (1, 2)}
    assert best["privacy"] == {
        "trials": 4,
        "each": [
            {"trials": 1, "sampling_rate": q, "noise_multiplier": sigma, "steps": steps} for q, sigma, steps in sorted(expected)
        ],
        "split": {"validation": 437, "by": "permutation"},
    }
    rows = {(float(row["sampling_rate"]), float(row["sigma"]), int(row["steps"])) for row in here.rows()}
    assert rows == expected
    assert all(7.4 < float(row["epsilon"]) <= 7.42 for row in here.rows())


def test_the_table_has_the_metrics_of_every_split_at_the_last_epoch_behind_the_values(place):
    here = place(trials=2).work()
    here.conclude()
    for row in here.rows():
        (*_, last) = without_seconds(here.folder / f"trials/{row['trial']}/history.csv")
        measured = ["validation_loss", "validation_top1", "test_loss", "test_top1"]
        assert {key: row[key] for key in measured} == {key: last[key] for key in measured}
        assert list(row)[:6] == ["trial", "state", "validation_top1", "epochs", "seconds", "model.groups"]
        assert list(row)[-4:] == ["sampling_rate", "sigma", "steps", "epsilon"]
        assert float(row["epsilon"]) == pytest.approx(float(last["epsilon"]))


# --- the objective ---


def of_loss(place, known: dict[Any, tuple[float, float]], pretend) -> Place:
    pretend(lambda groups: [known[groups]])
    return place(objective="validation_loss").work()


def test_the_objective_may_be_the_loss(place, pretend):
    known = {1: (0.9, 2.0), 2: (0.5, 0.25), 4: (0.7, 1.0), "channels": (0.6, 3.0)}
    here = of_loss(place, known, pretend)
    best = here.conclude()
    assert (best["values"], best["validation_loss"]) == ({"model.groups": 2}, 0.25)
    assert "validation_top1" not in best
    assert {float(row["validation_top1"]) for row in here.rows()} == {accuracy for accuracy, _ in known.values()}
    assert {row["state"] for row in here.rows()} == {"complete"}


def test_accuracies_decide_what_is_given_up_whatever_the_objective(place, pretend):
    pretend(lambda groups: [(0.1, 0.1) if groups == 1 else (0.9, 9.0)])
    here = place(objective="validation_loss", prune_below=0.5).work()
    best = here.conclude()
    assert {row["model.groups"] for row in here.rows() if row["state"] == "pruned"} == {"1"}
    assert best["validation_loss"] == 9.0


def test_the_objective_may_be_the_averaged_weights_accuracy(place):
    """Both accuracies of every trial stand in the table; the average's, which differ, decide."""
    here = place(objective="averaged_validation_top1")
    here.spec["run"]["recipe"]["averaging"] = {"decay": 0.5}
    best = here.work().conclude()
    by_average = {row["model.groups"]: float(row["averaged_validation_top1"]) for row in here.rows()}
    assert by_average != {row["model.groups"]: float(row["validation_top1"]) for row in here.rows()}
    assert best["averaged_validation_top1"] == max(by_average.values()) == by_average[str(best["values"]["model.groups"])]
    assert "validation_top1" not in best


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_no_finite_loss_is_worse_than_any_other(place, pretend, loss):
    known = {1: (0.9, loss), 2: (0.1, 1e9), 4: (0.9, loss), "channels": (0.9, loss)}
    here = of_loss(place, known, pretend)
    best = here.conclude()
    assert (best["values"], best["validation_loss"]) == ({"model.groups": 2}, 1e9)
    assert (best["trials"], best["pruned"]) == (4, 0)


def test_where_no_trial_has_a_finite_loss_it_says_what_to_change(place, pretend):
    here = of_loss(place, dict.fromkeys(GROUPS, (0.1, math.nan)), pretend)
    with pytest.raises(UserError, match="no trial of study ended with a finite validation loss: narrow the space"):
        here.conclude()
    assert not here.best.exists()


def test_a_best_value_at_the_end_of_its_range_is_said(place, pretend, caplog):
    pretend(lambda groups: [groups / 10])
    here = place(space={"model.groups": {"integers": [1, 4]}}).work()
    said = "model.groups = 4 is at the upper end of what was searched, 1 to 4"
    assert here.conclude()["edges"] == [said]
    assert f"the best trial: {said}; better values may lie beyond" in caplog.text


# --- told to leave ---


@pytest.mark.slow
def test_a_worker_that_is_told_to_leave_keeps_where_its_trial_was(place, undisturbed):
    here = place(epochs=3)
    told = here.start(0, jobs.work_until_told, 6)
    assert told.end() == 1
    log = (here.folder / "0.log").read_text()
    assert "left: stopped by SIGUSR1 at step 6 of 12 of trial 0: the state is kept in" in log
    assert here.start(1).end() == 0
    assert "trial 0 continues from step 6 of 12" in (here.folder / "1.log").read_text()
    here.conclude()
    assert without_seconds(here.table) == without_seconds(undisturbed.table)


# --- giving up ---


def test_a_trial_below_the_threshold_is_given_up_at_that_epoch_and_not_before(place, pretend):
    known = {1: [0.1, 0.1, 0.4, 0.5], 2: [0.9, 0.9, 0.1, 0.9], 4: [0.5, 0.5, 0.5, 0.1], "channels": [0.3, 0.3, 0.3, 0.3]}
    pretend(known.__getitem__)
    here = place(epochs=4, prune_below=0.3, prune_after=3).work()
    best = here.conclude()
    rows = {row["model.groups"]: (row["state"], row["epochs"], row["validation_top1"]) for row in here.rows()}
    assert rows == {
        "1": ("complete", "4", "0.5"),
        "2": ("pruned", "3", "0.1"),
        "4": ("pruned", "4", "0.1"),
        "channels": ("complete", "4", "0.3"),
    }
    assert (best["values"], best["trials"], best["pruned"]) == ({"model.groups": 1}, 4, 2)


def test_a_trial_with_a_real_training_is_given_up_too(place):
    here = place(prune_below=0.99, trials=1).work()
    assert len(here.study().trials(TrialState.PRUNED)) == 1


def test_where_all_are_given_up_it_says_what_to_change(place, pretend):
    pretend(lambda groups: [0.1, 0.1])
    here = place(prune_below=0.2).work()
    with pytest.raises(UserError, match=r"below prune_below = 0\.2: lower it, or raise prune_after"):
        here.conclude()
    assert not here.best.exists()


def test_a_study_without_all_its_trials_is_not_concluded(place, pretend):
    pretend(lambda groups: [0.5])
    here = place().work()
    (here.folder / "journal.log").unlink()
    with pytest.raises(UserError, match=r"0 of 4 trials.*delete .*workers and let them work again"):
        here.conclude()


# --- the journal ---


def hold(journal: Path) -> None:
    JournalLock(journal).acquire()
    journal.with_suffix(".held").touch()
    time.sleep(60)


@pytest.mark.slow
def test_a_worker_killed_while_it_writes_holds_up_nobody(place, pretend):
    pretend(lambda groups: [0.5])
    here = place()
    journal = here.folder / "journal.log"
    here.study()
    holder = jobs.Job(here.folder / "log", hold, journal)
    holder.reaches(journal.with_suffix(".held").exists)
    holder.kill()
    begun = time.monotonic()
    here.work()
    assert time.monotonic() - begun < 5
    assert len(here.tried()) == 4


def test_half_a_line_of_a_killed_worker_is_cut_off(place, pretend):
    pretend(lambda groups: [0.5])
    here = place()
    here.study()
    journal = here.folder / "journal.log"
    with open(journal, "ab") as file:
        file.write(b'{"op_code":4,"worker_id":"abc","stu')
    here.work()
    assert Counter(here.tried()) == Counter(GROUPS)
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_a_relative_folder_will_do(place, pretend, monkeypatch):
    """Snakemake's folders are relative."""
    pretend(lambda groups: [0.5])
    here = place()
    monkeypatch.chdir(here.folder.parent)
    here.folder = Path(here.folder.name)
    assert len(here.work().tried()) == 4


def test_a_worker_waits_while_the_last_trials_are_with_others(place, pretend, monkeypatch):
    pretend(lambda groups: [0.5])
    here = place(trials=1)
    shared, naps = here.study(), []
    with shared.next_trial() as trial:
        assert trial is not None

        def nap(seconds: float) -> None:
            naps.append(seconds)
            if len(naps) == 3:
                shared.optuna.tell(trial, 0.5)

        monkeypatch.setattr(time, "sleep", nap)
        here.work()
    assert len(naps) == 3
    assert json.loads(here.done(0).read_text()) == {"trials": []}


def test_a_trials_lock_is_held_as_long_as_it_runs(place):
    here = place()
    with here.study().next_trial() as trial:
        assert trial is not None
        with pytest.raises(BlockingIOError), held(here.folder / "trials" / "0.lock", wait=False):
            pass
    with held(here.folder / "trials" / "0.lock", wait=False):
        pass


def test_one_worker_at_a_time_asks_for_a_trial(place, monkeypatch):
    here = place()
    shared = here.study()
    ask, alone = shared._ask, []
    monkeypatch.setattr(shared, "_ask", lambda: alone.append(is_held(here.folder / "asking.lock")) or ask())
    with shared.next_trial():
        assert alone == [True]
        assert not is_held(here.folder / "asking.lock")
