"""What a covered search and runs with secret noise recorded without noise leaves in no archive and no kept folder."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from made import Made

from dpvision.plan.withheld import is_withheld
from dpvision.reporting.keep import keep
from dpvision.verify.verdict import verify

pytestmark = pytest.mark.slow

OVERLAY = """
seeds: [34]
models: {resnet9: {width: 0.0625}, scaleresnet9: {width: 0.0625}}
recipes:
  resnet9: {batch: 256, epochs: 1}
  released: {optimizer: {name: sgd, learning_rate: 0.1}, schedule: {name: constant}, batch: 256, epochs: 1, clip: 1.0,
    noise: secret}
searches:
  groups: {space: {model.groups: [1, 4]}, trials: 2, prune_below: 0.0}
  hidden: {space: {model.groups: [1, 4], recipe.clip: [0.5, 1.0, 2.0]}, trials: 2, sampler: covered, prune_below: 0.0}
cells:
  cifar10: {dataset: digits, epsilons: [7.42], delta: 1.0e-4}
  secret: {dataset: digits, models: [resnet9], recipe: released, epsilons: [7.42], delta: 1.0e-4, search: hidden}
artifacts:
  table1: {cells: [cifar10], rows: [model], columns: [epsilon]}
  table4: {cells: [cifar10, secret], rows: [model], columns: [epsilon]}
  trials: {kind: search, title: Trials of a search that stays secret, cells: [secret]}
hessian: {examples: 32, iterations: 3, lanczos_steps: 4}
activations: {examples: 32, bins: 10}
"""


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    return Made(tmp_path_factory.mktemp("released"), OVERLAY)


@pytest.fixture(scope="module")
def keys(released):
    """Return the training with secret noise and its covered search."""
    work = released.plan.work
    run = next(key for key in released.plan.kept() if key[0] == "train" and work[key]["recipe"].get("noise") == "secret")
    study = next(key for key in released.plan.kept() if key[0] == "search" and work[key].get("sampler") == "covered")
    return run, study


def test_archive_leaves_out_what_must_not_leave_and_verify_says_so(released, keys, tmp_path):
    path = released.archive(tmp_path / "one.zip")
    run, study = (released.plan.folder(key) for key in keys)
    with ZipFile(path) as archive:
        names, readme = archive.namelist(), archive.read("README.md").decode()
    assert {Path(name).name for name in names if name.startswith(f"{run}/")} == {
        *("spec.json", "ledger.json", "weights.safetensors")
    }
    assert not [name for name in names if Path(study).name in name]
    assert not [name for name in names if Path(run).name in name and "/logs/" in name]
    assert not [name for name in names if "/table4." in name and "/plan/" not in name]
    assert any(name.endswith("/tables/table1.csv") for name in names)
    assert "| left out, see below | – |" in readme and "which must not leave" in readme
    verdict = verify(path)
    assert verdict.problems == []
    (remark,) = [text for text in verdict.remarks if "left out on purpose" in text]
    assert "1 search" in remark and "1 training" in remark and "table4" in remark


def test_ledger_is_verified_where_its_search_was_left_out(released, keys, tmp_path):
    with ZipFile(released.archive(tmp_path / "one.zip")) as archive:
        archive.extractall(tmp_path / "one")
    ledger = tmp_path / "one" / released.plan.folder(keys[0]) / "ledger.json"
    said = json.loads(ledger.read_text())
    said["searches"][0]["epsilon_covered"] *= 0.9
    ledger.write_text(json.dumps(said))
    problems = [problem["what"] for problem in verify(tmp_path / "one").problems]
    assert any("searches[0].epsilon_covered, recomputed" in text for text in problems)


def test_record_that_may_leave_is_missed(released, tmp_path):
    with ZipFile(released.archive(tmp_path / "one.zip")) as archive:
        archive.extractall(tmp_path / "one")
    key = next(key for key in released.plan.kept() if key[0] == "train" and not is_withheld(released.plan, key))
    (tmp_path / "one" / released.plan.folder(key) / "history.csv").unlink()
    assert any("history.csv" in problem["where"] for problem in verify(tmp_path / "one").problems)


def test_keep_leaves_out_what_must_not_leave(released, keys, tmp_path, caplog):
    kept = tmp_path / "kept"
    assert "table1" in keep(released.plan, released.root, kept)
    assert "left out: " in caplog.text and "must not leave" in caplog.text
    assert not [file for file in kept.rglob("*") if keys[0][1] in str(file) or keys[1][1] in str(file)]
    assert verify(kept).problems == []
