"""Installation has one clear line for what can go wrong, and a lock that everything agrees with."""

import importlib.util
import re
import subprocess
import tomllib
from collections import namedtuple
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "envs/requirements.lock").read_text()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Import envs/install.py and give it a folder of its own."""
    found = importlib.util.spec_from_file_location("install", ROOT / "envs/install.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setattr(module, "VENV", str(tmp_path / ".venv"))
    monkeypatch.setattr(module, "STAMP", str(tmp_path / ".venv/installed"))
    monkeypatch.setattr(module, "PYTHON", str(tmp_path / "python"))
    return module


def last_line(error: pytest.ExceptionInfo) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_python_that_is_too_old_is_told_in_one_line(install, monkeypatch):
    monkeypatch.setattr(install.sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit) as error:
        install.main()
    assert re.search(r"setup: Python 3\.11 or newer is needed.*make demo PYTHON=", last_line(error))


def test_a_full_disk_is_told_before_anything_is_made(install, monkeypatch, tmp_path):
    usage = namedtuple("usage", "free")(1e9)
    monkeypatch.setattr(install.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(SystemExit) as error:
        install.main()
    assert "1.0 GB are free" in last_line(error)
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "the disk is full"),
        ("WARNING: Retrying after connection broken by NewConnectionError", "the package registry did not give"),
        ("ERROR: No matching distribution found for torch==2.13.0", "the package registry did not give"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "not the one in envs/requirements.lock"),
        ("ERROR: something else", "pip failed"),
    ],
)
def test_what_pip_could_not_do_is_told_in_one_line(install, tmp_path, said, told):
    (tmp_path / "python").write_text(f'#!/bin/sh\necho "{said}"\nexit 1\n')
    (tmp_path / "python").chmod(0o755)
    with pytest.raises(SystemExit) as error:
        install.pip("something")
    assert told in last_line(error)


def test_nothing_is_installed_when_all_is_as_the_lock_says(install, tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/installed").write_text(install.digest())
    install.main()
    assert [path.name for path in (tmp_path / ".venv").iterdir()] == ["installed"]


def test_another_lock_or_index_of_torch_builds_is_another_environment(install, monkeypatch, tmp_path):
    before = install.digest()
    monkeypatch.setenv("TORCH_INDEX", "somewhere")
    assert install.digest() != before
    monkeypatch.delenv("TORCH_INDEX")
    other = tmp_path / "lock"
    other.write_text("another")
    monkeypatch.setattr(install, "LOCK", str(other))
    assert install.digest() != before


def pins(text: str) -> set[str]:
    return set(re.findall(r"^\s*(?:- )?([a-z0-9][a-z0-9._-]*==[^\s;]+)", text, re.MULTILINE))


def test_every_locked_package_has_hashes_and_no_index_is_named():
    blocks = re.split(r"\n(?=[a-z0-9])", LOCK)
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in LOCK


def test_the_builds_of_torch_are_left_open(install):
    assert [pin.split("==")[0] for pin in install.torch_pins()] == ["torch", "torchvision"]
    assert not {pin for pin in pins(LOCK) if pin.startswith(("torch==", "torchvision==", "nvidia", "triton"))}


def test_every_direct_dependency_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {re.match(r"[a-zA-Z0-9-]+", d)[0].lower() for d in project["dependencies"]} - {"torch", "torchvision"}
    assert asked <= {pin.split("==")[0] for pin in pins(LOCK)}


def test_no_file_of_the_project_names_a_registry_or_a_path_of_this_machine():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout: there is no list of the project's files")
    words = (
        "py pi.org",
        "python hosted",
        "registry. npm",
        "deb ian.org",
        "/ro ot/",
        "/ho me/",
    )  # in halves, or they would be here
    private = re.compile("|".join(re.escape(word.replace(" ", "")) for word in words))
    named = [f for f in listed.stdout.split() if (ROOT / f).exists() and private.search((ROOT / f).read_text(errors="ignore"))]
    assert named == []
