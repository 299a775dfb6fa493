"""The choice within a budget is the best there is: held against all choices, of small cases."""

from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpvision.looking import budget, estimate
from dpvision.looking.budget import Cells, choose
from dpvision.looking.estimate import Job
from dpvision.plan.stages import Key

NAMES = [f"run{i}" for i in range(5)]
SEARCHES = ["search0", "search1"]
NONE = {("search", None)}


def job(key: Key, seconds: float, longest: float | None = None, devices: int = 1) -> Job:
    longest = seconds / devices if longest is None else longest
    return Job(key, seconds, max(seconds, 1.0), longest, devices, 0, 0, 0, "guessed")


@st.composite
def cases(draw) -> tuple[dict[Key, Job], Cells, int, int]:
    """Draw runs that share searches, cells that share runs, artifacts that share cells. Some of it is done."""
    jobs = {}
    for stage, names in (("search", SEARCHES), ("train", NAMES)):
        for name in names:
            seconds = draw(st.integers(0, 12))  # 0: done
            devices = draw(st.sampled_from([1, 1, 1, 2]))
            jobs[stage, name] = job((stage, name), seconds * devices, devices=devices)
    searched = {name: draw(st.sampled_from([None, *SEARCHES])) for name in NAMES}
    cell = st.sets(st.sampled_from(NAMES), min_size=1, max_size=3)
    made = draw(st.lists(cell, min_size=1, max_size=5))
    whole = [frozenset([("train", run) for run in runs] + [("search", searched[run]) for run in runs]) - NONE for runs in made]
    artifacts = {
        f"artifact{i}": draw(st.lists(st.sampled_from(whole), min_size=1, max_size=4, unique=True))
        for i in range(draw(st.integers(1, 4)))
    }
    return jobs, artifacts, draw(st.integers(1, 20)), draw(st.integers(1, 3))


def by_brute_force(jobs: dict[Key, Job], artifacts: Cells, seconds: float, devices: int) -> tuple[int, int, float]:
    """Find the best numbers of artifacts and of cells, and the least time for them, over all sets of cells."""
    left = {key for key, one in jobs.items() if one.seconds}
    cells = {frozenset(cell & left) for of in artifacts.values() for cell in of}
    best = (0, 0, 0.0)
    for chosen in chain.from_iterable(combinations(cells, size) for size in range(len(cells) + 1)):
        todo = frozenset().union(*chosen)
        time = sum(jobs[key].seconds for key in todo)
        if time > seconds * devices or any(jobs[k].longest > seconds or jobs[k].devices > devices for k in todo):
            continue
        whole = sum(all(cell & left in set(chosen) for cell in of) for of in artifacts.values())
        best = max(best, (whole, len(chosen), -time))
    return best


@settings(max_examples=60, deadline=None)
@given(cases())
def test_it_is_as_good_as_the_best_of_all_choices(case):
    jobs, _, seconds, devices = case
    choice = choose(*case)
    time = sum(jobs[key].seconds for key in choice.work)
    assert (len(choice.artifacts), len(choice.cells), -time) == pytest.approx(by_brute_force(*case))
    assert time <= seconds * devices
    assert all(jobs[key].longest <= seconds and jobs[key].devices <= devices for key in choice.work)
    assert choice.work == frozenset().union(*choice.cells)  # whole cells and nothing else


def test_shared_work_is_paid_once():
    runs = [("train", f"run{i}") for i in range(3)]
    jobs = {key: job(key, 10) for key in runs}
    artifacts = {"one": [frozenset(runs[:2])], "other": [frozenset(runs[1:])]}
    assert choose(jobs, artifacts, 30, 1).artifacts == ["one", "other"]
    assert choose(jobs, artifacts, 29, 1).artifacts != ["one", "other"]


def test_more_artifacts_go_before_more_cells():
    runs = [("train", f"run{i}") for i in range(4)]
    jobs = {key: job(key, 30 if key == runs[0] else 10) for key in runs}
    artifacts = {"one": [frozenset(runs[:1])], "many": [frozenset([run]) for run in runs[1:]] + [frozenset(runs)]}
    assert choose(jobs, artifacts, 30, 1).artifacts == ["one"]


def test_what_is_done_costs_nothing():
    key = ("train", "run")
    assert choose({key: job(key, 0, 100)}, {"one": [frozenset([key])]}, 1, 1).artifacts == ["one"]


def test_a_job_longer_than_the_time_cannot_be_chosen_however_many_devices_there_are():
    key = ("train", "run")
    assert choose({key: job(key, 50)}, {"one": [frozenset([key])]}, 49, 8).work == set()
    assert choose({key: job(key, 50)}, {"one": [frozenset([key])]}, 50, 1).work == {key}


# --- with a plan ---


def within(results, targets: list[str], seconds: float, devices: int = 1) -> dict:
    return budget.within(results.plan, estimate.Estimator(results.plan, results.root), targets, seconds, devices)


def everything(results) -> list[str]:
    return list(results.plan.artifacts)


def test_with_time_for_everything_the_targets_are_the_artifacts(results):
    found = within(results, everything(results), 1e6)
    assert found["targets"] == everything(results)
    assert {(one["stage"], one["name"]) for one in found["work"]} == {
        key for name in everything(results) for key in results.plan.below(name) if key[0] != "data"
    }


def test_with_no_time_nothing_is_chosen_and_that_is_said(results):
    found = within(results, ["table1"], 1)
    assert found["targets"] == []
    assert budget.as_text(results.plan, found).endswith("nothing more is complete within the budget")


def test_what_is_made_and_done_is_no_target(results):
    results.everything()
    assert within(results, ["table1"], 1)["targets"] == ["table1"]  # its records are there, it is not
    for file in results.plan.targets("table1"):
        (results.root / file).parent.mkdir(parents=True, exist_ok=True)
        (results.root / file).touch()
    assert within(results, ["table1"], 1)["targets"] == []


def test_cells_of_an_artifact_that_cannot_be_complete_are_files_of_all_their_seeds(results):
    for name in results.names("search"):
        results.search(name)
    estimator = estimate.Estimator(results.plan, results.root)
    runs = list(results.plan.artifacts["table1"]["cells"][0]["work"]["train"].values())
    one = estimator.job(("train", runs[0])).seconds
    found = within(results, ["table1"], 4 * one)
    assert len(found["targets"]) == 3
    seeds = {target.split("-seed")[0] for target in found["targets"]}
    assert len(seeds) == 1
    assert all(target.endswith("/spec.json") for target in found["targets"])


def test_the_command_has_its_targets_before_options_that_would_take_them(results):
    found = within(results, ["table4", "groups"], 1e6, 3)
    assert budget.command(results.plan, found) == "snakemake table4 groups --cores 3 --config scale=demo"


def test_where_cards_are_asked_for_the_command_says_how_many(results_of):
    results = results_of(scale="paper")
    found = within(results, ["table1"], 1e6, 2)
    assert budget.command(results.plan, found) == "snakemake table1 --cores 8 --resources gpu=2 --config scale=paper"
