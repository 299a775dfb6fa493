"""python -m dpvision: what it says, where it looks, and that it never shows a traceback for a slip."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpvision import __main__ as command_line
from dpvision import plan
from dpvision.files import write_json, write_text
from dpvision.plan.overview import overview
from dpvision.plan.status import status


@pytest.fixture
def dpvision(monkeypatch, capsys):
    """Runs a command in this process and returns what it printed."""

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
    assert lines[-1] == "18 trainings (0 made), 2 searches (0 made), 6 Hessians (0 made)"


def test_the_plan_of_an_artifact_counts_what_it_takes(configuration):
    planned = configuration.plan()
    assert overview(planned, ["table1"], configuration.root).splitlines()[-1] == "18 trainings (0 made), 2 searches (0 made)"
    assert overview(planned, ["figure3"], configuration.root).splitlines()[-1] == "6 trainings (0 made), 2 searches (0 made)"
    assert overview(planned, ["groups"], configuration.root).splitlines()[-1] == "2 searches (0 made)"
    claims = overview(planned, ["claims"], configuration.root).splitlines()[-1]
    assert claims == "18 trainings (0 made), 2 searches (0 made), 6 Hessians (0 made)"


def test_the_plan_knows_what_is_there(configuration):
    planned, root = configuration.plan(scale="demo"), configuration.root
    first, second, *_ = planned.runs_of("table1")
    make(root, planned.record(first))
    make(root, planned.record(second)[:-1])  # without its provenance it is no record
    make(root, [*planned.targets("table4"), *planned.targets("claims")])
    text = overview(planned, ["table1", "table4", "claims"], root)
    assert text.splitlines()[3].split() == ["table1", "accuracy", "6", "18", "1", "not", "made"]
    assert text.splitlines()[4].split()[-1] == "made"
    assert "18 trainings (1 made)" in text
    assert text.splitlines()[-4:] == [
        "made:",
        "  results/demo/tables/table4.csv .md .tex",
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
    assert said.startswith('there is no target "tabel4". Did you mean "table4"? Allowed: all, scalenorm, table1, ')


def test_an_unknown_scale_is_answered_with_those_that_there_are(dpvision):
    for command in ("plan", "status", "claims"):
        assert 'scale = "deom": there is no scale "deom". Did you mean "demo"?' in refused(dpvision, command, "--scale", "deom")


def test_the_scale_can_be_said(dpvision):
    assert "scale demo:" in dpvision("plan", "--scale", "demo")
    assert "scale paper:" in dpvision("plan", "--scale", "paper", "table1")


# --- status ---


def test_status_names_what_other_code_made_and_what_is_unfinished(configuration):
    planned, root = configuration.plan(scale="demo"), configuration.root
    ours, theirs, mixed, gone, unfinished, *_ = planned.runs
    code = plan.build.code_digest("dpvision.training.run")
    for run in (ours, theirs, mixed, gone):
        make(root, planned.record(run))
    folder = root / planned.results / "runs"
    write_json(folder / ours / "provenance.json", {"stage": "dpvision.training.run", "code": code})
    write_json(folder / theirs / "provenance.json", {"stage": "dpvision.training.run", "code": "0123456789ab"})
    sessions = {"sessions": [{"code": "ba9876543210"}]}
    write_json(folder / mixed / "provenance.json", {"stage": "dpvision.training.run", "code": code} | sessions)
    write_json(folder / gone / "provenance.json", {"stage": "dpvision.training.gone", "code": "0123456789ab"})
    make(root, [f"{planned.results}/checkpoints/{unfinished}/state.pt"])
    text = status(planned, root)
    assert text.splitlines()[0] == "scale demo: 4 of 18 trainings are there"
    assert f"  results/demo/checkpoints/{unfinished}" in text.splitlines()
    assert f"  results/demo/runs/{theirs}  (code 0123456789ab, now {code})" in text.splitlines()
    assert f"runs/{mixed}" in text
    assert f"runs/{gone}" in text
    assert f"runs/{ours}" not in text


def test_status_says_when_all_is_of_this_code(configuration):
    planned, root = configuration.plan(), configuration.root
    name = next(iter(planned.runs))
    write_json(
        root / planned.results / "runs" / name / "provenance.json",
        {"stage": "dpvision.errors", "code": plan.build.code_digest("dpvision.errors")},
    )
    assert status(planned, root).endswith("all results were made by the code that is here")


# --- claims ---


def accuracies(planned: plan.Plan, root: Path, runs: list[str]) -> None:
    for i, run in enumerate(runs):
        record = {"last_step": {"test": {"top1": 0.7 + i / 100}}}
        write_json(root / planned.results / "runs" / run / "metrics.json", record)


def test_the_page_of_claims_is_made_of_the_records_that_there_are(dpvision, configuration, monkeypatch):
    monkeypatch.chdir(configuration.root)
    planned = configuration.plan(scale="demo")
    accuracies(planned, configuration.root, planned.runs_of("table4"))
    lines = dpvision("claims", "--scale", "demo").splitlines()
    assert [line.split()[-3:] for line in lines if "better_on_all_tasks" in line] == [["11", "not", "run"]]
    assert lines[-6:] == planned.targets("claims")
    assert "| 3 of 3 |" not in Path("results/demo/claims.md").read_text()


def test_a_page_that_lacks_records_is_older_than_any_record(dpvision, configuration, monkeypatch):
    """So that Snakemake makes it anew, also of records that come from elsewhere with their dates."""
    monkeypatch.chdir(configuration.root)
    planned = configuration.plan(scale="demo")
    accuracies(planned, configuration.root, planned.runs_of("table4"))
    dpvision("claims", "--scale", "demo")
    assert {Path(file).stat().st_mtime for file in planned.targets("claims")} == {1}


def test_without_claims_there_is_no_page_and_it_is_said(project):
    (project.root / "config/claims/scalenorm.yaml").unlink()
    done = project.run("dpvision", "claims")
    assert (done.returncode, done.stderr) == (1, "there are no claims: config/claims has no file of scalenorm\n")


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


def test_writing_the_schemas_again_changes_no_byte(project):
    folder = project.root / "config/schema"
    shutil.rmtree(folder)
    said = project.run("dpvision", "schema").stdout.splitlines()
    first = {f"config/schema/{file.name}": file.read_bytes() for file in folder.iterdir()}
    assert said == sorted(first) == project.run("dpvision", "schema").stdout.splitlines()
    assert {f"config/schema/{file.name}": file.read_bytes() for file in folder.iterdir()} == first


# --- where it is run, and what reads it ---


def test_a_reader_that_has_seen_enough_is_no_error(project):
    for words in (["plan"], ["status"]):
        reads, writes = os.pipe()
        os.close(reads)
        done = project.run("dpvision", *words, capture_output=False, stdout=writes, stderr=subprocess.PIPE)
        os.close(writes)
        assert (done.returncode, done.stderr) == (0, "")


def test_from_another_folder_it_looks_at_the_project_and_says_so(project, tmp_path):
    make(project.root, project.plan().targets("table1"))
    here, elsewhere = (project.run("dpvision", "plan", "table1", cwd=folder) for folder in (project.root, tmp_path))
    assert here.stdout.endswith("made:\n  results/tables/table1.csv .md .tex\n")
    assert elsewhere.stdout == f"in {project.root}:\n{here.stdout}"


def test_a_slip_in_the_configuration_is_one_line_and_no_traceback(project):
    project.change("papers/scalenorm.yaml", "    clip: 1.5", "    clip: 0")
    done = project.run("dpvision", "plan")
    assert done.returncode == 1
    assert done.stderr == "config/papers/scalenorm.yaml: recipes.resnet9.clip = 0: must be a number above 0\n"


def test_a_setting_that_is_no_mapping_is_refused(project):
    (project.root / "config/config.yaml").write_text("[paper]\n")
    done = project.run("dpvision", "plan", "--scale", "demo")
    assert done.stderr == 'config/config.yaml or the command line: the file = ["paper"]: must be a mapping with papers\n'
