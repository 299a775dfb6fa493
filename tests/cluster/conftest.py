"""A cluster for all tests, a project that has gone through it undisturbed, and copies of that to disturb."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import lab
import pytest
import yaml
from lab import ROOT, Lab, wait_for

from dpvision import plan
from dpvision.plan.stages import ANALYSES

# the demo with one training, and less of everything
DEMO = yaml.safe_load((ROOT / "config/scales/demo.yaml").read_text())
SCALE = DEMO | {"resources": DEMO["resources"] | {"train": DEMO["resources"]["train"] | {"gpu": 1}}}
SCALENORM = yaml.safe_load((ROOT / "config/papers/scalenorm/demo.yaml").read_text())
SCALENORM["seeds"] = [34]
SCALENORM["recipes"]["resnet9"]["epochs"] = 8
SCALENORM["searches"]["groups"]["trials"] = 2
SCALENORM["hessian"] |= {"iterations": 20, "lanczos_steps": 20}
SCALENORM["artifacts"] |= {"table1": {"cells": ["cifar10"]}, "table2": None, "bn": None}
SCALENORM["cells"]["cifar10"] |= {"epsilons": [7.42], "models": ["scaleresnet9"]}

STAGES = ("download", "prepare", "search_worker", "search", "train", "analyse_hessian analyse_activations", "table figure")
OVERHEAD = pytest.StashKey[str]()


def overhead(project: Path, seconds: float) -> str:
    """Say what the pipeline adds to the jobs' own time, by their benchmarks."""
    took: dict[str, list[float]] = {}
    for file in (project / "results").glob("*/logs/**/*.jsonl"):
        rule = file.relative_to(project).parts[3]
        rule = f"analyse_{rule}" if rule in ANALYSES else rule  # their logs are called by the stage
        took.setdefault(rule, []).append(json.loads(file.read_text().splitlines()[-1])["s"])
    number, whole = sum(map(len, took.values())), sum(map(sum, took.values()))
    chain = sum(max(max(took[rule]) for rule in stage.split()) for stage in STAGES)
    return (
        f"through SLURM, {number} jobs took {seconds:.0f} s: {whole:.0f} s of work, {chain:.0f} s where each stage takes as "
        f"long as its longest job; {seconds - chain:.0f} s are the pipeline's: submitting, starting, noticing the end"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if OVERHEAD in config.stash:
        terminalreporter.write_line(config.stash[OVERHEAD])


class Head:
    """A snakemake that submits to the cluster, as docs/cluster.md says, in a process group of its own."""

    def __init__(self, lab: Lab, project: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "snakemake", *arguments, "--profile", "slurm"]
        environment = lab.environment | {"PYTHONPATH": f"{project}/workflow/scripts"}
        self.words = project / f"words-{time.monotonic_ns()}.txt"
        with open(self.words, "w") as words:
            self.process = subprocess.Popen(
                [*command, "--config", "scale=lab"],
                cwd=project,
                env=environment,
                stdout=words,
                stderr=words,
                start_new_session=True,
            )

    def said(self) -> str:
        return self.words.read_text()

    def submitted(self, rule: str) -> list[str]:
        """Return the ids of this rule's jobs in the order of their submission."""
        return re.findall(rf"SLURM jobid (\d+) \(log: \S+/rule_{rule}/", self.said())

    def reaches(self, what: str, condition: Callable[[], bool], seconds: float = 120) -> None:
        def so() -> bool:
            assert self.process.poll() is None, f"it ended before: {what}\n{self.said()}"
            return condition()

        wait_for(what, so, seconds)

    def end(self, seconds: float = 240) -> int:
        """Wait for the end and return its exit code. A snakemake that hangs is the fault that these tests are about."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"snakemake has not ended after {seconds:.0f} s:\n{self.said()}")

    def kill(self) -> None:
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Project:
    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self.heads: list[Head] = []
        self.plan = plan.load({"scale": "lab", "papers": ["scalenorm"]}, folder)
        (self.run,) = self.plan.runs
        self.metrics = f"results/lab/runs/{self.run}/metrics.json"
        self.log = folder / f"results/lab/logs/train/{self.run}.log"

    def snakemake(self, *arguments: str) -> Head:
        self.heads.append(Head(self.lab, self.folder, *arguments))
        return self.heads[-1]

    def training_under_way(self, *arguments: str) -> tuple[Head, str]:
        """Return a head, and the id of its training's job once that has something to lose.

        The training is held there, so that a quick machine does not finish it: a SLURM that ends a job wakes it first.
        """
        head = self.snakemake(*(arguments or [self.metrics]))
        head.reaches("a first epoch", lambda: self.log.exists() and "epoch 1/" in self.log.read_text())
        job = head.submitted("train")[-1]
        self.signal_training(job, signal.SIGSTOP)
        return head, job

    def signal_training(self, job: str, number: signal.Signals) -> None:
        for process in lab.marked(f"SLURM_JOB_ID={job}"):
            if b".train.py" in Path(f"/proc/{process}/cmdline").read_bytes():
                os.kill(process, number)

    def record(self) -> dict[str, object]:
        """Return all that must not depend on interruptions: everything but times."""
        folder = self.folder / "results/lab/runs" / self.run
        rows = [line.rsplit(",", 1)[0] for line in (folder / "history.csv").read_text().splitlines()]  # seconds come last
        names = ("weights.safetensors", "metrics.json", "ledger.json", "spec.json")
        return {name: (folder / name).read_bytes() for name in names} | {"history": rows}

    def sessions(self) -> int:
        """Count the processes that have made the run."""
        provenance = json.loads((self.folder / "results/lab/runs" / self.run / "provenance.json").read_text())
        return len(provenance["sessions"])

    def node_of(self, job: str) -> str:
        return self.lab.run("squeue", "-h", "-j", job, "-o", "%N").strip()

    def states_of(self, job: str) -> list[str]:
        """Return a job's states in the accounting, one for each time it was started."""
        return self.lab.run("sacct", "-X", "-n", "-P", "--duplicates", "-j", job, "-o", "state").split("\n")[:-1]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Lab]:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the tests like Ctrl-C, which puts everything away
    try:
        with lab.running() as here:
            yield here
    except lab.Unavailable as reason:
        pytest.skip(f"no SLURM here: {reason}")


@pytest.fixture(scope="session")
def undisturbed(cluster: Lab, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Project:
    """Return a project in which `snakemake --profile slurm all` has run."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for part in ("Snakefile", "workflow", "config", "profiles", "slurm", "envs"):
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy2)(ROOT / part, folder / part)
    (folder / "config/scales/lab.yaml").write_text(yaml.safe_dump(SCALE))
    (folder / "config/papers/scalenorm/lab.yaml").write_text(yaml.safe_dump(SCALENORM))
    project = Project(cluster, folder)
    begun = time.monotonic()
    head = project.snakemake("all")
    assert head.end(400) == 0, head.said()
    request.config.stash[OVERHEAD] = overhead(folder, time.monotonic() - begun)
    return project


@pytest.fixture
def project(undisturbed: Project, tmp_path: Path) -> Iterator[Project]:
    """Yield a copy in which the training is to be made anew, with the same choices of how gradients are clipped."""
    shutil.copytree(undisturbed.folder, tmp_path / "project")
    copy = Project(undisturbed.lab, tmp_path / "project")
    shutil.rmtree((copy.folder / copy.metrics).parent)
    copy.log.unlink()
    yield copy
    for head in copy.heads:  # where a test failed half way
        head.kill()
    copy.lab.run("scancel", "--user", copy.lab.user)
