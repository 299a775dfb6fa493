"""status: what is there, what runs, what failed, and why the rest is missing."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from dpvision.errors import UserError
from dpvision.files import write_json, write_text
from dpvision.looking.overview import overview
from dpvision.looking.status import Found, Status, as_json, as_text
from dpvision.plan.artifact_state import artifact_state
from dpvision.training.owner import owned

JOB = """
import sys, time
from dpvision import logs
with logs.job(sys.argv[1]):
    print("at work", flush=True)
    open(sys.argv[1] + ".begun", "w").close()
    time.sleep(60)
"""


def found(results, name: str, stage: str = "train") -> Found:
    return results.status().found[stage, name]


def state(results, artifact: str) -> str:
    return artifact_state(results.plan, artifact, results.root)


def started(results) -> str:
    """Return a run that has all it needs."""
    results.prepared()
    for name in results.names("search"):
        results.search(name)
    return results.runs[0]


# --- what is done ---


def test_nothing_is_there_at_first(results):
    status = results.status()
    assert {one.state for one in status.found.values()} == {"missing"}
    assert status.cells("table1") == {"done": 0, "running": 0, "failed": 0, "missing": 6, "other_code": 0}
    assert state(results, "table1") == "not made"


def test_everything_is_done_when_all_of_it_is_there(results):
    results.everything()
    status = results.status()
    assert {one.state for one in status.found.values()} == {"done"}
    assert status.cells("table1")["done"] == 6
    assert status.cells("groups")["done"] == 2
    assert "missing:" not in as_text(status)


def test_a_cell_is_done_when_all_its_seeds_are(results):
    cell = results.plan.artifacts["table1"]["cells"][0]
    *most, last = cell["work"]["train"].values()
    for run in most:
        results.record(run)
    assert results.status().cells("table1")["done"] == 0
    results.record(last)
    assert results.status().cells("table1")["done"] == 1


def test_table_is_out_of_date_without_one_of_its_records(results):
    results.everything()
    results.draw("table1")
    assert state(results, "table1") == "made"
    results.record(results.runs[0]).joinpath("metrics.json").unlink()
    assert state(results, "table1") == "out of date"


def test_table_of_other_settings_is_out_of_date(results_with):
    """A learning rate was changed and put back: every record of either is there, and the table shows the other's."""
    results = results_with("learning_rate: 4.0e-3", "learning_rate: 5.0e-3")
    results.everything()
    results.draw("table1")
    assert state(results, "table1") == "made"
    again = results_with("learning_rate: 5.0e-3", "learning_rate: 4.0e-3")
    again.everything()
    os.utime(again.root / again.plan.targets("table1")[0])
    assert again.status().cells("table1")["done"] == 6
    assert state(again, "table1") == "out of date"
    text = overview(again.plan, ["table1"], again.root)
    assert [line.split()[-3:] for line in text.splitlines() if line.startswith("table1")] == [["out", "of", "date"]]
    assert "out of date, made of other settings" in text and "\nmade:" not in text
    again.draw("table1")
    assert state(again, "table1") == "made"


def test_table_is_out_of_date_beside_a_newer_record(results):
    results.everything()
    results.draw("table1")
    later = time.time() + 100
    os.utime(results.root / results.plan.record(("train", results.runs[0]))[0], (later, later))
    assert state(results, "table1") == "made"  # no table shows a spec
    os.utime(results.root / "results/demo/runs" / results.runs[0] / "metrics.json", (later, later))
    assert state(results, "table1") == "out of date"


def test_status_of_targets_is_about_them_alone(results):
    status = Status(results.plan, results.root, ["groups"])
    assert {stage for stage, _ in status.found} == {"data", "search"}
    assert [row["artifact"] for row in as_json(status)["artifacts"]] == ["groups"]
    assert "table1" not in as_text(status)
    with pytest.raises(UserError, match='"tabel1".*"table1"'):
        Status(results.plan, results.root, ["tabel1"])


def test_what_other_code_made_is_counted_and_named_session_by_session(results):
    ours, theirs, mixed, *_ = results.runs
    now = json.loads((results.record(ours) / "provenance.json").read_text())["code"]
    results.record(theirs, code="0123456789ab")
    made_by = results.record(mixed) / "provenance.json"
    content = json.loads(made_by.read_text())
    write_json(made_by, content | {"sessions": [{"code": "ba9876543210"}, *content["sessions"]]})
    status = results.status()
    assert [run for run in results.runs if status.found["train", run].other_code] == [theirs, mixed]
    assert f"  results/demo/runs/{theirs}  (code 0123456789ab, now {now})" in as_text(status).splitlines()
    assert "all results were made by the code that is here" not in as_text(status)


def test_it_says_when_all_is_of_this_code(results):
    results.everything()
    assert as_text(results.status()).endswith("all results were made by the code that is here")


def test_what_a_scale_leaves_out_is_named(results_of):
    simulated = results_of(scale="simulate").status()
    assert simulated.plan.left_out == ["groups"]
    assert "left out at this scale: groups" in as_text(simulated)


# --- what runs ---


def test_a_run_with_a_living_owner_runs_and_shows_how_far_it_is(results):
    run = started(results)
    results.checkpoint(run)
    results.owner(run)
    one = found(results, run)
    assert one.state == "running"
    assert one.reason == "process 12 on node7, SLURM job 77 since noon"
    text = as_text(results.status())
    assert re.search(
        r"epoch 10/30  step 100/294  ε 1\.50  validation 50\.0%  (1:00:00|59:5\d) to go  process 12 on node7", text
    )


def test_time_left_is_counted_from_when_it_was_written(results):
    run = started(results)
    results.checkpoint(run)
    results.owner(run)
    file = results.root / "results/demo/checkpoints" / run / "progress.json"
    os.utime(file, (time.time() - 1800,) * 2)
    assert re.search(r"  (30:00|29:5\d) to go", as_text(results.status()))


def test_an_owner_without_a_sign_of_life_for_a_minute_is_dead(results):
    run = started(results)
    file = results.owner(run)
    os.utime(file, (time.time() - 61,) * 2)
    assert found(results, run).state == "missing"


def test_an_owner_of_this_machine_is_dead_when_the_kernel_says_so(results):
    run = started(results)
    with owned(results.root / "results/demo/runs" / run / ".owner"):
        assert found(results, run).state == "running"
        file = results.root / "results/demo/runs" / run / ".owner/1"
        results.owner(run, **json.loads(file.read_text()) | {"process_began": "0"})
        assert found(results, run).state == "missing"


@pytest.mark.parametrize("stage", ["hessian", "search", "data"])
def test_other_jobs_run_as_long_as_their_log_is_in_use(results, stage):
    key, log = {
        "hessian": lambda: (name := results.names("hessian")[0], f"demo/logs/hessian/{name}.log"),
        "search": lambda: (name := results.names("search")[0], f"demo/logs/search_worker/{name}/1.log"),
        "data": lambda: (results.names("data")[0], "data/logs/download/digits.log"),
    }[stage]()
    path = results.root / "results" / log
    process = subprocess.Popen([sys.executable, "-c", JOB, str(path)])
    while not path.with_name(path.name + ".begun").exists():
        assert process.poll() is None
        time.sleep(0.01)
    one = found(results, key, stage)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (one.state, f"as results/{log} says" in one.reason) == ("running", True)
    assert found(results, key, stage).state == "missing"


# --- what failed ---


def test_what_ended_with_an_error_failed_and_says_of_what(results):
    run = started(results)
    results.log("train", run, "12:00:00  epoch 1\nTraceback\nKeyError: 'a'\nfailed: KeyError: 'a'\n")
    one = found(results, run)
    assert (one.state, one.reason, one.log) == ("failed", "KeyError: 'a'", f"results/demo/logs/train/{run}.log")
    assert results.status().cells("table1")["failed"] == 1
    lines = [line.strip() for line in as_text(results.status()).splitlines()]
    at = lines.index("KeyError: 'a'")
    assert lines[at - 1].startswith(f"{run}  for table1")
    assert lines[at + 1] == f"results/demo/logs/train/{run}.log"


def test_what_failed_and_runs_again_runs(results):
    run = started(results)
    results.log("train", run, "failed: KeyError: 'a'\n")
    results.owner(run)
    assert found(results, run).state == "running"


def test_what_failed_and_was_made_since_is_done(results):
    run = started(results)
    results.log("train", run, "failed: KeyError: 'a'\n")
    results.record(run)
    assert found(results, run).state == "done"


# --- why it is missing ---


def test_a_run_waits_for_its_data(results):
    for name in results.names("search"):
        results.search(name)
    (data,) = results.names("data")
    assert found(results, results.runs[0]).reason == f"waits for the data set {data} (missing)"
    assert found(results, data, "data").reason == "never started"
    write_text(results.root / "results/data/logs/download/digits.log", "failed: no network\n")
    assert found(results, results.runs[0]).reason == f"waits for the data set {data} (failed)"
    one = found(results, data, "data")
    assert (one.reason, one.log) == ("no network", "results/data/logs/download/digits.log")
    assert "      no network\n      results/data/logs/download/digits.log" in as_text(results.status())


def test_data_that_was_deleted_after_its_last_use_is_not_missed(results):
    results.everything()
    (data,) = results.names("data")
    shutil.rmtree(results.root / results.plan.folder(("data", data)))
    assert ("data", data) not in results.status().found
    assert results.status().cells("table1")["done"] == 6
    assert "missing:" not in as_text(results.status())
    results.record(results.runs[0]).joinpath("metrics.json").unlink()
    assert found(results, data, "data").state == "missing"


def test_a_run_waits_for_its_search(results):
    results.prepared()
    study = results.status().found["train", results.runs[0]]
    assert re.fullmatch(r"waits for the search digits-scaleresnet9-eps7\.42-groups-\w+ \(missing\)", study.reason)


def test_a_hessian_waits_for_its_training(results):
    name, spec = next(iter(results.plan.of("hessian").items()))
    results.prepared()
    assert found(results, name, "hessian").reason == "waits for its training (missing)"
    results.record(spec["run"])
    assert found(results, name, "hessian").reason == "never started"


def test_a_run_that_was_told_to_leave_goes_on_from_its_step(results):
    run = started(results)
    results.log("train", run, "left: told to leave\n")
    results.checkpoint(run, told="SIGTERM")
    assert found(results, run).reason == "stopped by SIGTERM; continues from step 90 of 294"


def test_a_run_that_was_killed_goes_on_from_its_checkpoint_if_it_had_one(results):
    run = started(results)
    assert found(results, run).reason == "never started"
    results.log("train", run, "12:00:00  begins\n")
    assert found(results, run).reason == "was killed or cut off"
    results.checkpoint(run)
    assert found(results, run).reason == "was killed; continues from step 90 of 294 or a little later"


def test_a_record_that_was_deleted_is_said_to_be(results):
    run = started(results)
    results.log("train", run, "12:00:00  the last epoch\n")
    results.log("train", run, "{}", "jsonl")  # Snakemake's benchmark, after the job succeeded
    assert found(results, run).reason == "was made, and deleted since"


def test_a_search_that_nobody_works_on_says_how_far_it_came(results):
    name = results.names("search")[0]
    results.prepared()
    results.log(f"search_worker/{name}", "0", "12:00:00  begins\n")
    for trial in range(3):
        write_text(results.root / f"results/demo/studies/{name}/trials/{trial}.lock", "")
    assert found(results, name, "search").reason == "3 of 4 trials begun, and nobody works on it now"


def test_all_that_is_missing_names_the_artifacts_to_ask_for(results):
    targets = found(results, results.plan.runs_of("figure2")[0]).targets
    assert targets == ["table1", "table4", "hessian", "figure2", "figure3", "spectrum"]
    assert found(results, results.runs[0]).targets == ["table1"]
    assert "  2 searches for table1, table4, hessian and 4 more: waits for the data set" in as_text(results.status())


# --- for programs ---


def test_programs_get_all_of_it(results):
    run = started(results)
    results.checkpoint(run)
    results.owner(run)
    shown = json.loads(json.dumps(as_json(results.status())))
    one = next(one for one in shown["work"] if one["name"] == run)
    assert (one["state"], one["progress"]["step"], one["targets"]) == ("running", 100, ["table1"])
    assert next(row for row in shown["artifacts"] if row["artifact"] == "table1")["cells"]["running"] == 1
    assert len(shown["work"]) == 1 + 2 + 18 + 6 + 2


def test_looking_writes_nothing(results):
    results.everything()
    results.owner(results.runs[0])
    files = {file: file.stat().st_mtime_ns for file in results.root.rglob("*")}
    as_text(results.status())
    assert {file: file.stat().st_mtime_ns for file in results.root.rglob("*")} == files
