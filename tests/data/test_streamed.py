"""Folders of ImageNet's and Places' layouts become an index, what is broken is named; pictures are decoded when asked for."""

import logging
import os
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from dpvision.data import tree
from dpvision.data.datasets import digits
from dpvision.data.download import fetch
from dpvision.data.prepare import prepare
from dpvision.data.prepared import Prepared, load
from dpvision.data.streamed import Files, decoded, entry, link, sha256
from dpvision.errors import UserError
from dpvision.files import read_json

WNIDS = ["n01440764", "n02102040", "n03028079"]
ENTRY: dict[str, Any] = {"title": "Ours", "licence": "none", "sources": [], "files": {}, "streamed": True}
Make = Callable[[Path], None]


def picture(file: Path, seed: int, mode: str = "RGB", kind: str = "JPEG", size: tuple[int, int] = (40, 30)) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    Image.fromarray(pixels).convert(mode).save(file, kind)


def train_of_imagenet(root: Path) -> None:
    """Make four pictures of each class: of all kinds that are called JPEG in ImageNet."""
    for label, wnid in enumerate(WNIDS):
        for number, (mode, kind) in enumerate([("RGB", "JPEG"), ("L", "JPEG"), ("CMYK", "JPEG"), ("RGB", "PNG")]):
            picture(root / f"train/{wnid}/{wnid}_{number}.JPEG", 10 * label + number, mode, kind, (40 + 7 * number, 30))


def imagenet_in_folders(root: Path) -> None:
    train_of_imagenet(root)
    for number in range(6):
        picture(root / f"val/{WNIDS[number % 3]}/ILSVRC2012_val_{number:08}.JPEG", 100 + number)


def imagenet_by_the_kit(root: Path) -> None:
    """Make the layout of the archives; the kit numbers classes in an order of its own."""
    train_of_imagenet(root)
    for number in range(6):
        picture(root / f"val/ILSVRC2012_val_{number:08}.JPEG", 100 + number)
    kit = root / "ILSVRC2012_devkit_t12/data"
    kit.mkdir(parents=True)
    numbers = {WNIDS[0]: 3, WNIDS[1]: 1, WNIDS[2]: 2}
    (kit / "ILSVRC2012_validation_ground_truth.txt").write_text("".join(f"{numbers[WNIDS[n % 3]]}\n" for n in range(6)))
    rows = [(number, wnid) for wnid, number in numbers.items()] + [(4, "n00000000")]
    savemat(kit / "meta.mat", {"synsets": np.array(rows, [("ILSVRC2012_ID", object), ("WNID", object)])})


def places_as_published(root: Path) -> None:
    places = {"/a/airfield": 0, "/a/apartment_building/outdoor": 1, "/z/zen_garden": 2}
    for place, label in places.items():
        for number in range(4):
            picture(root / f"data_256{place}/{number:08}.jpg", 10 * label + number, size=(32, 32))
    (root / "categories_places365.txt").write_text("".join(f"{place} {label}\n" for place, label in places.items()))
    (root / "places365_val.txt").write_text("".join(f"Places365_val_{n:08}.jpg {n % 3}\n" for n in range(6)))
    for number in range(6):
        picture(root / f"val_256/Places365_val_{number:08}.jpg", 100 + number, size=(32, 32))


def places_in_folders(root: Path) -> None:
    for split, count in {"train": 4, "val": 2}.items():
        for label, place in enumerate(["airfield", "apartment_building-outdoor", "zen_garden"]):
            for number in range(count):
                picture(root / split / place / f"{number}.jpg", 10 * label + number, size=(32, 32))


def spec_of(reader: str = "imagenet", **changes: Any) -> dict[str, Any]:
    said = {"kind": "data", "name": "ours", "reader": reader, "files": {}, "streamed": True, "classes": 3}
    return said | {"shape": [3, 24, 24], "train": 12, "test": 6} | changes


@pytest.fixture
def prepared(tmp_path: Path) -> Callable[..., Prepared]:
    """Make a user's folder, fetch and prepare it in folders beside."""

    def make(fill: Make = imagenet_in_folders, **changes: Any) -> Prepared:
        spec = spec_of(**changes)
        fill(tmp_path / "own")
        fetch("ours", ENTRY | {"reader": spec["reader"]}, tmp_path / "own", tmp_path / "raw")
        prepare(spec, tmp_path / "raw", tmp_path / "prepared", 2)
        return load(tmp_path / "prepared", spec)

    return make


def paths(files: Any) -> list[str]:
    return [os.fsdecode(path) for path in files.index["path"]]


# --- layouts ---


@pytest.mark.parametrize("fill", [imagenet_in_folders, imagenet_by_the_kit])
def test_imagenets_val_has_folders_or_the_development_kits_list(prepared, fill):
    data = prepared(fill)
    assert data.class_names == WNIDS
    assert data.train_labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    of_val = {int(Path(path).stem[-8:]): label for path, label in zip(paths(data.test_images), data.test_labels, strict=True)}
    assert of_val == {number: number % 3 for number in range(6)}
    assert data.train_images.shape == (12, 3, 24, 24)


@pytest.mark.parametrize("fill", [places_as_published, places_in_folders])
def test_places_are_listed_by_categories_or_in_folders(prepared, fill):
    data = prepared(fill, reader="places365")
    assert [name.replace("/", "-").removeprefix("a-").removeprefix("z-") for name in data.class_names] == [
        "airfield",
        "apartment_building-outdoor",
        "zen_garden",
    ]
    assert data.train_labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert sorted(data.test_labels.tolist()) == [0, 0, 1, 1, 2, 2]


def without(part: str) -> Make:
    def fill(root: Path) -> None:
        imagenet_by_the_kit(root)
        place = root / part
        shutil.rmtree(place) if place.is_dir() else place.unlink()

    return fill


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("val", "there is no folder val/ in it; expected: train/ with a folder"),
        ("train", "there is no folder train/ in it"),
        ("train/n03028079", "train/ has no folder of a class of the pictures in val/: n03028079"),
        ("ILSVRC2012_devkit_t12", "ILSVRC2012_validation_ground_truth.txt and meta.mat of the development kit are not there"),
        ("val/ILSVRC2012_val_00000001.JPEG", "val/ has 5 pictures, ILSVRC2012_validation_ground_truth.txt has 6 lines"),
        ("train/n03028079/n03028079_0.JPEG", "says train: 12, the raw files hold 11. Bring that folder to it"),
    ],
)
def test_what_a_folder_lacks_is_named_before_a_picture_is_looked_at(prepared, part, says, monkeypatch):
    monkeypatch.setattr(tree.Tree, "_look", None)
    with pytest.raises(UserError, match=says):
        prepared(without(part))


def test_without_a_folder_the_message_says_how_to_name_one(tmp_path):
    with pytest.raises(UserError, match=r"(?s)nobody can download it\.\nPut train/ with .* folders: \{imagenet: /path/to/it\}"):
        fetch("imagenet", ENTRY, None, tmp_path / "raw")
    with pytest.raises(UserError, match="nowhere: there is no such folder"):
        fetch("imagenet", ENTRY, tmp_path / "nowhere", tmp_path / "raw")


def test_pictures_stay_where_they_are_and_no_record_names_that_folder(prepared, tmp_path):
    prepared()
    kept = [file for folder in ("raw", "prepared") for file in (tmp_path / folder).iterdir() if not file.is_symlink()]
    assert sum(file.stat().st_size for file in kept) < 10_000
    assert not any(str(tmp_path / "own").encode() in file.read_bytes() for file in kept)
    assert read_json(tmp_path / "raw/files.json")["source"] == "a folder of the user's"


# --- looking at all of them ---


def break_some(root: Path) -> None:
    imagenet_in_folders(root)
    first = root / f"train/{WNIDS[0]}/{WNIDS[0]}_0.JPEG"
    first.write_bytes(first.read_bytes()[:300])  # cut off
    (root / f"train/{WNIDS[2]}/{WNIDS[2]}_3.JPEG").write_bytes(b"\x89PNG\r\n\x1a\n not a picture")
    (root / f"val/{WNIDS[1]}/ILSVRC2012_val_00000004.JPEG").write_bytes(b"")


def test_broken_pictures_are_named_together_and_alone_looked_at_again(prepared, tmp_path, monkeypatch):
    with pytest.raises(UserError, match="3 of 18 pictures cannot be read: .*_0.JPEG, .*_3.JPEG, .*_00000004.JPEG. Put whole"):
        prepared(break_some)
    assert not (tmp_path / "prepared/dataset.json").exists()
    looked_at = []
    look = tree.Tree._look
    monkeypatch.setattr(tree.Tree, "_look", lambda self, path: looked_at.append(path) or look(self, path))
    data = prepared(imagenet_in_folders)
    assert len(looked_at) == 3
    assert (data.train_images.index["bytes"] > 0).all()
    assert sorted(file.name for file in (tmp_path / "prepared").iterdir() if file.name.startswith(".")) == []


def test_a_pipe_in_a_folder_is_named_and_not_waited_for(prepared):
    def with_pipe(root: Path) -> None:
        imagenet_in_folders(root)
        (root / f"train/{WNIDS[0]}/{WNIDS[0]}_0.JPEG").unlink()
        os.mkfifo(root / f"train/{WNIDS[0]}/{WNIDS[0]}_0.JPEG")

    with pytest.raises(UserError, match="1 of 18 pictures cannot be read: .*_0.JPEG. Put whole"):
        prepared(with_pipe)


def test_an_error_names_the_first_of_many(prepared, monkeypatch):
    monkeypatch.setattr(tree, "NAMED", 2)
    with pytest.raises(UserError, match="_0.JPEG, .*_3.JPEG and 1 more. Put whole"):
        prepared(break_some)


def test_a_look_that_was_killed_goes_on_where_it_was(prepared, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(tree, "AT_ONCE", 4)
    looked_at: list[bytes] = []
    look = tree.Tree._look

    def until_killed(self: tree.Tree, path: bytes) -> Any:
        looked_at.append(path)
        if len(looked_at) == 10:
            raise KeyboardInterrupt
        return look(self, path)

    monkeypatch.setattr(tree.Tree, "_look", until_killed)
    with pytest.raises(KeyboardInterrupt):
        prepared()
    before = len(looked_at)
    killed = prepared()
    assert before >= 10
    assert len(looked_at) - before == 18 - 8  # two pieces of four were noted
    assert "goes on behind 8 of 12" in caplog.text
    monkeypatch.setattr(tree.Tree, "_look", look)
    assert killed.digest == prepared().digest


# --- decoding ---


@settings(max_examples=25, deadline=None)
@given(
    size=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    side=st.integers(1, 40),
    channels=st.sampled_from([1, 3]),
    seed=st.integers(0, 99),
)
def test_an_image_is_the_largest_square_in_the_middle_resized(tmp_path_factory, size, side, channels, seed):
    file = tmp_path_factory.getbasetemp() / "one.png"
    picture(file, seed, kind="PNG", size=size)
    whole = Image.open(file).convert("RGB" if channels == 3 else "L")
    width, height = size
    square, (left, top) = min(size), ((width - min(size)) // 2, (height - min(size)) // 2)
    pixels = np.asarray(whole).reshape(height, width, channels)[top : top + square, left : left + square]
    middle = Image.fromarray(pixels.squeeze(2) if channels == 1 else pixels).resize((side, side), Image.Resampling.BICUBIC)
    expected = np.asarray(middle).reshape(side, side, channels).transpose(2, 0, 1)
    assert np.array_equal(decoded(file.read_bytes(), (channels, side, side)), expected)


def test_the_digits_as_files_are_the_digits(digits_files, tmp_path):
    data = digits_files([1, 8, 8])
    whole = digits.read(tmp_path / "raw")
    for files, labels, images, theirs in (
        (data.train_images, data.train_labels, whole.train_images, whole.train_labels),
        (data.test_images, data.test_labels, whole.test_images, whole.test_labels),
    ):
        (found,) = files.batches([np.arange(len(files))], 0, 2)
        order = [int(Path(path).stem) for path in paths(files)]
        assert np.array_equal(found, images[order])
        assert np.array_equal(labels, theirs[order])


@pytest.fixture
def digits_files(tmp_path: Path) -> Callable[[list[int]], Prepared]:
    def make(shape: list[int]) -> Prepared:
        source = {"kind": "python", "package": "sklearn.datasets.data", "path": "digits.csv.gz"}
        files = {"digits.csv.gz": "9b335364a7bfd63947c7480a5bd51f2d"}
        spec = spec_of("digits_files", files=files, classes=10, shape=shape, train=1437, test=360)
        fetch("ours", ENTRY | {"sources": [source], "files": files, "reader": "digits_files"}, None, tmp_path / "raw")
        prepare(spec, tmp_path / "raw", tmp_path / "prepared", 2)
        return load(tmp_path / "prepared", spec)

    return make


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Return 60 pictures of one colour each, their number."""
    root = tmp_path_factory.mktemp("pictures")
    index = np.zeros(60, entry(6))
    for number in range(60):
        Image.new("L", (4, 4), number).save(root / f"{number}.png")
        content = (root / f"{number}.png").read_bytes()
        index[number] = (f"{number}.png", len(content), sha256(content))
    link(root.parent / "linked", root)
    return Files(root.parent / "linked", index, (1, 4, 4))


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(0, 9), max_size=12), threads=st.integers(1, 4), margin=st.integers(0, 3))
def test_whatever_is_asked_for_no_more_is_held_than_the_piece_in_use_and_the_next(files, sizes, threads, margin):
    asked: list[int] = []

    def pieces() -> Iterator[np.ndarray]:
        for number, size in enumerate(sizes):
            asked.append(number)
            yield (np.arange(size) * 7 + number) % 60

    earlier: list[weakref.ref] = []
    for given_, found in enumerate(files.batches(pieces(), margin, threads)):
        assert len(asked) - given_ <= 2
        assert found.shape == (sizes[given_], 1, 4 + margin, 4 + margin)
        assert (found == ((np.arange(sizes[given_]) * 7 + given_) % 60)[:, None, None, None]).all()
        earlier.append(weakref.ref(found))
        del found
        assert sum(ref() is not None for ref in earlier) <= 1
    assert len(asked) == len(sizes)


def test_nothing_goes_on_when_nobody_wants_the_rest(files, monkeypatch):
    begun: list[int] = []
    decode = Files._decode

    def slow(self: Files, number: int, into: np.ndarray) -> None:
        begun.append(number)
        time.sleep(0.005)
        decode(self, number, into)

    monkeypatch.setattr(Files, "_decode", slow)
    before = threading.active_count()
    batches = files.batches([np.arange(4), np.arange(56)], 0, 2)
    next(batches)
    batches.close()
    assert threading.active_count() == before
    assert len(begun) < 30


def test_a_picture_that_is_lost_or_changed_is_named(files, tmp_path):
    copy = shutil.copytree(files.root.resolve(), tmp_path / "own")
    link(tmp_path / "linked", copy)
    moved = Files(tmp_path / "linked", files.index, files.image)
    (copy / "7.png").write_bytes((copy / "8.png").read_bytes())
    with pytest.raises(UserError, match=r"7.png is not the picture that was there .* bring it back, and the same command goes"):
        list(moved.batches([np.arange(10)], 0, 2))
    (copy / "7.png").unlink()
    with pytest.raises(UserError, match=r"7.png cannot be read \(No such file or directory\)"):
        list(moved.batches([np.arange(10)], 0, 2))
