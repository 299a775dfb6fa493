"""An archive is one file, the same whenever it is made, and names nobody, no machine and no place on it."""

import json
import os
import platform
import shutil
import tempfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from made import git
from rocrate.rocrate import ROCrate

from dpvision.archive import names
from dpvision.archive.contents import MANIFEST
from dpvision.archive.pack import write_archive
from dpvision.errors import UserError
from dpvision.files import file_digest, write_text
from dpvision.plan.plan import folder_of
from dpvision.plan.stages import STAGES
from dpvision.reporting.kinds import KINDS
from dpvision.source import NAME, ROOT, VERSION, source
from dpvision.verify.artifacts import AGAIN

pytestmark = pytest.mark.slow  # tests/verify has archives quickly


@pytest.fixture
def project(made, tmp_path):
    """Return a copy of the checkout, to be changed."""
    return Path(shutil.copytree(made.project, tmp_path / "project"))


def packed(made, project, folder):
    write_archive(made.plan, folder / "one.zip", made.root, project)
    return ZipFile(folder / "one.zip")


def test_made_twice_from_the_same_results_it_is_the_same_file(made, archive, tmp_path):
    elsewhere = Path(shutil.copytree(made.root, tmp_path / "else where"))
    for file in elsewhere.rglob("*"):
        os.utime(file, (1e9, 1e9))
    write_archive(made.plan, tmp_path / "again.zip", elsewhere, elsewhere / "project")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_it_has_every_artifact_and_every_record_and_no_data(made, unpacked):
    there = {file.relative_to(unpacked).as_posix() for file in unpacked.rglob("*") if file.is_file()}
    assert {*made.plan.targets("all"), *made.plan.kept_files()} <= there
    made_with_all = {key for key in made.plan.work if key[0] != "audit"}
    assert {file for key in made_with_all for file in made.plan.record(key)} <= there
    assert set(made.plan.kept()) == made_with_all
    assert {stage for stage, _ in made_with_all} == set(STAGES) - {"audit", "weights", "features", "by_class", "attack"}
    assert {f"{made.plan.results}/logs/train/{run}.log" for run in made.plan.runs} <= there
    for name, study in made.plan.of("search").items():
        histories = {f"trials/{number}/history.csv" for number in range(study["trials"])}
        assert {f"{made.plan.folder(('search', name))}/{file}" for file in histories | {"journal.log"}} <= there
    assert {"source/Snakefile", "source/envs/requirements.lock", "source/CITATION.cff", "config.json"} <= there
    assert not [file for file in there if file.endswith((".npy", ".csv.gz", ".bin"))]
    assert json.loads((unpacked / "config.json").read_text()) == {"scale": "tiny", "papers": ["scalenorm"]}


def test_the_manifest_has_the_digest_of_every_other_file(unpacked):
    lines = dict(reversed(line.split("  ")) for line in (unpacked / MANIFEST).read_text().splitlines())
    files = {file.relative_to(unpacked).as_posix(): file for file in unpacked.rglob("*") if file.is_file()}
    del files[MANIFEST]
    assert lines == {name: file_digest(file) for name, file in files.items()}


def test_it_names_no_user_no_machine_and_no_place_on_it(made, tmp_path, monkeypatch):
    home = tmp_path / "home/alicia"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", "alicia")
    monkeypatch.setattr(names.getpass, "getuser", lambda: "alicia")
    monkeypatch.setattr(platform, "node", lambda: "gpu017.cluster.example")
    said = (
        f"12:00:00  {home}/data and {ROOT}/results/demo/runs\n"
        f"{tempfile.gettempdir()}/x and /scratch/project/q\n"
        "/opt/conda/lib/python3.11/warnings.py:3: UserWarning: alicia on gpu017\n"
        "this run is being trained already, by process 12 on node04.other, SLURM job 77 since 2026-01-01: waits\n"
        "step 3/4, 5 GB/s, https://example.org/a/b  epoch 1/30\n"
    )
    name = next(iter(made.plan.runs))
    log = made.root / f"{made.plan.results}/logs/train/{name}.log"
    before = log.read_text()
    log.write_text(said)
    try:
        inside = packed(made, made.project, tmp_path)
    finally:
        log.write_text(before)
    places = [ROOT, tmp_path, made.root, f"{tempfile.gettempdir()}/x", "/opt/conda", "/scratch/project"]
    unwanted = ["alicia", "gpu017", "node04", "SLURM job 77", *map(str, places)]
    for file in inside.namelist():
        content = inside.read(file).decode("latin-1")
        for word in unwanted:
            assert word not in content, file
    cleaned = inside.read(f"{made.plan.results}/logs/train/{name}.log").decode()
    assert cleaned.splitlines()[0] == "12:00:00  ~/data and ./results/demo/runs"
    assert "…/warnings.py:3: UserWarning: USER on HOST" in cleaned
    assert "process 12 on HOST since" in cleaned
    assert cleaned.endswith("step 3/4, 5 GB/s, https://example.org/a/b  epoch 1/30\n")


def test_a_file_that_is_not_a_log_is_refused_with_the_place_that_it_names(made, project, tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    write_text(project / "config/config.yaml", f"scale: paper\nfolders: {{cifar10: {home / 'cifar'}}}\n")
    with pytest.raises(UserError, match="config/config.yaml, line 2, names .*/home: an archive is for others"):
        packed(made, project, tmp_path)


def test_a_tree_that_is_not_as_committed_is_said_aloud(made, project, tmp_path):
    write_text(project / "Snakefile", "# changed\n")
    write_text(project / "config/scales/new.yaml", "title: new\n")
    (project / "envs/data.yaml").unlink()
    inside = packed(made, project, tmp_path)
    changed = ["Snakefile", "config/scales/new.yaml", "envs/data.yaml"]
    assert json.loads(inside.read("archive.json"))["changed"] == changed
    assert f"THE SOURCE IS NOT AS COMMITTED: {', '.join(changed)}" in inside.read("ro-crate-metadata.json").decode()
    assert inside.read("source/Snakefile") == b"# changed\n"
    assert "source/config/scales/new.yaml" in inside.namelist()
    assert "source/envs/data.yaml" not in inside.namelist()


def test_another_commit_makes_another_archive(made, archive, project, tmp_path):
    git(project, "commit", "--quiet", "--allow-empty", "--message", "second")
    assert source(project).identity(project) != source(made.project).identity(made.project)
    packed(made, project, tmp_path)
    assert (tmp_path / "one.zip").read_bytes() != archive.read_bytes()


def test_a_project_without_git_cannot_be_packed(made, project, tmp_path):
    shutil.rmtree(project / ".git")
    with pytest.raises(UserError, match="neither a git checkout nor an archive's source"):
        packed(made, project, tmp_path)


def test_a_project_inside_of_another_checkout_is_not_taken_for_it(made, tmp_path):
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "another project")
    project = Path(shutil.copytree(made.project, tmp_path / "project", ignore=shutil.ignore_patterns(".git")))
    assert source(project) is None


def test_unpacked_source_knows_its_commit_and_its_changes_and_makes_the_same_archive(made, archive, unpacked, tmp_path):
    project = unpacked / "source"
    assert source(project) == source(made.project)
    write_archive(made.plan, tmp_path / "again.zip", made.root, project)
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    write_text(project / "Snakefile", "# changed\n")
    (project / "CITATION.cff").unlink()
    assert source(project).changed == ["CITATION.cff", "Snakefile"]


def test_it_is_a_crate_that_says_what_is_what(made, unpacked):
    crate = ROCrate(unpacked)
    assert crate.mainEntity.id == "source/Snakefile"
    assert {profile["name"] for profile in crate.root_dataset["conformsTo"]} >= {"Workflow Run Crate", "Workflow RO-Crate"}
    (run,) = crate.root_dataset["mentions"]
    assert run["instrument"] == crate.mainEntity
    assert {entity.id for entity in run["result"]} == set(made.plan.targets("all"))
    (data,) = run["object"]
    assert data["license"] == "CC BY 4.0 (UCI machine learning repository)"
    assert "Not in here. To be had from: sklearn.datasets.data" in data["description"]
    assert run["startTime"] < run["endTime"]
    for entity in crate.data_entities:
        assert (unpacked / entity.id).exists(), entity.id
    assert crate.root_dataset["license"] == "see source/LICENSE"


def test_a_record_that_is_not_there_is_named(made, tmp_path):
    root = Path(shutil.copytree(made.root, tmp_path / "root"))
    gone = root / made.plan.product(("train", next(iter(made.plan.runs))))
    gone.unlink()
    with pytest.raises(UserError, match=f"{gone.parent.name}/spec.json is not there"):
        write_archive(made.plan, tmp_path / "one.zip", root, made.project)
    assert not (tmp_path / "one.zip").exists()


def test_the_version_is_the_same_wherever_it_stands():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (cited["title"], cited["version"]) == (project["name"], project["version"]) == (NAME, VERSION)


def test_the_licence_is_the_same_wherever_it_stands():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cited["license"] == project["license"] == "Apache-2.0"
    assert "Apache License\n                           Version 2.0" in (ROOT / "LICENSE").read_text()


def test_whatever_kind_an_artifact_is_of_verify_can_make_it_anew():
    assert {folder_of({"kind": kind}) for kind in KINDS} == set(AGAIN)  # the claims lie above the others
