"""A job's words go into its log; the terminal gets a line that is written over, and one line when it fails."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpvision import logs
from dpvision.locks import in_use

JOB = """
import logging, os, sys, warnings
from dpvision import logs
from dpvision.errors import UserError
with logs.job("logs/deep/job.log"):
{}
"""
PROGRESS = """
progress = logs.Progress("a job", 20)
progress.EVERY = 0
for done in range(1, 21):
    progress.step(done, lambda: f"value {done} " + "and much more " * 10)
progress.line("a line of its own")
progress.close()
"""


def job(folder: Path, body: str, **how) -> subprocess.CompletedProcess:
    code = JOB.format("\n".join("    " + line for line in body.strip().splitlines()))
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | how
    return subprocess.run([sys.executable, "-c", code], cwd=folder, **how)


def log(folder: Path) -> str:
    return (folder / "logs/deep/job.log").read_text(encoding="utf-8")


def test_everything_printed_warned_and_logged_goes_into_the_log_in_order(tmp_path):
    done = job(
        tmp_path,
        """
print("printed")
print("to stderr", file=sys.stderr)
logging.getLogger("x").info("logged %d", 1)
warnings.warn("warned")
os.system("echo from a child")
os.write(2, b"from below\\n")
""",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = [re.sub(r"^\d\d:\d\d:\d\d  ", "", line) for line in log(tmp_path).splitlines()]
    assert found[:3] == ["printed", "to stderr", "logged 1"]
    assert "UserWarning: warned" in found[3]
    assert found[-2:] == ["from a child", "from below"]


def test_an_unexpected_error_is_one_line_that_points_to_the_log_which_has_the_traceback(tmp_path):
    done = job(tmp_path, "raise KeyError('a key')")
    assert done.returncode == 1
    assert done.stderr == "KeyError: 'a key' (traceback: logs/deep/job.log)\n"
    assert done.stdout == ""
    assert log(tmp_path).startswith("Traceback (most recent call last):")
    assert log(tmp_path).endswith("KeyError: 'a key'\nfailed: KeyError: 'a key'\n")


def test_a_users_error_is_its_message_without_a_traceback(tmp_path):
    done = job(tmp_path, "raise UserError('the file x is too short; do y')")
    assert (done.returncode, done.stderr) == (1, "the file x is too short; do y\n")
    assert log(tmp_path) == "failed: the file x is too short; do y\n"


@pytest.mark.parametrize(
    "error",
    [
        "OSError(28, 'No space left on device')",
        "OSError(122, 'Disk quota exceeded')",
        "RuntimeError('I/O error: No space left on device (os error 28)')",
    ],
)
def test_full_disk_is_one_message_with_its_folder(tmp_path, error):
    done = job(tmp_path, f"try:\n    raise {error}\nexcept Exception as error:\n    raise ValueError('a library') from error")
    assert done.returncode == 1
    assert re.fullmatch(r"the disk is full: [\d.]+ MB are free under \S+/logs/deep\. .*same command again.*\n", done.stderr)
    assert log(tmp_path) == f"failed: {done.stderr}"


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_no_terminal_is_too_poor_for_greek(tmp_path, encoding):
    done = job(tmp_path, "print('ε')\nraise UserError('ε')", env={**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"})
    assert done.returncode == 1
    assert log(tmp_path) == "ε\nfailed: ε\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('all went well')", ""),
        ("from dpvision.errors import Interrupted\nraise Interrupted('at step 3')", ""),
        ("raise UserError('a first line\\nand a second')", "a first line\nand a second"),
        ("raise KeyError('k')", "KeyError: 'k'"),
        ("logs.leave('the other process died')", "the other process died"),
        ("os.kill(os.getpid(), 9)", ""),
        ("print('x' * 100_000)\nraise UserError('after much')", "after much"),
    ],
    ids=["an end", "told to leave", "a user's error", "another error", "left at once", "killed", "a long log"],
)
def test_a_log_tells_what_its_job_failed_of(tmp_path, body, words):
    job(tmp_path, body)
    assert logs.last_words(tmp_path / "logs/deep/job.log") == words


def test_a_log_is_in_use_while_its_job_runs(tmp_path):
    job(tmp_path, "from pathlib import Path\nfrom dpvision.locks import in_use\nprint(in_use(Path('logs/deep/job.log')))")
    assert log(tmp_path) == "True\n"
    assert not in_use(tmp_path / "logs/deep/job.log")


def test_progress_says_nothing_where_there_is_no_terminal(tmp_path):
    done = job(tmp_path, PROGRESS)
    assert (done.returncode, done.stderr) == (0, "")
    assert log(tmp_path).endswith("  a line of its own\n")


def on_terminal(folder: Path, body: str) -> str:
    ours, theirs = pty.openpty()
    try:
        job(folder, body, stderr=theirs)
        os.set_blocking(ours, False)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 1 << 16)
            except BlockingIOError:
                return shown.decode()
    finally:
        os.close(ours)
        os.close(theirs)


def test_progress_is_one_line_on_a_terminal_written_over_and_wiped_in_the_end(tmp_path):
    shown = on_terminal(tmp_path, PROGRESS)
    lines = shown.split("\r\x1b[K")
    assert "\n" not in shown
    assert len(lines) == 22
    assert lines[1].startswith("a job  1/20  value 1 and")
    assert lines[20].startswith("a job  20/20  value 20 and")
    assert lines[0] == lines[21] == ""
    assert max(map(len, lines)) < 80  # a line that wrapped would not be written over whole


def test_progress_is_shown_a_few_times_a_second_and_at_the_end(tmp_path):
    shown = on_terminal(tmp_path, PROGRESS.replace("progress.EVERY = 0", ""))
    assert 0 < shown.count("a job") < 5
    assert "a job  20/20" in shown


def test_time_to_go_counts_from_where_a_resumed_job_began(tmp_path):
    shown = on_terminal(
        tmp_path,
        """
import time
progress = logs.Progress("resumed", 1000)
progress.begun -= 10
progress.step(901, str)
""",
    )
    assert "resumed  901/1000    16:30 to go" in shown  # one step in ten seconds, 99 left


def test_a_failing_job_wipes_its_progress_line_before_it_speaks(tmp_path):
    shown = on_terminal(
        tmp_path,
        """
from contextlib import closing
with closing(logs.Progress("a job", 20)) as progress:
    progress.step(1, str)
    raise UserError("stop")
""",
    )
    assert shown.endswith("to go\r\x1b[Kstop\r\n")
