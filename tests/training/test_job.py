"""A job leaves a whole record, goes on after a kill to the same bits, and says what is wrong when it cannot."""

import csv
import errno
import json
import os
import platform
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jobs
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from dpvision.data.prepared import data_part, load
from dpvision.errors import UserError
from dpvision.files import digest, file_digest, write_json
from dpvision.plan import specs
from dpvision.privacy.accounting import Mechanism
from dpvision.privacy.ledger import spent
from dpvision.provenance import LOCK
from dpvision.training import record, run
from dpvision.training.checkpoint import Checkpoint
from dpvision.training.evaluate import evaluate
from dpvision.training.owner import owned
from dpvision.training.record import finite, metrics, read_network, write_record
from dpvision.training.underway import UnderWay

PHYSICAL, MEMORY = 64, 4000


class Place:
    """The place of a run: its record, its checkpoint and its log."""

    def __init__(self, folder: Path, data: Path, spec: specs.Spec) -> None:
        self.record, self.checkpoint, self.log = folder / "run", folder / "checkpoint", folder / "log"
        self.state = self.checkpoint / "state.pt"
        self.spec, self.data, self.begun = spec, data, 0.0
        self.decided = data.parent / "choices"  # shared by all, as in a folder of results: bits are compared

    def arguments(self, studies: list[Path] | None = None) -> tuple[Any, ...]:
        return self.spec, self.data, studies or [], self.record, self.checkpoint, self.decided, PHYSICAL, MEMORY, self.begun

    def train(self) -> "Place":
        run.train(*self.arguments())
        return self

    def start(self, function: Callable[..., None] = jobs.train, log: str = "log") -> jobs.Job:
        return jobs.Job(self.log.with_name(log), function, *self.arguments())

    def words(self, log: str = "log") -> str:
        """Return what a job has logged so far."""
        file = self.log.with_name(log)
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def written(self) -> int | None:
        """Return when the state was last written."""
        return self.state.stat().st_mtime_ns if self.state.exists() else None

    def json(self, name: str) -> Any:
        def refuse(constant: str) -> None:
            raise AssertionError(f"{name} has {constant}")

        return json.loads((self.record / name).read_text(encoding="utf-8"), parse_constant=refuse)

    def history(self) -> list[dict[str, str]]:
        with open(self.record / "history.csv", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def bits(self) -> dict[str, Any]:
        """Return all that interruptions must not change."""
        rows = [{key: value for key, value in row.items() if key != "seconds"} for row in self.history()]
        files = ["spec.json", "metrics.json", "ledger.json", *(file.name for file in self.record.glob("*.safetensors"))]
        return {"history.csv": rows, **{name: (self.record / name).read_bytes() for name in files}}


@pytest.fixture
def place(tmp_path, digits, run_spec) -> Callable[..., Place]:
    return lambda changes=None, name="here": Place(tmp_path / name, digits, run_spec(changes))


@pytest.fixture(scope="session")
def whole(tmp_path_factory, digits, run_spec) -> Place:
    """Return a run that nothing interrupted."""
    return Place(tmp_path_factory.mktemp("whole"), digits, run_spec()).train()


# --- the record ---


def test_a_record_has_every_file_and_leaves_no_checkpoint(whole):
    assert sorted(file.name for file in whole.record.iterdir()) == sorted([*specs.RECORD, ".owner", ".whole"])
    assert not whole.checkpoint.exists()


def test_a_file_of_weights_holds_weights_and_nothing_else(place):
    kept = place({"recipe.averaging": {"decay": 0.9}, "recipe.epochs": 1}).train()
    for name in ("weights.safetensors", "averaged.safetensors"):
        with safe_open(kept.record / name, "pt") as file:
            assert file.metadata() is None
            assert set(file.keys()) == set(read_network(kept.record, kept.spec).state_dict())


def test_the_weights_load_into_the_network_and_give_the_metrics(whole, training):
    network, metrics, splits = read_network(whole.record, whole.spec), whole.json("metrics.json"), training()
    for name in ("train", "validation", "test"):
        assert evaluate(network, getattr(splits, name), PHYSICAL) == metrics["last_step"][name]
    assert metrics["last_step"]["step"] == 40
    assert metrics["last_step"]["test"]["top1"] == float(whole.history()[-1]["test_top1"])


def test_the_best_epoch_is_the_historys_best_by_validation(whole):
    best, accuracies = whole.json("metrics.json")["best_epoch"], [float(row["validation_top1"]) for row in whole.history()]
    row = whole.history()[best["epoch"] - 1]
    assert best["epoch"] == 1 + accuracies.index(max(accuracies))
    assert best["chosen_by"] == "validation top1"
    for split in ("validation", "test"):
        assert best[split] == {key: float(row[f"{split}_{key}"]) for key in ("loss", "top1", "top5")}


def test_the_ledger_is_that_of_the_spec(whole):
    ledger = whole.json("ledger.json")
    mechanism = Mechanism(0.1, ledger["noise_multiplier"], 40)
    assert (ledger["examples"], ledger["sampling_rate"]) == (1000, 0.1)
    assert ledger["steps"] == {"planned": 40, "made": 40}
    assert (ledger["clip"], ledger["delta"]) == (1.5, 1e-4)
    assert ledger["epsilon"]["target"] == 7.42
    assert 7.41 < ledger["epsilon"]["rdp"] == mechanism.epsilon(1e-4) <= 7.42
    assert ledger["epsilon"]["prv"] < ledger["epsilon"]["rdp"]
    assert float(whole.history()[-1]["epsilon"]) == ledger["epsilon"]["rdp"]


def test_an_averages_weights_and_metrics_lie_beside_those_of_the_last_step(whole, place, training, advance):
    """An interrupted run gives the same: an interruption must not change views, average and bfloat16 either."""
    views = {"pad": 1, "flip": 0.5, "views": 2, "include_original": False}
    changes = {"recipe.augmentation": views, "recipe.averaging": {"decay": 0.8}, "recipe.precision": "bfloat16"}
    here, again = place(changes).train(), place(changes, "again")
    assert {file.name for file in here.record.iterdir()} == {*specs.RECORD, ".owner", ".whole", "averaged.safetensors"}
    found = load_file(here.record / "averaged.safetensors")
    metrics, last = here.json("metrics.json"), training(changes)
    last.network.load_state_dict(found)
    assert metrics["averaged"] == {name: last.evaluate(getattr(last, name)) for name in ("train", "validation", "test")}
    assert metrics["averaged"]["test"]["loss"] == float(here.history()[-1]["averaged_test_loss"])
    assert metrics["averaged"]["test"] != metrics["last_step"]["test"]
    assert here.json("provenance.json")["averaged_sha256"] == file_digest(here.record / "averaged.safetensors")
    assert "averaged" not in whole.json("metrics.json")
    assert "averaged_sha256" not in whole.json("provenance.json")

    begun = training(changes)
    advance(begun, 17)
    Checkpoint(again.checkpoint).save({**begun.state(), "spec_digest": digest(again.spec), "sessions": []})
    assert again.train().bits() == here.bits()


def test_the_provenance_names_what_made_it(whole):
    made_by = whole.json("provenance.json")
    assert made_by["spec"] == digest(whole.spec)
    assert made_by["machine"]["threads"] == torch.get_num_threads()
    assert made_by["packages"]["torch"].startswith("2.")
    assert [session["to_step"] for session in made_by["sessions"]] == [40]
    assert made_by["peak_memory_mb"] > 100
    assert made_by["dirty"] == made_by["commit"].endswith("+")
    assert made_by["lock"] == file_digest(LOCK)[:12]
    assert made_by["data"] == load(whole.data, data_part(whole.spec)).digest
    assert made_by["resumed"] is False


def test_a_run_without_a_budget_says_so(place):
    control = place({"budget": None, "model.norm": "batch", "recipe.epochs": 1}).train()
    assert control.json("ledger.json") == {"private": False, "epsilon": None}
    assert control.history()[0]["epsilon"] == control.history()[0]["clipped"] == ""
    read_network(control.record, control.spec)


@pytest.mark.parametrize("rate", [1e6, 1e30])
def test_a_training_that_diverges_leaves_a_record_without_nan(place, rate):
    lost = place({"recipe.optimizer": {"name": "nadam", "learning_rate": rate}, "recipe.epochs": 1}).train()
    assert all(lost.json(name) for name in specs.RECORD if name.endswith(".json"))
    loss = lost.json("metrics.json")["last_step"]["validation"]["loss"]
    assert loss is None if rate == 1e30 else loss > 100


def test_json_has_no_word_for_what_is_not_finite():
    value = {"a": [1.0, float("nan"), {"b": float("-inf")}], "c": None, "d": 2, "e": "nan"}
    assert finite(value) == {"a": [1.0, None, {"b": None}], "c": None, "d": 2, "e": "nan"}


def test_what_a_search_found_stands_in_the_spec_and_its_cost_in_the_ledger(place, tmp_path):
    here = place({"model.groups": {"study": "the-study"}, "recipe.epochs": 1})
    privacy = {"trials": 4, "sampling_rate": 0.1, "noise_multiplier": 1.0, "steps": 10}
    write_json(tmp_path / "best.json", {"study": "the-study", "values": {"model.groups": 2}, "privacy": privacy})
    run.train(*here.arguments([tmp_path / "best.json"]))
    assert here.json("spec.json")["model"]["groups"] == 2
    assert here.json("spec.json")["found_by"] == {"model.groups": "the-study"}
    (search,) = here.json("ledger.json")["searches"]
    assert search["study"] == "the-study"
    assert search["epsilon_all_composed"] > here.json("ledger.json")["epsilon"]["rdp"]
    assert {
        m.num_groups for m in read_network(here.record, here.json("spec.json")).modules() if isinstance(m, torch.nn.GroupNorm)
    } == {2}


# --- killed ---


@pytest.mark.slow
def test_killed_at_any_moments_it_goes_on_to_the_same_bits(whole, place):
    here, chance = place(), random.Random(0)
    job = here.start()
    time.sleep(0.2)
    assert job.kill() == -signal.SIGKILL  # before its first step, or in one of the first
    for _ in range(5):
        before, job = here.written(), here.start()
        job.reaches(lambda before=before: here.written() != before)
        time.sleep(chance.uniform(0, 0.1))
        assert job.kill() == -signal.SIGKILL
    assert here.start().end() == 0
    assert here.bits() == whole.bits()
    assert not here.checkpoint.exists()
    made_by = here.json("provenance.json")
    steps = [session["to_step"] for session in made_by["sessions"]]
    assert len(steps) > 1
    assert made_by["resumed"] is True
    assert {session["lock"] for session in made_by["sessions"]} == {made_by["lock"]}
    assert steps == sorted(steps)
    assert steps[-1] == 40


def test_killed_while_it_writes_its_record_it_writes_it_again(whole, place):
    here = place()
    job = here.start()
    job.reaches((here.record / "spec.json").exists)
    job.kill()
    assert here.start().end() == 0
    assert here.bits() == whole.bits()


SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_told_to_leave_it_keeps_its_state_says_how_to_go_on_and_does(whole, place, number):
    here = place()
    job = here.start(jobs.train_without_checkpoints)
    job.reaches(lambda: here.log.exists() and "epoch 1/4" in here.log.read_text())
    assert job.kill(number) == 1
    made = torch.load(here.state)["made"]
    assert 0 < made < 40
    log = here.log.read_text()
    assert (
        f"stopped by {number.name} at step {made} of 40: the state is kept in {here.state}, the same command continues" in log
    )
    assert "Traceback" not in log
    assert [file.name for file in here.record.iterdir()] == [".owner"]
    assert here.start().end() == 0
    assert f"continues from step {made} of 40" in here.log.read_text()
    assert here.bits() == whole.bits()
    assert [session["to_step"] for session in here.json("provenance.json")["sessions"]] == [made, 40]


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_told_to_leave_within_a_step_it_does_not_finish_it_first(whole, place, number):
    here = place()
    job = here.start(jobs.train_with_an_endless_step)
    job.reaches(here.record.with_name("endless").exists)
    assert job.kill(number) == 1
    assert f"stopped by {number.name} at step 3 of 40: the state is kept" in here.words()
    assert torch.load(here.state)["made"] == 3
    assert here.start().end() == 0
    assert here.bits() == whole.bits()


@pytest.mark.slow
def test_a_run_longer_than_every_job_that_it_gets_is_finished_by_many(whole, place):
    """The ledger, the history and the weights are those of one job."""
    here = place()
    ends = [("_make_step", 0), ("_make_step", 7), ("_end_epoch", 10), ("_make_step", 10), ("_end_epoch", 40), ("evaluate", 40)]
    for within, made in ends:
        job = jobs.Job(here.log, jobs.train_until, within, made, *here.arguments())
        assert job.end() == 1
        assert f"stopped by SIGUSR1 at step {made} of 40" in here.words()
    assert here.start(jobs.train_without_checkpoints).end() == 0
    assert here.bits() == whole.bits()
    assert [session["to_step"] for session in here.json("provenance.json")["sessions"]] == [0, 7, 10, 10, 40, 40, 40]


def test_signal_handlers_are_restored_after_a_training(whole, place):
    before = [signal.getsignal(number) for number in SIGNALS]
    place({"recipe.epochs": 1}).train()
    assert [signal.getsignal(number) for number in SIGNALS] == before


# --- what an unfinished run shows ---


def progress(here: Place) -> dict[str, Any]:
    return json.loads((here.checkpoint / "progress.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_while_it_runs_it_shows_how_far_it_is_what_it_spent_and_when_it_will_be_done(place):
    here = place()
    job = here.start()
    job.reaches(lambda: (here.checkpoint / "progress.json").exists() and progress(here)["epoch"] == 2)
    shown = progress(here)
    job.kill()
    assert 20 <= shown["step"] < 30
    assert (shown["steps"], shown["epochs"]) == (40, 4)
    assert 0 < shown["epsilon"] < 7.42
    assert shown["seconds_left"] > 0
    with open(here.checkpoint / "history.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows[:2]] == ["1", "2"]
    assert float(rows[1]["validation_top1"]) == shown["validation_top1"]


@pytest.mark.slow
def test_the_history_that_it_shows_is_what_the_record_will_have(place, whole):
    here = place()
    job = here.start()
    job.reaches(lambda: (here.checkpoint / "progress.json").exists() and progress(here)["epoch"] == 2)
    job.kill()
    with open(here.checkpoint / "history.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for shown, recorded in zip(rows, whole.history(), strict=False):
        assert shown | {"seconds": ""} == recorded | {"seconds": ""}


def test_told_to_leave_it_shows_the_step_that_it_kept_and_why(interrupted):
    here = interrupted
    job = here.start(jobs.train_without_checkpoints)
    job.reaches(lambda: "continues from" in here.words())
    job.kill(signal.SIGTERM)
    shown = progress(here)
    assert shown["told"] == "SIGTERM"
    assert shown["kept"] == shown["step"] == torch.load(here.state)["made"]


def test_between_checkpoints_progress_is_shown_every_few_seconds(place, monkeypatch):
    monkeypatch.setattr("dpvision.training.checkpoint.LEAST_SECONDS", 1e9)
    shown, write = [], UnderWay.write

    def noted(self: UnderWay, training: Any, *more: Any) -> None:
        shown.append(training.made)
        write(self, training, *more)

    monkeypatch.setattr(UnderWay, "write", noted)
    place().train()
    assert shown == [0, 10, 20, 30, 40]  # when it begins, and after every epoch
    monkeypatch.setattr("dpvision.training.underway.EVERY", 0.0)
    shown.clear()
    place(name="often").train()
    assert sorted(set(shown)) == list(range(41))


def test_a_full_disk_does_not_stop_a_training_for_what_it_shows(place, monkeypatch):
    monkeypatch.setattr("dpvision.training.underway.write_json", no_space)
    assert len(place().train().history()) == 4


def no_space(*arguments: Any) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


# --- checkpoints that cannot be used ---


@pytest.fixture
def interrupted(place, training, advance) -> Place:
    """Return a run with the state after three steps."""
    here, begun = place(), training()
    advance(begun, 3)
    Checkpoint(here.checkpoint).save({**begun.state(), "spec_digest": digest(here.spec), "sessions": []})
    return here


def test_an_interrupted_run_goes_on_to_the_same_bits(interrupted, whole):
    assert interrupted.train().bits() == whole.bits()


def test_another_specs_checkpoint_is_refused(interrupted):
    interrupted.spec = {**interrupted.spec, "seed": 35}
    with pytest.raises(UserError, match=r"state\.pt belongs to another spec.*delete it"):
        interrupted.train()
    assert [file.name for file in interrupted.record.iterdir()] == [".owner"]


def flipped(content: bytes) -> bytes:
    """Flip one bit, in the middle of some tensor's numbers."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "spoil", [lambda b: b"", lambda b: b[:100], lambda b: b[: len(b) // 2], lambda b: b[:-1], lambda b: b"\0" * len(b), flipped]
)
def test_a_spoilt_checkpoint_is_named_with_what_to_do(interrupted, spoil):
    interrupted.state.write_bytes(spoil(interrupted.state.read_bytes()))
    with pytest.raises(UserError, match=r"state\.pt cannot be read: .*delete it to start the run anew"):
        interrupted.train()


def test_a_checkpoint_that_is_something_else_is_named_too(interrupted):
    torch.save(["something", "else"], interrupted.state)
    with pytest.raises(UserError, match=r"state\.pt cannot be read"):
        interrupted.train()


def test_a_checkpoint_that_cannot_be_written_leaves_the_last_one(interrupted, monkeypatch):
    before = interrupted.state.read_bytes()

    def write_bytes(path: Path, content: Any) -> None:
        with open(path, "wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises(OSError, match="No space left"):
        Checkpoint(interrupted.checkpoint).save({})
    assert interrupted.state.read_bytes() == before
    assert [file.name for file in interrupted.checkpoint.iterdir()] == ["state.pt"]


@pytest.mark.slow
def test_checkpoints_take_a_small_share_of_the_time(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    place = Checkpoint(tmp_path)
    monkeypatch.setattr(torch, "save", lambda state, path: now.__setitem__(0, now[0] + 3.0))
    spent = 0.0
    for _ in range(10_000):
        now[0] += 0.1
        if place.due():
            place.save({})
            spent += 3.0
    assert 0 < spent / now[0] <= 0.03


# --- two at once ---


def one_at_work_and_one_waiting(here: Place) -> tuple[jobs.Job, jobs.Job]:
    """Start a job and suspend it, with a state to go on from; start another that waits for it."""
    first = here.start()
    first.reaches(here.state.exists)
    os.kill(first.process.pid, signal.SIGSTOP)
    second = here.start(log="second")
    second.reaches(lambda: "waiting until it ends" in here.words("second"))
    return first, second


@pytest.mark.slow
def test_a_second_process_waits_says_for_whom_and_finds_the_run_finished(whole, place):
    here = place()
    first, second = one_at_work_and_one_waiting(here)
    assert f"process {first.process.pid} on {platform.node()}" in here.words("second")
    os.kill(first.process.pid, signal.SIGCONT)
    assert first.end() == second.end() == 0
    assert "another process has finished this run meanwhile" in here.words("second")
    assert "epoch" not in here.words("second")
    assert here.bits() == whole.bits()
    assert not here.checkpoint.exists()


@pytest.mark.slow
def test_a_second_process_takes_over_when_the_first_is_killed(whole, place):
    here = place()
    first, second = one_at_work_and_one_waiting(here)
    assert first.kill() == -signal.SIGKILL
    assert second.end() == 0
    assert f"taking over from process {first.process.pid} on" in here.words("second")
    assert "continues from step" in here.words("second")
    assert here.bits() == whole.bits()


@pytest.mark.slow
def test_a_suspended_process_that_was_taken_for_dead_writes_nothing_when_it_wakes(whole, place):
    here = place()
    first = here.start()
    first.reaches(here.state.exists)
    os.kill(first.process.pid, signal.SIGSTOP)
    second = here.start(jobs.train_impatiently, "second")
    second.reaches(lambda: "continues from step" in here.words("second"))
    os.kill(first.process.pid, signal.SIGCONT)
    assert first.end() == 1
    assert "may belong to another by now" in here.words()
    assert "epoch 4/4" not in here.words()  # it found out at its next write
    assert "Traceback" not in here.words()
    assert second.end() == 0
    assert here.bits() == whole.bits()
    assert [session["to_step"] for session in here.json("provenance.json")["sessions"]][-1] == 40


@pytest.mark.slow
@pytest.mark.parametrize("write", ["the state", "the record", "nothing, and removes the state"])
def test_who_owns_the_run_no_more_does_not_write(write, interrupted, trained):
    before, owners = interrupted.state.read_bytes(), interrupted.record / ".owner"
    with owned(owners) as still_ours:
        mine = Checkpoint(interrupted.checkpoint, still_ours)
        (owners / "1").rename(owners / "2")  # as if somebody had taken over
        with pytest.raises(UserError, match="belong to another by now. Stopping; nothing was written"):
            match write:
                case "the state":
                    mine.save({"made": 3})
                case "the record":
                    write_record(interrupted.record, trained, {}, {}, still_ours)
                case _:
                    mine.remove()
    assert interrupted.state.read_bytes() == before
    assert [file.name for file in interrupted.record.iterdir()] == [".owner"]


# --- finished already ---


def test_a_finished_record_that_snakemake_deleted_is_shown_again_and_not_trained_again(place):
    """Snakemake deletes it before a job that was planned while another process finished the run."""
    here = place({"recipe.epochs": 1}).train()
    files = {name: (here.record / name).read_bytes() for name in specs.RECORD}
    for name in specs.RECORD:
        (here.record / name).unlink()
    here.train()
    assert {name: (here.record / name).read_bytes() for name in specs.RECORD} == files
    assert not here.checkpoint.exists()


def test_a_record_that_was_there_before_somebody_asked_again_is_made_anew(place):
    here = place({"recipe.epochs": 1}).train()
    before, bits = (here.record / "provenance.json").stat(), here.bits()
    here.begun = time.time() + 1
    here.train()
    assert (here.record / "provenance.json").stat().st_ino != before.st_ino
    assert here.bits() == bits


def test_a_record_of_what_another_search_found_is_replaced(place, tmp_path):
    here = place({"model.groups": {"study": "the-study"}, "recipe.epochs": 1})
    privacy = {"trials": 4, "sampling_rate": 0.1, "noise_multiplier": 1.0, "steps": 10}
    for groups in (2, 1):
        write_json(tmp_path / "best.json", {"study": "the-study", "values": {"model.groups": groups}, "privacy": privacy})
        run.train(*here.arguments([tmp_path / "best.json"]))
        assert here.json("spec.json")["model"]["groups"] == groups
        assert here.json("provenance.json")["spec"] == digest(here.json("spec.json"))


def test_killed_between_the_records_appearance_and_its_files_it_shows_them(whole, place, monkeypatch):
    here = place()
    monkeypatch.setattr(record, "show", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        here.train()
    monkeypatch.undo()
    here.train()
    assert here.bits() == whole.bits()
    assert not here.checkpoint.exists()


def test_a_run_of_secret_noise_says_what_its_release_needs_and_its_ledger_follows_from_its_spec(place):
    here = place({"recipe.noise": "secret", "recipe.epochs": 1}).train()
    ledger = here.json("ledger.json")
    assert "repeatable" not in ledger
    assert "may be released" in ledger["release"]["noise"]
    needs = " ".join(ledger["release"]["needs"])
    assert all(word in needs for word in ("constants", "learning rate", "seeds", "history")) and "searches was" not in needs
    spec = here.json("spec.json")
    mechanism = Mechanism(ledger["sampling_rate"], ledger["noise_multiplier"], ledger["steps"]["made"])
    assert finite(spent(spec, mechanism, {})) == ledger
    assert "release" not in spent({**spec, "recipe": {**spec["recipe"], "noise": "repeatable"}}, mechanism, {})


@pytest.mark.parametrize(("best", "looks"), [(3, 3), (2, 6)])
def test_the_last_epoch_is_looked_at_once_though_it_is_the_best(best, looks):
    network = nn.Linear(2, 2)
    seen = []
    made = SimpleNamespace(
        network=network, train="train", validation="validation", test="test", made=9, history=[{}] * 3, chooser="validation"
    )
    made.best = {"epoch": best, "weights": network.state_dict()}
    made.average, made.evaluate = None, lambda examples, _: seen.append(examples) or {"top1": 0.5}
    found = metrics(made)
    assert len(seen) == looks
    assert found["best_epoch"]["epoch"] == best and found["best_epoch"]["test"] == found["last_step"]["test"]
