"""A run has one owner at a time, which every machine that sees its folder can tell from a dead one."""

import errno
import json
import multiprocessing
import os
import platform
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpvision.errors import UserError
from dpvision.training import owner
from dpvision.training.owner import owned

FORK = multiprocessing.get_context("fork")
HOLD = """
import sys, time
from pathlib import Path
from dpvision.training import owner
owner.INTERVAL = 0.02
with owner.owned(Path(sys.argv[1])) as still_ours:
    print("owned", flush=True)
    sys.stdin.readline()
    still_ours()
print("done", flush=True)
"""


class Holder:
    """A second process that owns the folder until it is told to go."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "owned\n"

    def go(self) -> tuple[str, str]:
        return self.process.communicate("go\n")


@pytest.fixture
def holder(tmp_path) -> Iterator[Callable[[], Holder]]:
    started: list[Holder] = []
    yield lambda: started.append(Holder(tmp_path / "run")) or started[-1]  # type: ignore[func-returns-value]
    for one in started:
        one.process.kill()
        one.process.communicate()


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    """Make signs of life come often; nobody is taken for dead by their absence: tests that want it set LOOKS."""
    monkeypatch.setattr(owner, "INTERVAL", 0.01)
    monkeypatch.setattr(owner, "LOOKS", 10**9)


@pytest.fixture
def slept(monkeypatch) -> list[Callable[[], Any]]:
    """Return what happens in each of a waiter's pauses, one after the other; one more is an error."""
    plan: list[Callable[[], Any]] = []
    monkeypatch.setattr(owner.time, "sleep", lambda seconds: plan.pop(0)())
    return plan


def elsewhere(folder: Path, number: int = 1, **changes: Any) -> Path:
    """Write the file of an owner on another machine."""
    folder.mkdir(exist_ok=True)
    file = folder / str(number)
    facts = {
        "host": "node7",
        "machine": "another",
        "process": 123,
        "process_began": "1",
        "slurm_job": "55",
        "since": "2026-01-02",
    }
    file.write_text(json.dumps(facts | changes))
    return file


def shows_life(file: Path) -> None:
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))


def free(folder: Path) -> bool:
    return not owner._look(folder / str(owner._highest(folder)))[0]


# --- owning ---


def test_it_is_owned_inside_and_free_afterwards_whatever_happened(tmp_path):
    folder = tmp_path / "deep" / "down"
    with pytest.raises(KeyError), owned(folder):
        assert not free(folder)
        raise KeyError
    assert free(folder)
    assert [file.name for file in folder.iterdir()] == ["1"]


def test_the_file_says_who_and_since_when(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    with owned(tmp_path):
        said = json.loads((tmp_path / "1").read_text())
    assert (said["host"], said["process"], said["slurm_job"]) == (platform.node(), os.getpid(), "77")
    assert said["since"].startswith("20")


def test_an_owner_shows_life_as_long_as_it_owns(tmp_path):
    threads = threading.active_count()
    with owned(tmp_path):
        for _ in range(3):
            before = owner._look(tmp_path / "1")[1]
            while owner._look(tmp_path / "1")[1] == before:
                time.sleep(0.001)
    assert threading.active_count() == threads


# --- waiting for another ---


def test_a_living_owner_of_this_machine_is_waited_for(tmp_path, holder, slept, caplog):
    caplog.set_level("INFO")
    other = holder()
    slept += [lambda: None] * 20 + [lambda: other.go() == ("done\n", "") or pytest.fail("it was disturbed")]
    with owned(tmp_path / "run"):
        assert not slept
    (waits,) = [text for text in caplog.messages if "waiting until it ends" in text]
    assert f"process {other.process.pid} on {platform.node()} since 20" in waits
    assert not any("dead" in text for text in caplog.messages)


def test_a_killed_owner_of_this_machine_is_dead_at_once(tmp_path, holder, slept):
    """One look is enough, also while nobody has waited for its end."""
    other = holder()
    other.process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, other.process.pid, os.WEXITED | os.WNOWAIT)  # it stays as a zombie
    with owned(tmp_path / "run"):
        pass


def test_another_process_with_the_number_of_a_dead_one_is_not_it(tmp_path, slept):
    elsewhere(tmp_path, machine=owner._machine(), process=os.getpid(), process_began="1")
    with owned(tmp_path):
        pass


def test_the_same_number_on_another_machine_is_another_process(tmp_path, slept):
    file = elsewhere(tmp_path, process=2**30)
    slept += [lambda: shows_life(file)] * 5 + [lambda: os.truncate(file, 0)]
    with owned(tmp_path):
        assert not slept


def test_who_waits_says_once_for_whom_and_since_when(tmp_path, slept, caplog, capsys, monkeypatch):
    caplog.set_level("INFO")
    monkeypatch.setattr("dpvision.logs._terminal", sys.stderr)
    file = elsewhere(tmp_path)
    slept += [lambda: shows_life(file)] * 5 + [lambda: os.truncate(file, 0)]
    with owned(tmp_path):
        pass
    text = "process 123 on node7, SLURM job 55 since 2026-01-02 is already training this run; waiting"
    assert [text in said for said in caplog.messages] == [True]
    assert capsys.readouterr().err.count(text) == 1


def test_signs_of_life_keep_an_owner_elsewhere_alive_as_long_as_they_come(tmp_path, slept, monkeypatch):
    monkeypatch.setattr(owner, "LOOKS", 3)
    file = elsewhere(tmp_path)
    slept += [lambda: None, lambda: None, lambda: shows_life(file)] * 10 + [lambda: os.truncate(file, 0)]
    with owned(tmp_path):
        assert not slept


@pytest.mark.parametrize("age", [-1e6, 0, 1e6], ids=["an old date", "now", "a date to come"])
def test_an_owner_without_signs_of_life_is_dead_after_so_many_looks(tmp_path, slept, monkeypatch, age, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr(owner, "LOOKS", 3)
    file = elsewhere(tmp_path)
    os.utime(file, (time.time() + age,) * 2)
    slept += [lambda: None] * 3
    with owned(tmp_path) as still_ours:
        assert not slept
        still_ours()
        assert not file.exists()
    assert "taking over from process 123 on node7, SLURM job 55 since 2026-01-02, which is dead" in caplog.messages


def test_a_new_owner_is_given_all_the_looks_again(tmp_path, slept, monkeypatch):
    monkeypatch.setattr(owner, "LOOKS", 3)
    file = elsewhere(tmp_path)
    date = file.stat().st_mtime_ns

    def another_takes_over() -> None:
        os.utime(elsewhere(tmp_path, 2, process=456), ns=(date, date))
        file.unlink()

    slept += [lambda: None, lambda: None, another_takes_over, lambda: None, lambda: None, lambda: None]
    with owned(tmp_path):
        assert not slept


# --- being taken for dead ---


def test_a_suspended_owner_finds_out_when_it_wakes(tmp_path, holder, monkeypatch):
    monkeypatch.setattr(owner, "LOOKS", 5)
    other = holder()
    other.process.send_signal(signal.SIGSTOP)
    with owned(tmp_path / "run") as still_ours:
        other.process.send_signal(signal.SIGCONT)
        _, error = other.go()
        assert other.process.returncode == 1
        assert "belong to another by now" in error
        still_ours()


def test_who_was_taken_for_dead_frees_nothing_that_is_anothers(tmp_path):
    with pytest.raises(UserError), owned(tmp_path) as still_ours:
        (tmp_path / "1").unlink()
        file = elsewhere(tmp_path, 1)  # somebody deleted the folder, and another run began
        still_ours()
    assert file.read_text()


def test_a_file_that_goes_while_it_is_read_is_gone(tmp_path, monkeypatch):
    """NFS calls the handle of a file stale that another machine removed."""

    def stale(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ESTALE, "Stale file handle")

    with pytest.raises(UserError, match="belong to another by now"), owned(tmp_path) as still_ours:
        monkeypatch.setattr(owner, "open", stale, raising=False)
        still_ours()


# --- many at once ---


def compete(folder: Path, rounds: int, counted: Any) -> None:
    """Take the folder again and again, and find what was left there as long as it is held."""
    owner.INTERVAL, owner.LOOKS = 0.002, 10**9
    for i in range(rounds):
        with owned(folder / "owner") as still_ours:
            ours = f"{os.getpid()} {i}"
            (folder / "inside").write_text(ours)
            time.sleep(random.choice([0, 0.002]))
            assert (folder / "inside").read_text() == ours
            still_ours()
            counted.value += 1


@pytest.fixture
def competitors(tmp_path) -> Iterator[Callable[[int], Any]]:
    """Start one more competitor; `counted` is how often any had the folder."""
    started, counted = [], FORK.RawValue("i", 0)

    def start(rounds: int) -> Any:
        started.append(FORK.Process(target=compete, args=(tmp_path, rounds, counted)))
        started[-1].start()
        return started[-1], counted

    yield start
    for one in started:
        one.kill()
        one.join()


def test_of_many_processes_one_owns_at_a_time(competitors):
    ones, (counted, *_) = zip(*[competitors(50) for _ in range(6)], strict=True)
    for one in ones:
        one.join(120)
    assert [one.exitcode for one in ones] == [0] * 6
    assert counted.value == 300


def test_one_owns_at_a_time_while_processes_are_killed_at_any_moment(competitors):
    chance = random.Random(0)
    ones = [competitors(10**9)[0] for _ in range(4)]
    for _ in range(40):
        time.sleep(chance.uniform(0.002, 0.02))
        victim = ones.pop(chance.randrange(4))
        victim.kill()
        victim.join()
        assert victim.exitcode == -signal.SIGKILL  # and not of an error of its own
        one, counted = competitors(10**9)
        ones.append(one)
    before = counted.value
    while counted.value < before + 10:  # nobody is locked out
        assert all(one.is_alive() for one in ones)
        time.sleep(0.01)


def take(folder: Path, rounds: int, begin: Any, results: Any) -> None:
    for i in range(rounds):
        begin.wait()
        results.put((i, owner._take(folder / str(i), 2) is not None))


def test_of_several_that_wait_for_a_dead_owner_exactly_one_takes_over(tmp_path):
    """All have seen the same dead owner, round after round, and are let go together."""
    rounds, count = 200, 4
    begin, results = FORK.Barrier(count), FORK.Queue()
    for i in range(rounds):
        elsewhere(tmp_path / str(i))
    ones = [FORK.Process(target=take, args=(tmp_path, rounds, begin, results)) for _ in range(count)]
    for one in ones:
        one.start()
    outcomes = [results.get(timeout=60) for _ in range(rounds * count)]
    for one in ones:
        one.join()
    assert sorted(i for i, taken in outcomes if taken) == list(range(rounds))
    assert all([file.name for file in (tmp_path / str(i)).iterdir()] == ["2"] for i in range(rounds))


def test_a_number_that_was_given_and_is_gone_is_not_taken(tmp_path):
    """A process that looked long ago does not take 2, which 3 has taken over since."""
    elsewhere(tmp_path, 3)
    assert owner._take(tmp_path, 2) is None
    assert [file.name for file in tmp_path.iterdir()] == ["3"]
