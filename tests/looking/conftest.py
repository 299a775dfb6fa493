"""A project's results, written by hand: records, owners, logs, as the jobs leave them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from copied import copy_configuration

from dpvision import plan
from dpvision.code import code_digest
from dpvision.files import digest, read_json, write_csv, write_json, write_text
from dpvision.looking.status import Status
from dpvision.plan.reading import read_yaml
from dpvision.plan.stages import ANALYSES, STAGES

MACHINE = {"processor": "A Processor", "threads": 1}
STAGE = "dpvision.training.run dpvision.training.optimizers.nadam dpvision.training.schedules.plateau"


class Results:
    """The results of the scale demo, with the tests' small paper, without claims."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.root = root
        if not (root / "config").exists():
            copy_configuration(root, small=True)
            paper = root / "config/papers/scalenorm/paper.yaml"
            paper.write_text(paper.read_text().split("  claims:\n")[0])
        content = read_yaml(root, "config/config.yaml").content
        self.plan = plan.load(content | {"scale": "demo"} | settings, root)

    def names(self, stage: str) -> list[str]:
        """List the names of a stage's work."""
        return list(self.plan.of(stage))

    @property
    def runs(self) -> list[str]:
        return list(self.plan.runs)

    def status(self) -> Status:
        return Status(self.plan, self.root)

    def log(self, stage: str, name: str, text: str, suffix: str = "log") -> Path:
        file = self.root / self.plan.results / "logs" / stage / f"{name}.{suffix}"
        write_text(file, text)
        return file

    def prepared(self) -> None:
        for name in self.names("data"):
            self.touched(("data", name))

    def search(self, name: str) -> None:
        self.touched(("search", name))

    def touched(self, key: tuple[str, str]) -> None:
        """Write a record with nothing in its files, but by which code it was made, and where."""
        module = STAGES[key[0]].job.split(":")[0]
        for file in self.plan.record(key):
            write_text(self.root / file, "{}" if file.endswith(".json") else "")
        made_by = {"stage": module, "code": code_digest(module), "commit": "abc"}
        made_by |= {"machine": MACHINE, "seconds": 5.0, "started": "2026-01-01"}
        write_json(self.root / self.plan.folder(key) / "provenance.json", made_by)

    def checkpoint(self, run: str, **progress: Any) -> None:
        shown = {"step": 100, "steps": 294, "epoch": 10, "epochs": 30, "epsilon": 1.5, "simulated": False, "told": None}
        shown |= {"validation_top1": 0.5, "test_top1": 0.25, "seconds_left": 3600.0, "kept": 90}
        write_json(self.root / self.plan.results / "checkpoints" / run / "progress.json", shown | progress)

    def owner(self, run: str, **changes: Any) -> Path:
        owner = {"host": "node7", "machine": "another", "process": 12, "process_began": "1", "slurm_job": "77", "since": "noon"}
        file = self.root / self.plan.results / "runs" / run / ".owner" / "1"
        write_text(file, json.dumps(owner | changes))
        return file

    def record(
        self, run: str, seconds: float = 10.0, code: str = "", sessions: int = 1, top1: float = 0.9, **machine: Any
    ) -> Path:
        """Write the record of a run of the plan."""
        folder, spec = self.root / self.plan.results / "runs" / run, self.plan.runs[run]
        code = code or code_digest(*STAGE.split())
        at = {name: {"loss": 0.5, "top1": top1, "top5": 0.99} for name in ("train", "validation", "test")}
        session = {"code": code, "seconds": seconds / sessions, "started": "2026-01-01", "to_step": 294}
        epoch = {"step": 10, "clipped": 0.5, "validation_loss": 1.0, "test_loss": 1.0, "seconds": 0.5}
        rows = [{"epoch": i, **epoch, "validation_top1": 0.1 * i, "test_top1": 0.05 * i} for i in range(1, 6)]
        write_json(folder / "spec.json", spec)
        write_json(folder / "metrics.json", {"last_step": {"step": 294, **at}, "best_epoch": {"epoch": 4, **at}})
        write_csv(folder / "history.csv", rows)
        epsilon = {"target": spec["budget"]["epsilon"], "rdp": 2.8, "prv": 2.5}
        steps = {"planned": 294, "made": 294}
        write_json(
            folder / "ledger.json",
            {"epsilon": epsilon, "delta": 1e-4, "noise_multiplier": 1.5, "sampling_rate": 0.1, "steps": steps, "searches": []},
        )
        write_text(folder / "weights.safetensors", "")
        write_json(
            folder / "provenance.json",
            {
                "stage": STAGE,
                "code": code,
                "commit": "abc",
                "packages": {"torch": "2"},
                "machine": MACHINE | machine,
                "peak_memory_mb": 600,
                "seconds": seconds / sessions,
                "sessions": [session] * sessions,
                "started": "2026-01-01",
                "spec": digest(spec),
            },
        )
        return folder

    def respec(self, run: str, changes: dict[str, Any]) -> None:
        """Change the spec in a run's record, by keys of two parts."""
        file = self.root / self.plan.results / "runs" / run / "spec.json"
        spec = read_json(file)
        for key, value in changes.items():
            part, _, name = key.partition(".")
            spec[part] = {**spec[part], name: value} if name else value
        write_json(file, spec)

    def draw(self, artifact: str) -> None:
        """Write an artifact with nothing in its files, but what it was made of."""
        for file in self.plan.targets(artifact):
            write_text(self.root / file, "")
        write_json(self.root / self.plan.spec_file(artifact), self.plan.artifacts[artifact], sort_keys=False)

    def everything(self) -> None:
        self.prepared()
        for name in self.names("search"):
            self.search(name)
        for run in self.runs:
            self.record(run)
        for stage in ANALYSES:
            for name in self.names(stage):
                self.touched((stage, name))


@pytest.fixture
def results(tmp_path) -> Results:
    return Results(tmp_path)


@pytest.fixture
def results_with(tmp_path) -> Callable[[str, str], Results]:
    """Change the text of the scale's file, and plan anew."""

    def change(old: str, new: str) -> Results:
        Results(tmp_path)
        overlay = tmp_path / "config/papers/scalenorm/demo.yaml"
        assert old in overlay.read_text()
        overlay.write_text(overlay.read_text().replace(old, new))
        return Results(tmp_path)

    return change


@pytest.fixture
def results_of(tmp_path) -> Callable[..., Results]:
    return lambda **settings: Results(tmp_path, **settings)
