"""An archive or a folder that somebody sent can say what it likes: verifying it touches nothing but a folder of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pytest

from dpvision.errors import UserError
from dpvision.source import ROOT
from dpvision.verify import unpack as unpacking
from dpvision.verify.unpack import unpack
from dpvision.verify.verdict import verify


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def edit(file: Path, change) -> None:
    value = json.loads(file.read_text())
    change(value)
    file.write_text(json.dumps(value))


def zipped(path: Path, members: dict, method: int = ZIP_STORED) -> Path:
    with ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


# --- names in plan.json ---


def test_artifact_outside_of_the_folder_is_refused(made, unpacked, tmp_path):
    """The kind `claims` lies in no subfolder, so its name alone decided where verifying wrote."""
    mine = tmp_path / "mine"
    mine.mkdir()
    for suffix in ("csv", "md"):
        (mine / f"README.{suffix}").write_text("three years of notes")
    claims = next(name for name, spec in made.plan.artifacts.items() if spec["kind"] == "claims")

    def forge(plan):
        name = f"../../../../../../../..{mine}/README"
        plan["artifacts"][name], plan["labels"][name] = plan["artifacts"][claims], plan["labels"][claims]

    edit(unpacked / "plan.json", forge)
    with pytest.raises(UserError, match=r"README'.*name has small letters"):
        verify(unpacked)
    assert files_in(mine) == {"README.csv": b"three years of notes", "README.md": b"three years of notes"}


NAMES = ["../up", "/etc/passwd", "..", ".hidden", "a\\..\\b", "c:x", "a\nb", "A", "", "x" * 300]
PARTS = ["artifacts", "labels", "papers", "sources", "work"]


@pytest.mark.parametrize(
    ("part", "name"), [*(("work", name) for name in NAMES), *((part, "../up") for part in PARTS if part != "work")]
)
def test_name_that_is_a_path_is_refused(part, name, unpacked):
    def forge(plan):
        names = plan["work"]["train"] if part == "work" else plan[part]
        names[name] = next(iter(names.values()))

    edit(unpacked / "plan.json", forge)
    with pytest.raises(UserError, match="name has small letters"):
        verify(unpacked)


@pytest.mark.parametrize("results", ["../..", "/tmp", "results/../..", "results\\demo", 3, ""])
def test_results_elsewhere_are_refused(results, unpacked):
    edit(unpacked / "plan.json", lambda plan: plan.update(results=results))
    with pytest.raises(UserError, match="the results lie in"):
        verify(unpacked)


def test_cell_with_the_name_of_a_path_is_refused(unpacked, made, tmp_path):
    def forge(spec):
        spec["cells"][0]["work"]["train"] = {"1": "../../../etc"}

    edit(unpacked / "plan.json", lambda plan: forge(plan["artifacts"]["table1"]))
    with pytest.raises(UserError, match=r"artifacts.table1, work.train names '../../../etc'"):
        verify(unpacked)
    results = Path(shutil.copytree(made.root / made.plan.results, tmp_path / "sent"))
    edit(results / "plan/table1.json", forge)
    with pytest.raises(UserError, match=r"plan/table1.json, work.train names '../../../etc'"):
        verify(results)


def test_spec_that_names_a_path_reads_nothing_there(unpacked, made):
    """Data, searches and what an artifact reads are named inside of specs: found where they are looked at."""
    run = next(name for name, spec in made.plan.runs.items() if spec["budget"])

    def forge(plan):
        plan["artifacts"]["table1"]["reads"]["runs"] = ["train/../../../../secret.json"]
        plan["work"]["hessian"] = {name: spec | {"run": "../" + run} for name, spec in plan["work"]["hessian"].items()}

    edit(unpacked / "plan.json", forge)
    edit(unpacked / f"{made.plan.results}/runs/{run}/spec.json", lambda spec: spec["data"].update(prepared="../../secret"))
    problems = [f"{problem['where']}: {problem['found']}" for problem in verify(unpacked).problems]
    assert any(text.startswith("table1: ") and "reads 'train/../../../../secret.json'" in text for text in problems)
    assert any(f"runs/{run}: " in text and "'../../secret" in text for text in problems)


def test_source_file_outside_of_the_archive_is_not_read(unpacked):
    edit(unpacked / "source/source.json", lambda note: note["files"].update({"../../../../dev/zero": "0" * 64}))
    assert any("dev/zero" in problem["found"] for problem in verify(unpacked).problems)


@pytest.mark.parametrize("part", ["artifacts", "work", "labels", "papers"])
def test_plan_of_other_types_is_refused(part, unpacked):
    edit(unpacked / "plan.json", lambda plan: plan.update({part: [3]}))
    with pytest.raises(UserError, match=r"plan is not what the pipeline writes|names 3|work"):
        verify(unpacked)


def test_json_in_ten_thousand_brackets_is_named(unpacked, made):
    deep = "[" * 100_000 + "]" * 100_000
    ledger = unpacked / f"{made.plan.results}/runs/{next(iter(made.plan.runs))}/ledger.json"
    ledger.write_text(deep)
    assert any("ledger.json is not the JSON" in problem["found"] for problem in verify(unpacked).problems)
    (unpacked / "plan.json").write_text(deep)
    with pytest.raises(UserError, match="plan.json is not the JSON"):
        verify(unpacked)


def test_pipe_in_a_folder_is_refused_and_not_waited_for(made, tmp_path):
    results = Path(shutil.copytree(made.root / made.plan.results, tmp_path / "sent"))
    ledger = results / f"runs/{next(iter(made.plan.runs))}/ledger.json"
    ledger.unlink()
    os.mkfifo(ledger)
    with pytest.raises(UserError, match="ledger.json is neither a file nor a folder"):
        verify(results)
    ledger.unlink()
    ledger.symlink_to("/dev/zero")
    with pytest.raises(UserError, match="ledger.json is neither a file nor a folder"):
        verify(results)


def test_verdict_steers_no_terminal_and_forges_no_line(unpacked):
    forged = "x\x1b[2J\neverything that was checked holds"
    edit(unpacked / "archive.json", lambda about: about.update(changed=[forged]))
    said = str(verify(unpacked))
    assert "\x1b" not in said
    assert "everything that was checked holds" not in said.splitlines()


# --- the zip file ---


@pytest.mark.parametrize("name", ["../up", "/abs", "a/../../up", "a\\..\\..\\up", "C:up", "a//b", "./a", "a\x1b[2J"])
def test_zip_with_a_file_outside_is_not_unpacked(name, tmp_path):
    sent, folder = zipped(tmp_path / "sent.zip", {"first": "1", name: "2"}), tmp_path / "own/folder"
    folder.mkdir(parents=True)
    with pytest.raises(UserError, match="may lie outside of its folder"):
        unpack(sent, folder)
    assert set(files_in(tmp_path)) == {"sent.zip"}


@pytest.mark.parametrize("names", [("plan.json", "PLAN.json"), ("caf\u00e9", "cafe\u0301")])
def test_zip_with_two_files_of_one_name_is_not_unpacked(names, tmp_path):
    with pytest.raises(UserError, match="two files named"):
        unpack(zipped(tmp_path / "sent.zip", dict.fromkeys(names, "1")), tmp_path)


def test_zip_with_a_link_is_not_unpacked(tmp_path):
    link = ZipInfo("results")
    link.external_attr = 0o120777 << 16
    with pytest.raises(UserError, match="a link or a device named 'results'"):
        unpack(zipped(tmp_path / "sent.zip", {link: "/etc"}), tmp_path)


def test_zip_larger_inside_than_outside_is_not_unpacked(tmp_path):
    sent, folder = zipped(tmp_path / "sent.zip", {"big": bytes(10_000_000)}, ZIP_DEFLATED), tmp_path / "own"
    folder.mkdir()
    with pytest.raises(UserError, match=r"bytes and would be unpacked to 10000000.*unpack it yourself"):
        unpack(sent, folder)
    assert not any(folder.iterdir())


def test_zip_that_understates_its_files_writes_no_more_than_its_size(tmp_path):
    sent, folder = zipped(tmp_path / "sent.zip", {"big": bytes(10_000_000)}, ZIP_DEFLATED), tmp_path / "own"
    folder.mkdir()
    size = (10_000_000).to_bytes(4, "little")
    sent.write_bytes(sent.read_bytes().replace(size, (1000).to_bytes(4, "little")))
    assert [name for name, _ in unpack(sent, folder)] == ["big"]
    assert sum(len(content) for content in files_in(folder).values()) <= sent.stat().st_size


def test_zip_of_more_files_or_bytes_than_there_is_room_for_is_not_unpacked(tmp_path, monkeypatch):
    sent = zipped(tmp_path / "sent.zip", {"a": "1", "b": "2"})
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(unpacking.shutil, "disk_usage", lambda folder: usage._replace(free=1))
    with pytest.raises(UserError, match="GB free: nothing was unpacked.*TMPDIR"):
        unpack(sent, tmp_path)
    monkeypatch.setattr(unpacking, "MOST_FILES", 1)
    with pytest.raises(UserError, match="has 2 files, and at most 1 are unpacked"):
        unpack(sent, tmp_path)


def test_reproduce_unpacks_within_the_same_limits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sent = zipped(tmp_path / "sent.zip", {"archive.json": "{}", "big": bytes(10_000_000)}, ZIP_DEFLATED)
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'envs')!r}); import reproduce; reproduce.unpack_archive({str(sent)!r})"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode
    assert "would be unpacked to 10000002" in done.stderr
    assert set(files_in(tmp_path)) == {"sent.zip"}
