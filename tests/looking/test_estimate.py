"""Work is expected to cost what past work took; where there is none, it is a guess that says so."""

import pytest

from dpvision.errors import UserError
from dpvision.files import write_text
from dpvision.looking import estimate
from dpvision.looking.estimate import Estimator, table, wall_seconds
from dpvision.plan import cost
from dpvision.plan.resources import limits


def estimator(results, device: str | None = None) -> Estimator:
    return Estimator(results.plan, results.root, device)


def runs_of(results, model: str) -> list[str]:
    return [run for run, spec in results.plan.runs.items() if spec["model"]["slug"] == model]


def test_without_records_the_scales_speed_is_the_guess(results):
    key = ("train", results.runs[0])
    one = cost.training(results.plan.runs[key[1]], 512)
    job = estimator(results).job(key)
    assert job.by == "guessed"
    assert job.seconds == pytest.approx(one.work / limits(results.plan, "train").speed + one.steps * cost.STEP)
    assert "guessed" in estimator(results).words()[0]


def test_a_network_that_nobody_counted_may_take_as_long_as_the_scale_allows(results, monkeypatch):
    first, second = runs_of(results, "resnet9")[:2]
    results.record(first, seconds=77.0)
    monkeypatch.setattr(cost, "counts_of", lambda run: cost.UNCOUNTED)
    job = estimator(results).job(("train", second))
    assert job.seconds == job.longest == 60 * limits(results.plan, "train").runtime
    assert job.by.startswith("unknown")
    found = table(results.plan, estimator(results), ["table4"], 1)
    assert "unknown" in estimate.as_text(results.plan, found)
    assert 0 < found["wall_seconds"] < float("inf")


def test_a_run_is_expected_to_take_what_its_like_took(results):
    done, other = runs_of(results, "resnet9")[:2]
    results.record(done, seconds=77.0)
    job = estimator(results).job(("train", other))
    assert (job.seconds, job.by) == (pytest.approx(77.0), "measured")


def test_another_networks_records_are_better_than_a_guess(results):
    results.record(runs_of(results, "resnet9")[0], seconds=77.0)
    assert estimator(results).job(("train", runs_of(results, "scaleresnet9")[0])).by == "measured on other networks"


def test_a_guess_without_what_was_measured_is_the_same_on_every_machine(results):
    first, *_, other = runs_of(results, "resnet9")
    before = Estimator(results.plan, results.root, "A100", measured=False).job(("train", other))
    results.record(first, seconds=77.0)
    assert Estimator(results.plan, results.root, "A100", measured=False).job(("train", other)) == before
    assert before.by == "guessed"


def test_all_sessions_of_an_interrupted_run_count(results):
    done, other = runs_of(results, "resnet9")[:2]
    results.record(done, seconds=90.0, sessions=3)
    assert estimator(results).job(("train", other)).seconds == pytest.approx(90.0)


def test_a_searchs_trials_take_what_trainings_took(results):
    results.record(runs_of(results, "resnet9")[0], seconds=10.0)
    study = next(name for name in results.names("search") if "-resnet9-" in name)
    job = estimator(results).job(("search", study))
    assert job.seconds == pytest.approx(4 * 10.0)  # four trials
    assert job.longest == pytest.approx(2 * 10.0)  # of two workers


def test_a_hessian_is_expected_to_take_what_its_like_took(results):
    done, other = (name for name in results.names("hessian") if "-resnet9-" in name and "-seed113-" not in name)
    results.touched(("hessian", done))
    job = estimator(results).job(("hessian", other))
    assert (job.seconds, job.by) == (pytest.approx(5.0), "measured")


def test_finished_work_costs_nothing_and_begun_work_what_is_left_of_it(results):
    first, second, third = runs_of(results, "resnet9")[:3]
    results.record(first, seconds=100.0)
    results.checkpoint(second, kept=147)
    jobs = [estimator(results).job(("train", run)) for run in (first, second, third)]
    assert [job.seconds for job in jobs] == pytest.approx([0, 50, 100])
    assert [job.whole for job in jobs] == pytest.approx([100, 100, 100])


def test_a_search_that_has_all_its_trials_costs_nothing_more(results):
    study = results.names("search")[0]
    assert estimator(results).job(("search", study)).seconds > 0
    write_text(results.root / f"results/demo/studies/{study}/workers/0.json", "{}")
    assert estimator(results).job(("search", study)).seconds == 0


def test_the_error_of_each_record_is_against_what_the_others_say(results):
    for run, seconds in zip(runs_of(results, "resnet9"), (100.0, 100.0, 200.0), strict=False):
        results.record(run, seconds=seconds)
    assert sorted(estimator(results).errors()["train"]) == pytest.approx([0.25, 0.25, 0.5], abs=0.1)
    words = estimator(results).words()
    assert words[0].startswith("on A Processor, 1 thread, by 3 trainings")
    assert "50% at worst" in words[1]


def test_the_device_is_the_one_that_was_used_here_unless_another_is_asked_for(results):
    first, second, other = runs_of(results, "resnet9")[:3]
    results.record(first, seconds=100.0)
    results.record(second, seconds=10.0, gpu="NVIDIA A100-SXM4-40GB")
    key = ("train", other)
    assert estimator(results, "a100").job(key).seconds == pytest.approx(10.0)
    assert estimator(results, "processor").job(key).seconds == pytest.approx(100.0)


def test_a_device_without_records_is_guessed_from_the_table(results):
    slow, quick = (estimator(results, name).job(("train", results.runs[0])) for name in ("V100", "H100"))
    assert slow.by == quick.by == "guessed"
    assert slow.seconds > quick.seconds


def test_an_unknown_device_is_answered_with_those_that_are_known(results):
    with pytest.raises(UserError, match=r"--device Z80 is unknown; known are: .*A100"):
        estimator(results, "Z80")


def test_a_record_of_a_time_when_specs_had_other_keys_is_passed_over(results):
    folder = results.record(results.runs[0])
    (folder / "spec.json").write_text('{"kind": "run"}')
    assert estimator(results).past == []


def test_shared_work_counts_once_in_the_total(results):
    found = table(results.plan, estimator(results), ["table1", "table4"], 1)
    rows = {row["artifact"]: row for row in found["artifacts"]}
    assert found["total"]["device_seconds"] == pytest.approx(rows["table1"]["device_seconds"])
    assert 0 < rows["table4"]["device_seconds"] < rows["table1"]["device_seconds"]


def test_one_device_does_all_work_one_after_the_other_and_more_wait_for_what_is_needed(results):
    jobs = {key: estimator(results).job(key) for key in results.plan.below("figure2")}
    times = [wall_seconds(results.plan, jobs, devices) for devices in (1, 2, 100)]
    assert times[0] == pytest.approx(sum(job.seconds for job in jobs.values()))
    assert times[0] > times[1] > times[2]
    chain = [job.longest for key, job in jobs.items() if key[0] == "search" or "-resnet9-" in key[1]]
    assert times[2] >= max(chain)


def test_disk_is_that_of_the_weights(results_of):
    results = results_of(scale="paper")
    key = ("train", results.runs[0])
    job = estimator(results).job(key)
    assert job.record == pytest.approx(4 * 2_448_714, rel=0.01)
    assert job.checkpoint == pytest.approx(39_333_291, rel=0.01)  # as such a run's checkpoint was


def test_the_table_names_hours_by_stage_memory_and_disk(results):
    lines = estimate.as_text(results.plan, table(results.plan, estimator(results), ["table1"], 2)).splitlines()
    assert lines[3].split()[:5] == ["device-hours", "searches", "trainings", "Hessians", "histograms"]
    assert lines[4].split()[0] == "table1"
    assert lines[-1].startswith("what artifacts share counts once in the last line; on 2 devices: ")
