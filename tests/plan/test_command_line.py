"""python -m dpvision: what it says, where it looks, and that it never shows a traceback for a slip."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from copied import copy_configuration

from dpvision import __main__ as command_line
from dpvision import plan
from dpvision.files import write_json, write_text
from dpvision.looking.overview import overview, warning
from dpvision.looking.target import everything
from dpvision.plan.artifact_state import artifact_state, mark_changed_spec


@pytest.fixture
def dpvision(monkeypatch, capsys, tmp_path_factory):
    """Run a command in this process, where ScaleNorm is the only paper, and return what it printed."""
    here = tmp_path_factory.mktemp("here")
    copy_configuration(here)
    monkeypatch.chdir(here)
    command_line._here.cache_clear()  # the place of a process, usually

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["dpvision", *words])
        command_line.main()
        return capsys.readouterr().out

    return run


def refused(dpvision, *words: str) -> str:
    with pytest.raises(SystemExit) as raised:
        dpvision(*words)
    assert raised.value.code not in (0, None)
    return str(raised.value.code)


def make(root: Path, files: list[str]) -> None:
    for file in files:
        write_text(root / file, "")


# --- plan ---


def test_the_plan_of_everything_counts_it(configuration):
    lines = overview(configuration.plan(), ["all"], configuration.root).splitlines()
    assert lines[0] == "scale paper: as published"
    assert lines[3].split() == ["table1", "accuracy", "6", "18", "0", "not", "made"]
    assert [line.split()[0] for line in lines[3:11]] == [
        "table1",
        "table4",
        "hessian",
        "groups",
        "figure2",
        "figure3",
        "spectrum",
        "claims",
    ]
    assert lines[-1] == "2 searches (0 made), 18 trainings (0 made), 6 Hessians (0 made), 6 histograms of activations (0 made)"


def test_the_plan_of_an_artifact_counts_what_it_takes(configuration):
    planned = configuration.plan()
    assert overview(planned, ["table1"], configuration.root).splitlines()[-1] == "2 searches (0 made), 18 trainings (0 made)"
    assert overview(planned, ["figure3"], configuration.root).splitlines()[-1] == "2 searches (0 made), 6 trainings (0 made)"
    assert overview(planned, ["groups"], configuration.root).splitlines()[-1] == "2 searches (0 made)"
    claims = overview(planned, ["claims"], configuration.root).splitlines()[-1]
    assert claims == "2 searches (0 made), 18 trainings (0 made), 6 Hessians (0 made), 6 histograms of activations (0 made)"


def test_the_plan_knows_what_is_there(configuration):
    planned, root = configuration.plan(scale="demo"), configuration.root
    first, second, *_ = planned.runs_of("table1")
    make(root, planned.record(("train", first)))
    make(root, planned.record(("train", second))[:-1])  # without its provenance it is no record
    make(root, [file for files in planned.inputs_of("groups").values() for file in files])
    make(root, [*planned.targets("groups"), *planned.targets("claims")])
    write_json(root / planned.spec_file("groups"), planned.artifacts["groups"], sort_keys=False)
    text = overview(planned, ["table1", "groups", "claims"], root)
    assert text.splitlines()[3].split() == ["table1", "accuracy", "6", "18", "1", "not", "made"]
    assert text.splitlines()[4].split()[-1] == "made"
    assert "18 trainings (1 made)" in text
    assert text.splitlines()[-6:] == [
        "made:",
        "  results/demo/figures/groups.csv .svg .pdf .png",
        "",
        "out of date, made of other settings or records:",
        "  results/demo/claims.csv .md",
        "  results/demo/figures/claims.svg .pdf .png .csv",
    ]


def test_targets_are_artifacts_papers_and_all(configuration):
    planned = configuration.plan()
    of_all = overview(planned, ["all"], configuration.root)
    assert overview(planned, ["scalenorm"], configuration.root) == of_all
    assert overview(planned, ["scalenorm", "table1", "all"], configuration.root) == of_all


def test_an_unknown_target_is_answered_with_those_that_there_are(dpvision):
    said = refused(dpvision, "plan", "tabel4")
    assert said.startswith('there is no target "tabel4". Did you mean "table4"? List them with: python -m dpvision plan')


def test_an_unknown_scale_is_answered_with_those_that_there_are(dpvision):
    for command in ("plan", "status", "claims"):
        assert 'scale = "deom": there is no scale "deom". Did you mean "demo"?' in refused(dpvision, command, "--scale", "deom")


def test_the_scale_can_be_said(dpvision):
    assert "scale demo:" in dpvision("plan", "--scale", "demo")
    assert "scale paper:" in dpvision("plan", "--scale", "paper", "table1")


# --- cost and budget ---


SLOW = ("scales/paper.yaml", "train: {threads: 4, mem_mb: 6000, gpu: 1, speed: 1.0e12", "train: {threads: 4, speed: 1.0e8")
YEARS = re.compile(r"one device would take \d+\.\d years: ")


def test_what_would_take_years_is_said_of_what_is_left(configuration):
    planned, root = configuration.change(*SLOW).plan(), configuration.root
    (line,) = warning(planned, ["table1"], root)
    assert YEARS.match(line) and line in overview(planned, ["table1"], root)
    assert warning(planned, ["groups"], root) == []
    make(root, [file for run in planned.runs_of("table1") for file in planned.record(("train", run))])
    assert warning(planned, ["table1"], root) == []


def test_it_is_said_beside_the_files_of_a_target(configuration, monkeypatch, capsys):
    planned = configuration.change(*SLOW).plan()
    monkeypatch.chdir(configuration.root)
    assert everything(planned, "table1") == planned.everything("table1")
    everything(planned, "groups")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("table1: one device would take")


@pytest.mark.slow
def test_snakemake_says_what_would_take_years_before_it_starts_once_for_each_target(project):
    project.change(*SLOW)
    said = [
        project.run("snakemake", "-n", "--quiet", "rules", "--cores", "1", *names).stderr for names in (["table1"], ["groups"])
    ]
    lines = [[line for line in text.splitlines() if YEARS.search(line)] for text in said]
    assert [len(found) for found in lines] == [1, 0]
    assert lines[0][0].startswith("table1: one device would take")


def test_a_budget_ends_with_the_command_for_it(dpvision, monkeypatch, configuration):
    monkeypatch.setattr(command_line, "_here", lambda: configuration.root)
    said = dpvision("plan", "table4", "--budget", "100h", "--devices", "2", "--scale", "demo")
    assert said.endswith("\n\nsnakemake table4 --cores 2 --config scale=demo\n")


def test_cost_and_budget_come_together_for_programs(dpvision, monkeypatch, configuration):
    monkeypatch.setattr(command_line, "_here", lambda: configuration.root)
    words = ("plan", "table4", "--cost", "--budget", "90m", "--scale", "demo")
    assert dpvision(*words).count("table4") >= 3
    found = json.loads(dpvision(*words, "--json"))
    assert [row["artifact"] for row in found["artifacts"]] == ["table4"]
    assert found["budget"]["budget_seconds"] == 5400
    assert found["budget"]["command"].startswith("snakemake table4 ")


def test_cost_says_what_is_left_out_for_want_of_data(dpvision, monkeypatch, configuration):
    monkeypatch.setattr(command_line, "_here", lambda: configuration.root)
    file = configuration.root / "config/datasets.yaml"
    datasets = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(datasets | {"cifar10": datasets["cifar10"] | {"sources": []}}))
    left = dpvision("plan", "--cost").splitlines()[-1]
    assert left.startswith("left out: table1, ") and "made of cifar10, which nobody can download" in left


@pytest.mark.parametrize("time", ["48", "h", "0h", "1.2.3h", "soon"])
def test_a_budget_that_is_no_time_is_refused(time, dpvision, capsys):
    with pytest.raises(SystemExit) as raised:
        dpvision("plan", "--budget", time)
    assert raised.value.code == 2
    assert f"must be a time like 48h, 90m or 2d, not {time}" in capsys.readouterr().err


# --- claims ---


def accuracies(planned: plan.Plan, root: Path, runs: list[str]) -> None:
    for i, run in enumerate(runs):
        record = {"last_step": {"test": {"top1": 0.7 + i / 100}}}
        write_json(root / planned.results / "runs" / run / "metrics.json", record)


def test_the_page_of_claims_is_made_of_the_records_that_there_are(dpvision):
    planned = plan.load({"papers": ["scalenorm"], "scale": "demo"})
    accuracies(planned, Path(), planned.runs_of("table4"))
    lines = dpvision("claims", "--scale", "demo").splitlines()
    assert [line.split()[-3:] for line in lines if "better_on_all_tasks" in line] == [["9", "not", "run"]]
    assert lines[-6:] == planned.targets("claims")
    assert "| 3 of 3 |" not in Path("results/demo/claims.md").read_text()


def test_page_that_lacks_records_is_out_of_date(dpvision):
    """Snakemake then makes the page anew, also of records that come from elsewhere with their dates."""
    planned = plan.load({"papers": ["scalenorm"], "scale": "demo"})
    accuracies(planned, Path(), planned.runs_of("table4"))
    assert mark_changed_spec(planned, "claims") == []
    dpvision("claims", "--scale", "demo")
    (newer,) = map(Path, mark_changed_spec(planned, "claims"))
    pages = [Path(file) for file in planned.targets("claims")]
    assert newer.stat().st_mtime_ns > max(page.stat().st_mtime_ns for page in pages)
    make(Path(), [file for files in planned.inputs_of("claims").values() for file in files if not Path(file).exists()])
    assert artifact_state(planned, "claims", Path()) == "out of date"


def test_without_claims_there_is_no_page_and_it_is_said(project):
    project.change(
        "papers/scalenorm/paper.yaml", "  claims:\n    kind: claims\n    title: What the paper says, and whether it holds\n", ""
    )
    done = project.run("dpvision", "claims")
    assert (done.returncode, done.stderr) == (1, "there are no claims: no artifact of scalenorm is of the kind claims\n")


# --- models ---


def listed(dpvision, *words: str) -> dict[str, dict]:
    return {row["model"]: row for row in json.loads(dpvision("models", "--json", *words))}


def test_models_are_listed_with_what_they_cost(dpvision):
    lines = [line.split() for line in dpvision("models").splitlines()]
    assert ["resnet9", "2,447,946", "284,895,232"] in lines
    assert ["scaleresnet9", "2,448,714", "284,895,232"] in lines


def test_models_are_listed_for_programs(dpvision):
    rows = listed(dpvision)
    assert {name: rows[name]["parameters"] for name in ("resnet9", "scaleresnet9")} == {
        "resnet9": 2_447_946,
        "scaleresnet9": 2_448_714,
    }
    assert rows["resnet9"]["multiply_adds"] == 284_895_232
    assert rows["resnet9"]["shape"] == [3, 32, 32]


def test_models_are_listed_for_other_classes_and_images(dpvision):
    rows = listed(dpvision, "--classes", "200", "--size", "64")
    assert {name: rows[name]["parameters"] for name in ("resnet9", "scaleresnet9")} == {
        "resnet9": 2_642_696,
        "scaleresnet9": 2_643_464,
    }
    assert rows["resnet9"]["multiply_adds"] == 4 * (284_895_232 - 10_240) + 204_800  # convolutions, linear layer
    assert listed(dpvision, "--channels", "1")["resnet9"]["parameters"] == 2_447_946 - 2 * 9 * 64


@pytest.mark.parametrize("words", [["--size", "7"], ["--size", "big"], ["--classes", "0"], ["--channels", "-1"]], ids=" ".join)
def test_models_of_impossible_images_are_refused(words, dpvision, capsys):
    with pytest.raises(SystemExit) as raised:
        dpvision("models", *words)
    assert raised.value.code == 2
    assert f"argument {words[0]}: must be a whole number of at least" in capsys.readouterr().err


# --- schema ---


def test_writing_the_schemas_and_their_page_again_changes_no_byte(project):
    folder, page = project.root / "config/schema", project.root / "config/README.md"
    shutil.rmtree(folder)
    page.unlink()
    said = project.run("dpvision", "schema").stdout.splitlines()
    files = [*folder.iterdir(), page]
    first = {file.relative_to(project.root).as_posix(): file.read_bytes() for file in files}
    assert sorted(said) == sorted(first)
    assert project.run("dpvision", "schema").stdout.splitlines() == said
    assert {file.relative_to(project.root).as_posix(): file.read_bytes() for file in files} == first


# --- where it is run, and what reads it ---


def test_a_reader_that_has_seen_enough_is_no_error(project):
    for words in (["plan"], ["plan", "--cost"], ["status"]):
        reads, writes = os.pipe()
        os.close(reads)
        done = project.run("dpvision", *words, capture_output=False, stdout=writes, stderr=subprocess.PIPE)
        os.close(writes)
        assert (done.returncode, done.stderr) == (0, "")


def test_from_another_folder_it_looks_at_the_project_and_says_so(project, tmp_path):
    make(project.root, project.plan().targets("table1"))
    here, elsewhere = (project.run("dpvision", "plan", "table1", cwd=folder) for folder in (project.root, tmp_path))
    assert here.stdout.endswith(":\n  results/tables/table1.csv .md .tex\n")
    assert (elsewhere.stdout, elsewhere.stderr) == (here.stdout, f"in {project.root}:\n")


def test_a_slip_in_the_configuration_is_one_line_and_no_traceback(project):
    project.change("papers/scalenorm/paper.yaml", "    clip: 1.5", "    clip: 0")
    done = project.run("dpvision", "plan")
    assert done.returncode == 1
    assert done.stderr == "config/papers/scalenorm/paper.yaml: recipes.resnet9.clip = 0: must be a number above 0\n"


def test_a_setting_that_is_no_mapping_is_refused(project):
    (project.root / "config/config.yaml").write_text("[paper]\n")
    done = project.run("dpvision", "plan", "--scale", "demo")
    assert done.stderr == 'config/config.yaml or the command line: the file = ["paper"]: must be a mapping with papers\n'
