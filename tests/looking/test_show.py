"""show and compare: a run's card, and two of them side by side."""

import json

import pytest

from dpvision.errors import UserError
from dpvision.files import write_csv
from dpvision.looking import compare, show
from dpvision.looking.runs import Run, find
from dpvision.looking.text import curve


def run(results, part: str, scale: str | None = "demo"):
    return find(results.root, part, lambda scale: results.plan, scale)


def card(results, part: str) -> dict[str, str]:
    lines = show.as_text(run(results, part)).splitlines()
    return {line[:11].strip(): line[11:] for line in lines[: lines.index("")] if line[:11].strip()}


def test_a_run_is_found_by_any_part_of_its_name_that_no_other_has(results):
    first, second, *_ = results.runs
    results.record(first)
    results.record(second)
    assert run(results, first[-8:]).name == first
    with pytest.raises(UserError, match='2 runs have "seed" in their name; say more of it:\n  results/demo/runs/') as raised:
        run(results, "seed")
    assert {f"  results/demo/runs/{name}" for name in (first, second)} == set(str(raised.value).splitlines()[1:])


def test_name_near_no_run_is_answered_with_where_they_lie(results):
    with pytest.raises(UserError, match="^no run is called nonsense; of .* ls results/demo/runs$"):
        run(results, "nonsense")


def test_a_name_that_no_run_has_is_answered_with_the_five_nearest(results):
    wanted = results.runs[0]
    mistyped = wanted.replace("resnet", "resnett")
    with pytest.raises(UserError, match=f"^no run is called {mistyped}; near it: {wanted}, ") as raised:
        run(results, mistyped)
    near = str(raised.value).partition("near it: ")[2].partition("; of another scale")[0].split(", ")
    assert len(near) == 5 < len(results.runs)
    assert set(near) <= set(results.runs)


def test_a_run_that_nobody_began_is_found_in_the_plan(results):
    found = run(results, results.runs[0])
    assert show.as_json(found)["state"] == "missing"
    assert "left to a search" in show.as_text(found)


def test_runs_of_other_configurations_and_scales_are_found_too(results):
    folder = results.record(results.runs[0])
    other = results.root / "results/runs" / "cifar10-mine-eps3-seed1-0123456789ab"
    other.parent.mkdir(parents=True)
    folder.rename(other)
    assert run(results, "mine", None).folder == "results/runs/cifar10-mine-eps3-seed1-0123456789ab"


def test_the_card_says_what_came_out_what_it_spent_and_how_it_went(results):
    results.record(results.runs[0], seconds=7200, sessions=3, code="0123456789ab")
    rows = card(results, results.runs[0])
    assert rows["state"] == "done"
    assert rows["shown in"] == "table1"
    assert rows["length"] == "30 epochs, 294 steps of 128 examples expected"
    assert rows["privacy"] == "ε 2.800 by RDP, 2.500 by PRV, of 2.89 at δ 0.0001"
    assert rows["clipped"].startswith("50% of examples in the first epoch")
    assert rows["time"] == "2:00:00 on A Processor, 1 thread; interrupted 2 times"
    assert rows["code"].startswith("other than what is here: 0123456789ab, now ")
    text = show.as_text(run(results, results.runs[0]))
    assert "best epoch 4 (by validation)  90.00%" in text
    assert "validation top-1, epochs 1 to 5\n  50.0% " in text


def test_show_says_what_an_epsilon_leaves_out(results):
    name, left_out = results.runs[0], "No ε holds for the 180 held-out examples"
    assert left_out in show.as_text(run(results, name))  # of the planned ε, too
    results.record(name)
    shown = run(results, name)
    assert left_out in show.as_text(shown) and "Nothing to warn of" not in show.as_text(shown)
    assert left_out in " ".join(show.as_json(shown)["exclusions"])


def test_show_says_that_the_test_split_chose(results):
    name = results.runs[0]
    results.record(name)
    results.respec(name, {"data.validation": 0, "model.groups": 4, "protocol": {"name": "paper", "steps": 294}})
    text = show.as_text(run(results, name))
    assert "The test examples steer the learning rate and pick the best epoch" in text
    assert "best epoch 4 (by test)" in text and "validation" not in text.split("top-1")[1]


def test_a_run_under_way_has_its_curve_and_how_far_it_is(results):
    name = results.runs[0]
    results.owner(name)
    results.checkpoint(name)
    rows = [{"epoch": i, "clipped": 1.0, "validation_top1": 0.1 * i, "test_top1": 0.1} for i in range(1, 4)]
    write_csv(results.root / "results/demo/checkpoints" / name / "history.csv", rows)
    assert card(results, name)["state"].startswith("running: epoch 10/30  step 100/294")
    assert "validation top-1, epochs 1 to 3" in show.as_text(run(results, name))


def test_programs_get_the_whole_record(results):
    results.record(results.runs[0])
    shown = json.loads(json.dumps(show.as_json(run(results, results.runs[0]))))
    assert shown["metrics"]["last_step"]["test"]["top1"] == 0.9
    assert shown["history"][4]["validation_top1"] == 0.5
    assert (shown["interruptions"], shown["seconds"], shown["other_code"]) == (0, 10.0, None)


def test_a_curve_rises_from_the_lower_left_to_the_upper_right():
    lines = curve([0.0, 0.5, 1.0], width=6, height=3)
    assert lines[0].startswith(" 100.0% \u2800\u2800\u2800\u2800")
    assert lines[-1].startswith("   0.0% ")
    assert len(lines[-1]) == 8 + 2
    assert curve([0.5], width=4, height=2)[0].startswith("  50.0% ")


# --- compare ---


def compared(results, first: str, second: str) -> dict:
    return compare.compared(run(results, first), run(results, second))


def test_only_what_differs_between_two_specs_is_shown_by_dotted_keys(results):
    first, second, _, fourth, *_ = results.runs  # three seeds at one ε, then the next ε
    for name in (first, second, fourth):
        results.record(name)
    assert compared(results, first, second)["spec"] == {"seed": [34, 50]}
    assert compared(results, first, fourth)["spec"] == {"budget.epsilon": [2.89, 7.42]}


def test_results_stand_side_by_side_with_their_difference(results):
    first, second, *_ = results.runs
    results.record(first, top1=0.5)
    results.record(second, top1=0.75)
    found = compared(results, first, second)
    assert found["results"]["last_step.test.top1"] == [0.5, 0.75]
    line = next(line for line in compare.as_text(found).splitlines() if line.startswith("last_step.test.top1"))
    assert line.split() == ["last_step.test.top1", "0.5", "0.75", "+0.25"]


def test_what_two_runs_share_by_chance_is_said(results):
    first, second, _, fourth, *_ = results.runs
    assert compared(results, first, fourth)["paired"] == {
        "seed": True,
        "held_out_examples": True,
        "samples_views_and_noise": False,  # each run has its own, whatever its seed
    }
    assert not compared(results, first, second)["paired"]["seed"]
    assert compared(results, first, first)["paired"]["samples_views_and_noise"]
    assert "the same in both: seed, held out examples" in compare.as_text(compared(results, first, fourth))


def test_a_card_says_of_secret_noise_what_it_is_good_for():
    budget = {"epsilon": 8.0, "delta": 1e-5}
    said = {"epsilon": {"target": 8.0, "rdp": 7.99}, "delta": 1e-5, "noise_multiplier": 1.0, "sampling_rate": 0.1}
    ledger = said | {"steps": {"made": 9}, "release": {"noise": "...", "needs": []}}
    of_run = Run("", {"budget": budget}, [], None, ledger, None, None, None, [], [])
    assert any("these weights may be released, as far as noise" in text for _, text in show.privacy_rows(of_run))
    del ledger["release"]
    assert not any("released" in text for _, text in show.privacy_rows(of_run))


def test_card_of_a_stopped_run_says_which_epsilon_is_the_guarantee():
    ledger = {"epsilon": {"target": 8.0, "rdp": 7.99}, "delta": 1e-5, "noise_multiplier": 1.0, "sampling_rate": 0.1}
    older = ledger | {"steps": {"made": 9, "planned": 40}}
    newer = older | {"stopped": {"epsilon": {"rdp": 1.25}}}
    budget = {"budget": {"epsilon": 8.0, "delta": 1e-5}}
    cards = [Run("", budget, [], None, of_run, None, None, None, [], []) for of_run in (older, newer)]
    old, new = (" ".join(text for _, text in show.privacy_rows(card)) for card in cards)
    assert "9 of 40 planned steps" in old and "its ε is that of the steps made alone, which is no guarantee" in old
    assert "9 of 40 planned steps" in new and "all planned steps; the steps made alone spend 1.250 by RDP, no guarantee" in new
