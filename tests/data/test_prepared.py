"""Prepared arrays are what the raw files say, or an error that names the file."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpvision.data import download
from dpvision.data.prepare import prepare
from dpvision.data.prepared import content_digest, load, split
from dpvision.errors import UserError

SPEC: dict[str, Any] = {
    "kind": "data",
    "name": "digits",
    "files": {"digits.csv.gz": "9b335364a7bfd63947c7480a5bd51f2d"},
    "shape": [1, 8, 8],
    "classes": 10,
    "train": 1437,
    "test": 360,
}
SOURCE = {"kind": "python", "package": "sklearn.datasets.data", "path": "digits.csv.gz"}
NAMES = ["train_images.npy", "train_labels.npy", "test_images.npy", "test_labels.npy"]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    dataset = {"title": "Digits", "licence": "CC BY 4.0", "sources": [SOURCE], "files": SPEC["files"]}
    download.fetch("digits", dataset, None, tmp_path / "raw")
    return tmp_path / "raw"


@pytest.fixture
def folder(raw: Path, tmp_path: Path) -> Path:
    prepare(SPEC, raw, tmp_path / "prepared")
    return tmp_path / "prepared"


# --- preparing ---


def test_digits_are_those_of_scikit_learn_each_in_one_split(folder):
    from sklearn.datasets import load_digits

    arrays, theirs = load(folder, SPEC), load_digits()
    ours = np.concatenate([arrays.train_images, arrays.test_images]).reshape(1797, 64)
    labels = np.concatenate([arrays.train_labels, arrays.test_labels])
    expected = np.column_stack([theirs.target, np.round(theirs.data * 255 / 16)])
    assert sorted(map(tuple, np.column_stack([labels, ours]))) == sorted(map(tuple, expected))
    assert arrays.train_images.shape == (1437, 1, 8, 8)
    assert arrays.test_images.shape == (360, 1, 8, 8)


def test_arrays_are_of_the_declared_kind_and_read_only(folder):
    arrays = load(folder, SPEC)
    for images in (arrays.train_images, arrays.test_images):
        assert (images.dtype, images.min(), images.max()) == (np.uint8, 0, 255)
        assert images.flags.c_contiguous
        assert not images.flags.writeable
    assert arrays.train_labels.dtype == arrays.test_labels.dtype == np.int64
    assert arrays.class_names == [str(digit) for digit in range(10)]


def test_digits_are_split_today_as_they_always_were(folder):
    arrays = load(folder, SPEC)
    assert hashlib.sha256(arrays.train_images.tobytes()).hexdigest()[:12] == "02868ce9ff65"
    assert hashlib.sha256(arrays.test_images.tobytes()).hexdigest()[:12] == "fd3a8966a8ca"
    assert arrays.test_labels[:12].tolist() == [5, 4, 6, 3, 8, 9, 5, 0, 2, 3, 6, 5]


def test_dataset_json_describes_the_arrays(folder):
    said = json.loads((folder / "dataset.json").read_text())
    arrays = load(folder, SPEC)
    assert (said["title"], said["licence"], said["shape"]) == ("Digits", "CC BY 4.0", [1, 8, 8])
    assert said["source"] == "digits.csv.gz of the Python package sklearn.datasets.data"
    assert said["images_per_class"]["test"] == np.bincount(arrays.test_labels).tolist()
    assert sum(said["images_per_class"]["train"]) == said["train"] == 1437


def test_the_digest_of_data_is_that_of_the_arrays_whatever_is_said_of_them(folder):
    description = json.loads((folder / "dataset.json").read_text())
    assert load(folder, SPEC).digest == content_digest(description | {"source": "another", "licence": "another"})
    assert content_digest({"sha256": description["sha256"] | {"test_labels.npy": "0" * 64}}) != content_digest(description)


def test_preparing_again_gives_the_same_files(raw, folder, tmp_path):
    prepare(SPEC, raw, tmp_path / "again")
    for name in [*NAMES, "dataset.json"]:
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_a_raw_file_that_changed_or_vanished_is_named(raw, tmp_path):
    (raw / "digits.csv.gz").write_bytes(b"other")
    with pytest.raises(UserError, match=r"digits.csv.gz was changed: expected MD5 9b33.*Delete .*files.json so that"):
        prepare(SPEC, raw, tmp_path / "prepared")
    (raw / "digits.csv.gz").unlink()
    with pytest.raises(UserError, match="digits.csv.gz is not there. Delete .*files.json"):
        prepare(SPEC, raw, tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()


@pytest.mark.parametrize(("key", "wrong"), [("train", 1436), ("test", 361), ("shape", [3, 8, 8]), ("classes", 11)])
def test_a_configuration_that_does_not_fit_the_files_is_told(raw, tmp_path, key, wrong):
    with pytest.raises(UserError) as error:
        prepare(SPEC | {key: wrong}, raw, tmp_path / "prepared")
    assert f"config/datasets.yaml says {key}: {wrong}, the raw files hold {SPEC[key]}" in str(error.value)
    assert not (tmp_path / "prepared").exists()


# --- loading ---


def refusal(folder: Path, spec: dict[str, Any] = SPEC) -> str:
    with pytest.raises(UserError) as error:
        load(folder, spec)
    assert f"Delete the folder {folder} so that it is made again" in str(error.value)
    return str(error.value)


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_byte_is_named(folder, name):
    expected = json.loads((folder / "dataset.json").read_text())["sha256"][name]
    flip(folder / name, -1)
    assert f"{folder / name} was changed: expected SHA-256 {expected}, found " in refusal(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_truncated_or_missing_array_is_named(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-100])
    assert f"{folder / name} was changed" in refusal(folder)
    (folder / name).unlink()
    assert f"{folder / name} is not there" in refusal(folder)


def test_swapped_arrays_are_named(folder):
    (folder / "train_images.npy").rename(folder / "aside")
    (folder / "test_images.npy").rename(folder / "train_images.npy")
    (folder / "aside").rename(folder / "test_images.npy")
    assert "_images.npy was changed" in refusal(folder)


def test_any_change_of_dataset_json_is_noticed(folder):
    path = folder / "dataset.json"
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        if not whole[at : at + 1].isspace():
            path.write_bytes(whole)
            flip(path, at)
            assert str(path) in refusal(folder)
    path.write_bytes(whole[:-10])
    assert "is not the JSON it should be" in refusal(folder)
    path.unlink()
    assert f"{path} is not there" in refusal(folder)


def test_arrays_of_another_spec_are_refused(folder):
    assert "was made by another spec: expected " in refusal(folder, SPEC | {"test": 361})


# --- the split ---


@given(st.data(), st.integers(1, 300), st.integers(0, 2**70))
def test_a_split_is_a_partition_in_ascending_order(data, count, seed):
    validation = data.draw(st.integers(0, count))
    training, held_out = split(count, validation, seed)
    assert len(held_out) == validation
    assert sorted([*training, *held_out]) == list(range(count))
    assert (np.diff(training) > 0).all()
    assert (np.diff(held_out) > 0).all()


def test_a_split_is_decided_by_its_seed_and_holds_out_a_growing_set():
    assert all(np.array_equal(a, b) for a, b in zip(split(1000, 100, 7), split(1000, 100, 7), strict=True))
    assert not np.array_equal(split(1000, 100, 7)[1], split(1000, 100, 8)[1])
    assert set(split(1000, 100, 7)[1]) < set(split(1000, 200, 7)[1])


def test_the_split_of_a_seed_never_changes():
    assert split(20, 5, 0)[1].tolist() == [2, 6, 8, 14, 18]
