"""A folder of pictures becomes a data set, or an error that names what is wrong with it."""

import os
import shutil
import stat
import struct
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpvision.data.datasets import folder as pictures
from dpvision.data.download import fetch
from dpvision.data.picture_folders import MOST_PIXELS, check_layout, fault_of, list_folder, pack_pictures
from dpvision.data.prepare import prepare
from dpvision.data.prepared import load, split
from dpvision.errors import UserError
from dpvision.files import file_digest, read_json


def picture(file: Path, seed: int, size: tuple[int, int] = (20, 12), mode: str = "RGB") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    Image.fromarray(pixels).convert(mode).save(file)


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Return a folder of 40 pictures of two classes, of several kinds and sizes."""
    for i in range(20):
        picture(tmp_path / "My Pets/cat" / f"{i:02}.png", i, (20 + i, 12))
        picture(tmp_path / "My Pets/dog" / f"{i:02}.PNG", 100 + i, (100, 140), "L" if i % 2 else "RGBA")
    return tmp_path / "My Pets"


def packed(folder: Path, to: Path) -> Path:
    """Pack a folder's pictures into a file."""
    with open(to, "wb") as file:
        pack_pictures(list_folder(folder), folder, file)
    return to


def entry_of(folder: Path, scratch: Path, **keys: object) -> dict[str, object]:
    """Return the entry of a data set of the folder's 40 pictures, of which 8 test."""
    md5 = file_digest(packed(folder, scratch / "packed.zip"), "md5")
    entry = {"title": "Pets", "licence": "yours", "reader": "folder", "files": {"pictures.zip": md5}, "sources": []}
    return entry | {"name": "pets", "classes": 2, "shape": [3, 96, 96], "train": 32, "test": 8} | keys


def test_a_folder_becomes_arrays_by_its_entry(pets, tmp_path):
    entry = entry_of(pets, tmp_path)
    fetch("pets", entry, pets, tmp_path / "raw")
    prepare(entry, tmp_path / "raw", tmp_path / "prepared")
    data = load(tmp_path / "prepared", entry)
    assert data.train_images.shape == (32, 3, 96, 96)
    assert data.test_images.shape == (8, 3, 96, 96)
    assert data.class_names == ["cat", "dog"]
    assert np.bincount(np.concatenate([data.train_labels, data.test_labels])).tolist() == [20, 20]


def test_the_same_pictures_are_the_same_bytes_and_other_ones_are_refused(pets, tmp_path):
    shutil.copytree(pets, tmp_path / "copy")
    assert packed(pets, tmp_path / "1").read_bytes() == packed(tmp_path / "copy", tmp_path / "2").read_bytes()
    entry = entry_of(pets, tmp_path)
    picture(pets / "cat/00.png", 999)
    with pytest.raises(UserError, match="expected MD5"):
        fetch("pets", entry, pets, tmp_path / "raw")


def test_a_split_of_ones_own_is_kept(tmp_path):
    for side, count in (("train", 6), ("test", 3)):
        for i in range(count):
            for label in ("a", "b"):
                picture(tmp_path / f"own/{side}/{label}/{i}.jpg", i + 10 * len(side))
    assert list_folder(tmp_path / "own").is_split
    data = pictures.Folder(packed(tmp_path / "own", tmp_path / "pictures.zip"), [3, 8, 8], 6, test_by_class=True)
    assert (data.train_labels.tolist(), data.test_labels.tolist()) == ([0] * 6 + [1] * 6, [0] * 3 + [1] * 3)


def test_the_test_split_has_a_fifth_of_each_class(tmp_path):
    for label, count in {"many": 40, "few": 7, "two": 2, "one": 1}.items():
        for i in range(count):
            picture(tmp_path / f"own/{label}/{i:02}.png", i + 100 * count)
    file = packed(tmp_path / "own", tmp_path / "pictures.zip")
    data = pictures.Folder(file, [3, 8, 8], 10, test_by_class=True)
    per_class = dict(zip(data.class_names, np.bincount(data.test_labels, minlength=4).tolist(), strict=True))
    assert per_class == {"many": 8, "few": 1, "two": 1, "one": 0}
    assert not set(data._paths["train"]) & set(data._paths["test"])
    assert pictures.Folder(file, [3, 8, 8], 10, test_by_class=True)._paths == data._paths


def test_without_the_key_the_test_split_is_drawn_as_before(pets, tmp_path):
    file = packed(pets, tmp_path / "pictures.zip")
    paths = sorted(path.relative_to(pets).as_posix() for path in pets.glob("*/*"))
    _, test = split(40, 8, 0)
    assert pictures.Folder(file, [3, 8, 8], 8)._paths["test"] == [paths[i] for i in test]


def test_the_same_picture_twice_is_named_within_and_across_the_splits(tmp_path):
    for path, seed in {"train/a/1": 1, "train/b/2": 2, "train/a/3": 1, "test/a/4": 2, "test/b/5": 3, "test/b/6": 3}.items():
        picture(tmp_path / f"own/{path}.png", seed)
    assert pictures.Folder(packed(tmp_path / "own", tmp_path / "pictures.zip"), [3, 8, 8], 3).duplicates == {
        "train": [["train/a/1.png", "train/a/3.png"]],
        "test": [["test/b/5.png", "test/b/6.png"]],
        "across": [["test/a/4.png", "train/b/2.png"]],
    }


def test_the_shorter_side_is_fitted_and_the_middle_kept():
    wide = Image.new("RGB", (40, 20), "red")
    wide.paste("blue", (10, 0, 30, 20))
    fitted = pictures._fitted(wide, [3, 10, 10])
    assert fitted.shape == (3, 10, 10)
    assert (fitted[2, :, 1:-1] > 200).all()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([], "there is no picture in it"),
        (["a/1.heic", "b/1.heic"], "kinds that are not read: a/1.heic, b/1.heic"),
        (["a/1.png", "a/2.png"], "there is one class, a"),
        (["1.png", "a/1.png", "b/1.png"], "1.png lies in no class: put it into the folder of its class"),
        (["a/1.png", "b/1.png", "b/deeper/2.png"], "b/deeper/2.png lies too deep: put it into b/"),
        (["train/a/1.png", "train/b/1.png", "test/a/deep/er/1.png"], "test/a/deep/er/1.png lies too deep: put it into test/a/"),
        (["train/a/1.png", "train/b/1.png", "test/c/1.png"], "classes that test/ has and train/ has not: c"),
    ],
)
def test_a_folder_that_is_no_data_set_says_why(tmp_path, files, says):
    (tmp_path / "own").mkdir()
    for file in files:
        picture(tmp_path / "own" / Path(file).with_suffix(".png"), 1)
        (tmp_path / "own" / Path(file).with_suffix(".png")).rename(tmp_path / "own" / file)
    with pytest.raises(UserError, match=says):
        check_layout(list_folder(tmp_path / "own"), tmp_path / "own")


def one_colour_png(side: int) -> bytes:
    """Return a PNG of side x side black pixels, a bit each."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress(bytes((side // 8 + 1) * side), 9)
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [13_000, 20_000])
def test_a_picture_of_too_many_pixels_is_not_decoded(tmp_path, side):
    (tmp_path / "huge.png").write_bytes(one_colour_png(side))
    assert (tmp_path / "huge.png").stat().st_size < 100_000
    fault = fault_of(tmp_path / "huge.png")
    assert f"{side} x {side}: too large" in fault
    assert f"{MOST_PIXELS // 1_000_000} million pixels" in fault


def test_why_a_picture_cannot_be_read_is_said(tmp_path, pets):
    whole = (pets / "dog/00.PNG").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    Image.open(pets / "dog/00.PNG").convert("RGB").save(tmp_path / "whole.jpg")
    jpeg = (tmp_path / "whole.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(jpeg[: len(jpeg) // 2])
    for name, content in {"empty": b"", "text": b"no picture", "broken": b"\x89PNG\r\n\x1a\n broken"}.items():
        (tmp_path / f"{name}.png").write_bytes(content)
    faults = {file.name: fault_of(file) for file in [*tmp_path.glob("*.png"), *tmp_path.glob("*.jpg")]}
    assert faults.pop("whole.jpg") == ""
    assert {faults.pop("cut.png"), faults.pop("cut.jpg")} == {"cut off"}
    assert set(faults.values()) == {"no picture"}


def test_a_folder_that_may_not_be_listed_is_named(pets, monkeypatch):
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("dog"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(UserError, match="dog: this folder cannot be read: Permission denied"):
        list_folder(pets)


def test_a_pipe_is_not_waited_for(pets, tmp_path):
    os.mkfifo(pets / "cat/x.png")
    assert fault_of(pets / "cat/x.png") == "no file"
    taking = threading.Thread(target=lambda: list(pictures.understand(pets)), daemon=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", lambda _: None)
        taking.start()
        taking.join(30)
    assert not taking.is_alive()


def test_links_out_of_the_folder_are_followed_only_when_told(pets, tmp_path):
    picture(tmp_path / "elsewhere/far.png", 7)
    (pets / "cat/out.png").symlink_to(tmp_path / "elsewhere/far.png")
    (pets / "cat/inside.png").symlink_to(pets / "cat/00.png")
    (pets / "away").symlink_to(tmp_path / "elsewhere")
    (pets / "cat/loop").symlink_to(pets)
    usual, told = list_folder(pets), list_folder(pets, follow_links=True)
    assert sorted(usual.links) == ["away", "cat/loop", "cat/out.png"]
    assert "cat/inside.png" in usual.pictures
    assert {"away/far.png", "cat/out.png"} <= set(told.pictures)


def test_pictures_that_were_packed_with_links_are_found_again(pets, tmp_path):
    picture(tmp_path / "elsewhere/far.png", 7)
    (pets / "cat/out.png").symlink_to(tmp_path / "elsewhere/far.png")
    for follow_links in (False, True):
        with open(tmp_path / "linked.zip", "wb") as file:
            pack_pictures(list_folder(pets, follow_links), pets, file)
        entry = entry_of(pets, tmp_path, files={"pictures.zip": file_digest(tmp_path / "linked.zip", "md5")})
        fetch("pets", entry, pets, tmp_path / f"raw{follow_links}")
        assert (tmp_path / f"raw{follow_links}/files.json").exists()


def test_no_record_and_no_log_names_a_picture(pets, tmp_path, caplog):
    (pets / "cat/00.png").rename(pets / "cat/patient_7.png")
    shutil.copy(pets / "cat/patient_7.png", pets / "cat/patient_7_again.png")
    shutil.copy(pets / "cat/patient_7.png", pets / "dog/patient_7_dog.png")
    caplog.set_level("INFO")
    entry = entry_of(pets, tmp_path, train=34, test_by_class=True)
    fetch("pets", entry, pets, tmp_path / "raw")
    prepare(entry, tmp_path / "raw", tmp_path / "prepared")
    assert sum(read_json(tmp_path / "prepared/dataset.json")["duplicates"].values()) == 1
    assert "twice" in caplog.text
    records = [*(tmp_path / "prepared").glob("*.json"), tmp_path / "raw/files.json"]
    assert not [file for file in records if "patient_7" in file.read_text()]
    picture(pets / "cat/deep/patient_8.png", 8)
    shutil.rmtree(tmp_path / "raw")
    with pytest.raises(UserError) as refusal:
        fetch("pets", entry, pets, tmp_path / "raw")
    assert "patient" not in caplog.text + str(refusal.value)


def test_private_copies_are_their_owners_alone(pets, tmp_path):
    before = os.umask(0o022)
    try:
        entry = entry_of(pets, tmp_path, private=True)
        (tmp_path / "data/prepared").mkdir(parents=True)  # as Snakemake does
        fetch("pets", entry, pets, tmp_path / "data/raw")
        prepare(entry, tmp_path / "data/raw", tmp_path / "data/prepared")
        (tmp_path / "data/after").touch()
    finally:
        os.umask(before)
    rights = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").rglob("*")}
    assert rights.pop("after") == 0o644
    assert {rights.pop("raw"), rights.pop("prepared")} == {0o700}
    assert set(rights.values()) == {0o600}
    assert {"pictures.zip", "train_images.npy", "dataset.json"} <= set(rights)


def test_a_zip_of_somebody_elses_is_read_within_the_same_limit(tmp_path):
    for label in ("a", "b"):
        (tmp_path / "own" / label).mkdir(parents=True)
        (tmp_path / "own" / label / "1.png").write_bytes(one_colour_png(13_000))
    data = pictures.Folder(packed(tmp_path / "own", tmp_path / "pictures.zip"), [3, 8, 8], 1)
    with pytest.raises(UserError, match="13000 x 13000: too large"):
        data.save("train_images", tmp_path / "train_images.npy")


def test_the_bytes_of_packed_pictures_stay_as_they_are(tmp_path):
    for label in ("a", "b"):
        (tmp_path / "own" / label).mkdir(parents=True)
        (tmp_path / "own" / label / "1.ppm").write_bytes(b"P6 1 1 255 " + bytes(3))
    assert file_digest(packed(tmp_path / "own", tmp_path / "pictures.zip"), "md5") == "978e648f65c9be17a68bbf3e9040c7c8"
