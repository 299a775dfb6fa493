"""The same snakemake command goes on after a kill at any moment, and ends with the same bits."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from copied import copy_project

from dpvision import plan

pytestmark = pytest.mark.slow

QUICK = """
seeds: [34]
models:
  resnet9: {width: 0.125, groups: 4}
  scaleresnet9: {width: 0.125, groups: 4}
recipes:
  resnet9: {batch: 128, epochs: 12}
cells:
  cifar10: {dataset: digits, delta: 1.0e-4, epsilons: [7.42], models: [scaleresnet9]}
"""
ARTIFACTS = """
artifacts:
  table1: {kind: accuracy, title: Test accuracy, cells: [cifar10]}
"""


@pytest.fixture
def project(tmp_path) -> Path:
    copy_project(tmp_path)
    (tmp_path / "config/scales/quick.yaml").write_text("title: the demo without a search, one seed, a few epochs\n")
    folder = tmp_path / "config/papers/scalenorm"
    paper = folder / "paper.yaml"
    paper.write_text(paper.read_text().split("artifacts:")[0] + ARTIFACTS)
    (folder / "quick.yaml").write_text(QUICK)
    (folder / "published.yaml").write_text("[]\n")
    (folder / "claims.yaml").unlink()
    return tmp_path


def start(project: Path) -> subprocess.Popen:
    """Start snakemake in a process group of its own, so that it can be killed with its jobs."""
    command = [sys.executable, "-m", "snakemake", "all", "--cores", "1", "--config", "scale=quick"]
    environment = {**os.environ, "PYTHONPATH": str(project / "workflow/scripts")}
    with open(project / "output.txt", "a") as output:
        return subprocess.Popen(command, cwd=project, env=environment, stdout=output, stderr=output, start_new_session=True)


def until(condition: Callable[[], bool], process: subprocess.Popen) -> None:
    while not condition():
        assert process.poll() is None, "it ended"
        time.sleep(0.1)


def log(project: Path) -> str:
    return "".join(file.read_text() for file in (project / "results/quick/logs/train").glob("*.log"))


def record_of(project: Path) -> dict[str, object]:
    """Return what must not depend on interruptions: everything but times."""
    (run,) = plan.load({"scale": "quick", "papers": ["scalenorm"]}, project).runs
    folder = project / "results/quick/runs" / run
    rows = [line.rsplit(",", 1)[0] for line in (folder / "history.csv").read_text().splitlines()]  # seconds come last
    whole = {name: (folder / name).read_bytes() for name in ("weights.safetensors", "metrics.json", "ledger.json", "spec.json")}
    return whole | {"history": rows}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=lambda number: number.name)
def test_a_clusters_signal_to_all_processes_of_a_job_leaves_a_checkpoint(project, number):
    process = start(project)
    until(lambda: "epoch 1/12" in log(project), process)
    os.killpg(process.pid, number)
    assert process.wait() == 1
    assert f"stopped by {number.name} at step" in log(project)
    assert "the same command continues from there" in (project / "output.txt").read_text()
    assert list((project / "results/quick").glob("checkpoints/*/state.pt"))


def test_the_same_command_waits_for_the_job_of_a_killed_snakemake_and_takes_what_it_made(project):
    head = start(project)
    until(lambda: "epoch 1/12" in log(project), head)
    (owner,) = (project / "results/quick/runs").glob("*/.owner/1")
    orphan = json.loads(owner.read_text())["process"]
    os.kill(orphan, signal.SIGSTOP)
    head.kill()
    head.wait()
    again = start(project)
    until(lambda: "waiting until it ends" in log(project), again)
    assert f"process {orphan} on " in (project / "output.txt").read_text()
    os.kill(orphan, signal.SIGCONT)
    assert again.wait() == 0, (project / "output.txt").read_text()
    assert "has finished this run meanwhile" in log(project)
    record = owner.parents[1]
    assert len(json.loads((record / "provenance.json").read_text())["sessions"]) == 1
    assert not (project / "results/quick/checkpoints" / record.name).exists()


def test_a_run_killed_again_and_again_ends_like_one_that_was_not(project, tmp_path_factory):
    twin = shutil.copytree(project, tmp_path_factory.mktemp("twin") / "project")
    assert start(project).wait() == 0, (project / "output.txt").read_text()
    choices = "results/quick/choices"  # what was decided by timing: to the last bit, sums depend on it
    shutil.copytree(project / choices, twin / choices)
    chance = random.Random(1)
    kills = 0
    while (process := start(twin)).poll() is None:
        try:
            code = process.wait(timeout=chance.uniform(4, 7) + kills)
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            time.sleep(0.2)
    assert code == 0, (twin / "output.txt").read_text()
    assert kills > 0
    assert record_of(twin) == record_of(project)
