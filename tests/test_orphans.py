"""A snakemake that submits to SLURM ends what a killed one left in the queue, and nothing else."""

import os
from pathlib import Path

import pytest

from dpvision import cluster
from dpvision.errors import UserError
from dpvision.locks import held


@pytest.fixture
def queue(tmp_path, monkeypatch) -> Path:
    """Return the file that squeue lists; a job's line goes when it is cancelled."""
    file = tmp_path / "queue"
    here = f"{tmp_path}/project"
    file.write_text(f"1|dpvision_a|{here}\n2|dpvision_a|{here}/other\n3|interactive|{here}\n4|dpvision_b|{here}\n")
    commands = {"squeue": f"cat {file}", "scancel": f'for job; do sed -i "/^$job|/d" {file}; done'}
    for name, command in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{command}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(here)
    yield file
    cluster._ours.close()


def left(queue: Path) -> list[str]:
    return [line.partition("|")[0] for line in queue.read_text().splitlines()]


def test_jobs_that_a_snakemake_in_this_folder_left_are_ended_and_no_others(queue, capsys):
    cluster.take_over()
    assert left(queue) == ["2", "3"]
    assert "ending 1 4" in capsys.readouterr().err


def test_the_jobs_of_a_snakemake_that_lives_are_not_touched(queue):
    with held(cluster.OWNER) as file:
        file.write("process 7 on a login node")
        file.flush()
        with pytest.raises(UserError, match="another snakemake works in this folder: process 7 on a login node"):
            cluster.take_over()
    assert left(queue) == ["1", "2", "3", "4"]


def test_without_locks_it_is_left_to_the_user_which_jobs_to_end(queue, monkeypatch):
    def no_locks(*_, **__):
        raise OSError("no locks here")

    monkeypatch.setattr(cluster, "held", no_locks)
    with pytest.raises(UserError, match="scancel 1 4$"):
        cluster.take_over()
    assert left(queue) == ["1", "2", "3", "4"]


def test_a_job_that_does_not_end_is_named(queue, tmp_path, monkeypatch):
    (tmp_path / "scancel").write_text("#!/bin/sh\n")
    monkeypatch.setattr(cluster, "PATIENCE", 0.0)
    monkeypatch.setattr(cluster, "PAUSE", 0.0)
    with pytest.raises(UserError, match="do not end: 1 4;"):
        cluster.take_over()
