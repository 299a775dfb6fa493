"""A file is held by one process at a time, and free as soon as that process ends."""

import fcntl
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpvision.locks import held, in_use, is_held, show_in_use

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
    """Start another process that holds the file for so many seconds."""
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


# --- in use ---

SHOW = """
import sys, time
from dpvision.locks import show_in_use
with open(sys.argv[1], "w+") as file:
    show_in_use(file)
    print("shown", flush=True)
    time.sleep(60)
"""


def show(path: Path) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", SHOW, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "shown\n"
    return process


def test_a_file_is_in_use_until_the_last_that_shows_it_so_has_ended(tmp_path):
    path = tmp_path / "log"
    first, second = show(path), show(path)
    assert in_use(path)
    for process, left in ((first, True), (second, False)):
        process.kill()
        process.communicate()
        assert in_use(path) == left


def test_looking_changes_nothing(tmp_path):
    path = tmp_path / "log"
    path.write_text("words")
    path.chmod(0o444)
    before = path.stat()
    assert not in_use(path)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    with open(path) as file:
        show_in_use(file)  # a look has left nothing behind that would be in its way
        assert in_use(path)


def test_what_is_not_there_is_not_in_use(tmp_path):
    assert not in_use(tmp_path / "log")
    assert not (tmp_path / "log").exists()
