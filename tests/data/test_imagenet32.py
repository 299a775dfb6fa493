"""ImageNet-32 is read from a user's pickles or .npz, one file at a time, and nothing in them is run."""

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpvision.data.datasets import imagenet32
from dpvision.data.download import fetch
from dpvision.data.prepare import prepare
from dpvision.data.prepared import load
from dpvision.errors import UserError
from dpvision.files import read_json

NAMES = [name for names in imagenet32.FILES.values() for name in names]
EACH = 100  # images a file
COUNTS = {"train": 10 * EACH, "test": EACH}


def batches() -> dict[str, dict[str, Any]]:
    """Return made-up batches; the labels of the ten training files are all of 1 to 1,000."""
    random = np.random.default_rng(0)
    found = {}
    for place, name in enumerate(NAMES):
        labels = [EACH * (place % 10) + i + 1 for i in range(EACH)]
        found[name] = {"data": random.integers(0, 256, (EACH, 3072), np.uint8), "labels": labels, "mean": np.zeros(3072)}
    return found


def pickled(folder: Path, name: str, batch: dict[str, Any]) -> None:
    (folder / name).write_bytes(pickle.dumps(batch, 3).replace(b"numpy._core", b"numpy.core"))


def zipped(folder: Path, name: str, batch: dict[str, Any]) -> None:
    np.savez(folder / f"{name}.npz", **batch)


def brought(folder: Path, write: Callable[[Path, str, dict[str, Any]], None], **changed: dict[str, Any]) -> Path:
    for name, batch in (batches() | changed).items():
        below = folder / ("Imagenet32_val" if name == "val_data" else "Imagenet32_train")
        below.mkdir(parents=True, exist_ok=True)
        write(below, name, batch)
    return folder


def entry(folder: Path | None = None) -> dict[str, Any]:
    """Return the entry of the made-up data: pickles in a folder are those that are published."""
    found = (
        {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in folder.rglob("*_*") if path.is_file()}
        if folder
        else {}
    )
    files = {name: found.get(name, "0" * 32) for name in NAMES}
    return {"title": "Made up", "licence": "none", "sources": [], "files": files}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(imagenet32, "EXAMPLES", COUNTS)


def prepared(folder: Path, about: dict[str, Any], place: Path) -> Any:
    spec = {"kind": "data", "name": "imagenet32", "classes": 1000, "shape": [3, 32, 32], **COUNTS, "files": about["files"]}
    fetch("imagenet32", about, folder, place / "raw")
    prepare(spec, place / "raw", place / "prepared")
    return load(place / "prepared", spec)


def check(data: Any) -> None:
    made = batches()
    expected = np.concatenate([made[name]["data"] for name in imagenet32.FILES["train"]]).reshape(-1, 3, 32, 32)
    assert np.array_equal(data.train_images, expected)
    assert np.array_equal(data.test_images, made["val_data"]["data"].reshape(-1, 3, 32, 32))
    assert data.train_labels.tolist() == list(range(1000))
    assert isinstance(data.train_images, np.memmap)


def test_published_pickles_are_proved_by_their_md5(tmp_path):
    folder = brought(tmp_path / "mine", pickled)
    check(prepared(folder, entry(folder), tmp_path))
    assert "not proved" not in read_json(tmp_path / "raw/files.json")["source"]


@pytest.mark.parametrize("write", [pickled, zipped])
def test_others_are_checked_and_packed_into_the_same_bytes(tmp_path, write):
    check(prepared(brought(tmp_path / "mine", write), entry(), tmp_path))
    about = read_json(tmp_path / "raw/files.json")
    assert "not proved by a publisher's digest" in about["source"]
    other = pickled if write is zipped else zipped
    prepared(brought(tmp_path / "again/mine", other), entry(), tmp_path / "again")
    assert read_json(tmp_path / "again/raw/files.json")["files"] == about["files"]


def test_a_pickle_that_would_run_code_does_not(tmp_path):
    class Harm:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "harm"),)

    folder = brought(tmp_path / "mine", pickled)
    (folder / "Imagenet32_train/train_data_batch_3").write_bytes(pickle.dumps(Harm()))
    with pytest.raises(UserError, match=r"train_data_batch_3: it names \w+\.mkdir"):
        fetch("imagenet32", entry(), folder, tmp_path / "raw")
    assert not (tmp_path / "harm").exists()


GOOD = {"data": np.zeros((EACH, 3072), np.uint8), "labels": [1] * EACH}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"labels": [0] * EACH}, "val_data.*: labels must be from 1 to 1000, found 0 to 0"),
        ({"labels": [1]}, r"val_data.*: expected are rows of 3072 bytes.*found uint8 \[100, 3072\] and \[1\]"),
        ({"data": np.zeros((EACH, 3072))}, "found float64"),
        ({"data": GOOD["data"][:50], "labels": [1] * 50}, "expected are .* images, found are .*50"),
    ],
)
@pytest.mark.parametrize("write", [pickled, zipped])
def test_what_is_wrong_with_a_file_is_said(tmp_path, changed, says, write):
    folder = brought(tmp_path / "mine", write, val_data=GOOD | changed)
    with pytest.raises(UserError, match=says):
        fetch("imagenet32", entry(), folder, tmp_path / "raw")


def test_files_that_are_missing_are_named(tmp_path):
    folder = brought(tmp_path / "mine", zipped)
    (folder / "Imagenet32_val/val_data.npz").unlink()
    with pytest.raises(UserError, match="val_data not found, neither without a suffix nor as .npz"):
        fetch("imagenet32", entry(), folder, tmp_path / "raw")
