"""A file is held by one process at a time, and free as soon as that process ends."""

import fcntl
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpvision.locks import held, is_held

HOLD = """
import sys, time
from pathlib import Path
from dpvision.locks import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def holder(tmp_path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Another process that holds the file for so many seconds."""
    started: list[subprocess.Popen] = []

    def start(seconds: float = 60) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path / "lock"), str(seconds)], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_what_another_process_holds_is_refused_without_waiting(tmp_path, holder):
    holder()
    assert is_held(tmp_path / "lock")
    with pytest.raises(BlockingIOError), held(tmp_path / "lock", wait=False):
        pass


def test_it_is_locked_for_fcntl_which_other_machines_see(tmp_path, holder):
    holder()
    with open(tmp_path / "lock", "a") as file, pytest.raises(BlockingIOError):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_it_is_free_as_soon_as_its_holder_is_killed(tmp_path, holder):
    process = holder()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not is_held(tmp_path / "lock")


def test_who_waits_gets_it_when_the_other_is_done(tmp_path, holder):
    process = holder(0.3)
    with held(tmp_path / "lock"):
        assert process.wait() == 0


def test_it_is_held_inside_and_free_afterwards_whatever_happened(tmp_path: Path):
    path = tmp_path / "deep" / "down" / "lock"
    with pytest.raises(KeyError), held(path) as file:
        file.write("mine")
        assert is_held(path)
        raise KeyError
    assert not is_held(path)
    assert path.read_text() == "mine"


def test_looking_does_not_take_it_and_opening_does_not_empty_it(tmp_path, holder):
    path = tmp_path / "lock"
    path.write_text("somebody")
    assert not is_held(path)
    holder()
    assert is_held(path)
    assert path.read_text() == "somebody"
