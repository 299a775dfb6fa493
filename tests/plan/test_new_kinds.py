"""A new kind of artifact is one file; a new analysis is an entry in the table of stages, its options and its job."""

import json
from typing import Any

import pytest

PACKAGE = "workflow/scripts/dpvision"
PAPER = "papers/scalenorm/paper.yaml"
KIND = '''"""A table of something else."""

from typing import ClassVar, Literal

from dpvision.config.artifacts import Table


class Options(Table):
    """A table of something else."""

    kind: Literal["{kind}"]
    """What it is."""
    statistic: Literal["median", "best"] = "median"
    """Over the seeds."""

    READS: ClassVar = {reads}
'''
ARTIFACT = "artifacts:\n  new: {{kind: {kind}, title: New, cells: [cifar10], epsilons: [7.42]}}\n"
STAGE = """        _analysis(
            "weights",
            "norms",
            "norms.json",
            ("table of norms", "tables of norms"),
            lambda spec, run, batch, workers: cost.Cost(cost.counts_of(run).parameters, 1, 0),
            "dpvision.analyses.weights:measure",
        ),
    )
}
"""
OPTIONS = '''class Weights(Strict):
    """How the norms of weights are measured."""

    order: Positive = 2
    """Of the norm."""


class Analyses(Strict):
    """What a paper says of each analysis, by the stage's name."""

    weights: Weights = Weights()
    """Of artifacts of the kind norms."""
'''
JOB = '''"""Norms of weights, as a job."""

from dpvision.files import write_json


def measure(spec, trained, folder):
    norms = {name: float(weight.norm(spec["order"])) for name, weight in trained.network.named_parameters()}
    write_json(folder / "norms.json", norms)
'''
SAY = """
import json, sys
from pathlib import Path
from dpvision import plan
from dpvision.code import code_digest
from dpvision.looking.estimate import Estimator, as_text, table
from dpvision.looking.status import Status
from dpvision.looking.overview import overview
from dpvision.plan.schema import schemas

planned = plan.load({"papers": ["scalenorm"], "scale": sys.argv[1]}, Path())
estimator = Estimator(planned, Path())
print(json.dumps({
    "codes": {name: spec["code"] for name, spec in planned.artifacts.items()},
    "runs": code_digest("dpvision.training.run"),
    "inputs": planned.inputs_of("new"),
    "targets": planned.targets("new"),
    "below": [stage for stage, _ in planned.below("new")],
    "kept": planned.kept_files(),
    "estimated": [estimator.job(key).by for key in planned.work_of("new")],
    "table": as_text(planned, table(planned, estimator, ["new"], 1)),
    "status": [found.stage for found in Status(planned, Path()).found.values() if "new" in found.targets],
    "overview": overview(planned, ["new"], Path()),
    "kinds": [part["properties"]["kind"]["const"] for part in schemas()["paper.json"]["$defs"].values()
              if "const" in part.get("properties", {}).get("kind", {})],
    "sections": list(schemas()["overlay.json"]["properties"]),
    "jobs": schemas()["scale.json"]["properties"]["resources"]["propertyNames"]["enum"],
}))
"""


@pytest.fixture
def said(project):
    """Run a process that has the project's copy of the library and return what it says."""

    def run(scale: str = "paper") -> dict[str, Any]:
        (project.root / "say.py").write_text(SAY)
        done = project.run("say", scale)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def with_kind(project: Any, kind: str, reads: dict[str, tuple[str, ...]]) -> None:
    (project.root / PACKAGE / f"reporting/kinds/{kind}.py").write_text(KIND.format(kind=kind, reads=reads))
    project.change(PAPER, "artifacts:\n", ARTIFACT.format(kind=kind))


def with_analysis(project: Any) -> None:
    for file, old, new in (
        ("plan/stages.py", "    )\n}\n", STAGE),
        (
            "config/analyses.py",
            'class Analyses(Strict):\n    """What a paper says of each analysis, by the stage\'s name."""\n',
            OPTIONS,
        ),
    ):
        path = project.root / PACKAGE / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
    (project.root / PACKAGE / "analyses/weights.py").write_text(JOB)


def test_a_kind_s_file_is_all_that_it_needs_and_no_other_kind_looks_made_by_other_code(project, said):
    before = project.plan()
    with_kind(project, "other", {"metrics": ("train/metrics.json",)})
    found = said()
    assert found["targets"] == [f"results/tables/new.{suffix}" for suffix in ("csv", "md", "tex")]
    assert len(found["inputs"]["metrics"]) == 6
    assert all(file.startswith("results/runs/") and file.endswith("/metrics.json") for file in found["inputs"]["metrics"])
    assert "other" in found["kinds"] and "accuracy" in found["kinds"]
    codes = {name: code for name, code in found["codes"].items() if name != "new"}
    assert codes == {name: spec["code"] for name, spec in before.artifacts.items()}
    assert found["codes"]["new"] not in codes.values()


def test_a_kind_s_options_are_strict(project):
    with_kind(project, "other", {"metrics": ("train/metrics.json",)})
    project.change(PAPER, "kind: other,", "kind: other, hue: 3,")
    done = project.run("dpvision", "plan")
    assert done.returncode == 1
    assert done.stderr.startswith(f"config/{PAPER}: artifacts.new.hue = 3: unknown key. Allowed here: kind, title, cells, ")


def test_an_analysis_is_planned_costed_looked_for_kept_and_run_by_its_entry_options_and_job_alone(project, said):
    before = project.plan(scale="demo")
    with_analysis(project)
    with_kind(project, "norms", {"norms": ("weights/norms.json",), "provenance": ("weights/provenance.json",)})
    found = said("demo")
    assert found["below"].count("weights") == found["status"].count("weights") == 6
    assert [file.split("/")[2] for file in found["inputs"]["norms"]] == ["norms"] * 6
    assert set(found["inputs"]["norms"]) < set(found["kept"])
    assert found["estimated"] == ["guessed"] * 6
    assert "tables of norms" in found["table"].splitlines()[3]
    assert "6 tables of norms (0 made)" in found["overview"]
    assert "weights" in found["sections"] and "weights" in found["jobs"]
    assert {name: code for name, code in found["codes"].items() if name != "new"} == {
        name: spec["code"] for name, spec in before.artifacts.items()
    }
    done = project.run("snakemake", "new", "--dry-run", "--cores", "1", "--config", "scale=demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rule analyse_weights:" in done.stdout + done.stderr


def test_a_paper_says_an_analysis_s_options_and_a_scale_its_resources(project, said):
    with_analysis(project)
    with_kind(project, "norms", {"norms": ("weights/norms.json",)})
    one = said()["inputs"]["norms"]
    project.change("scales/paper.yaml", "  train: {", "  weights: {threads: 1}\n  train: {")
    assert said()["inputs"]["norms"] == one
    project.change(PAPER, "artifacts:\n", "weights: {order: 1}\nartifacts:\n")
    assert not set(said()["inputs"]["norms"]) & set(one)
