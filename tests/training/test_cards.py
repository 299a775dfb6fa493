"""Every job on a workstation with several graphics cards has its own, for as long as it lives."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from dpvision.training import cards

WORKSTATION = 3
TAKE = """
import os, sys, time
from pathlib import Path
from dpvision.training import cards
with cards.taken(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])):
    assert "torch" not in sys.modules
    print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    sys.stdin.read()
"""


class Job:
    """A process that has its cards until it is told to go on or killed."""

    def __init__(self, folder: Path, count: int, there: int, **environment: str) -> None:
        rest = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
        command = [sys.executable, "-c", TAKE, str(count), str(there), str(folder)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=rest | environment, text=True, **pipes)  # type: ignore[call-overload]

    def cards(self) -> str:
        """Return the cards that the process sees, once it has them."""
        return self._line(self.process.stdout).strip()

    def says(self) -> str:
        return self._line(self.process.stderr)

    def _line(self, pipe: IO[str]) -> str:
        assert select.select([pipe], [], [], 30)[0], "says nothing"
        return pipe.readline()

    def end(self, number: int | None = None) -> None:
        if number:
            self.process.send_signal(number)
        self.process.communicate()


@pytest.fixture
def job(tmp_path) -> Iterator[Callable[..., Job]]:
    started: list[Job] = []

    def start(count: int = 1, there: int = WORKSTATION, **environment: str) -> Job:
        started.append(Job(tmp_path / "cards", count, there, **environment))
        return started[-1]

    yield start
    for each in started:
        each.end(signal.SIGKILL)


def test_jobs_have_different_cards(job):
    assert sorted(each.cards() for each in [job() for _ in range(WORKSTATION)]) == ["0", "1", "2"]


@pytest.mark.parametrize("how", [None, signal.SIGTERM, signal.SIGKILL], ids=["done", "SIGTERM", "SIGKILL"])
def test_a_card_is_free_as_soon_as_its_holder_has_ended(how, job):
    holders = {each.cards(): each for each in [job() for _ in range(WORKSTATION)]}
    holders["1"].end(how)
    assert job().cards() == "1"


def test_a_job_that_needs_two_has_two(job):
    assert job().cards() == "0"
    assert job(2).cards() == "1,2"


def test_who_finds_too_few_free_waits_says_who_holds_them_and_keeps_none_meanwhile(job):
    first, second = job(), job()
    assert (first.cards(), second.cards()) in (("0", "1"), ("1", "0"))
    waiting = job(2)
    said = waiting.says()
    assert "waiting for graphics cards: 2 needed, 1 of 3 free" in said
    assert all(f"is held by process {each.process.pid}" in said for each in (first, second))
    assert job().cards() == "2"
    first.end()
    second.end()
    assert waiting.cards() == "0,1"


def test_what_a_cluster_chose_stands(job):
    assert job().cards() == "0"
    assert job(CUDA_VISIBLE_DEVICES="0").cards() == "0"
    assert job(CUDA_VISIBLE_DEVICES="").cards() == ""
    assert job(2, CUDA_VISIBLE_DEVICES="GPU-5ebe,MIG-1").cards() == "GPU-5ebe,MIG-1"
    assert job().cards() == "1"


@pytest.mark.parametrize(("count", "there"), [(0, 3), (1, 0), (1, 1), (2, 1), (4, 3)])
def test_where_there_is_nothing_to_choose_nothing_is_chosen(count, there, job, tmp_path):
    assert job(count, there).cards() == "None"
    assert not (tmp_path / "cards").exists()


def test_the_folder_is_the_user_s_own(tmp_path, monkeypatch):
    monkeypatch.setattr(cards.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = cards.of_user()
    assert folder.parent == tmp_path
    assert folder == cards.of_user()
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("script", ["search_worker", "train", "analyse"])
def test_the_stages_that_ask_for_cards_take_them_before_torch_is_loaded(script):
    text = (Path(__file__).parents[2] / f"workflow/scripts/{script}.py").read_text()
    before, after = text.split('with logs.job(snakemake.log[0]), cards.taken(snakemake.resources.get("gpu", 0)):\n')
    check = "import sys; " + "; ".join(line for line in before.splitlines() if line.startswith("from dpvision"))
    subprocess.run([sys.executable, "-c", f"{check}; assert 'torch' not in sys.modules"], check=True)
    assert "from dpvision.training.machine" in after
