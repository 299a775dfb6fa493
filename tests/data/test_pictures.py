"""Data sets of picture files are the same arrays from an archive as unpacked, and never in memory whole."""

import hashlib
import io
import json
import logging
import os
import random
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from dpvision import plan, provenance
from dpvision.data import download
from dpvision.data.datasets import imagenette, tinyimagenet
from dpvision.data.prepare import ARRAYS, prepare
from dpvision.data.prepared import load
from dpvision.errors import UserError

SIZES = [(213, 160), (160, 120), (160, 160), (31, 47)]  # width, height
WNIDS = ["n02124075", "n01443537", "n04067472"]  # not sorted, as in the real file
VALIDATION = ["n04067472", "n01443537", "n02124075"] * 4  # of val_0, val_1, ...


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def jpeg(seed: int, size: tuple[int, int], mode: str = "RGB") -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1] // 4 + 1, size[0] // 4 + 1, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).resize(size).convert(mode).save(file, "JPEG")
    return file.getvalue()


@dataclass
class Published:
    """A data set of a few pictures as its publisher would pack it."""

    name: str
    archive: str
    shape: list[int]
    members: dict[str, bytes]
    place: Path
    counts: dict[str, int]
    md5: str = "0" * 32  # of an archive that nobody has, until it is packed

    @property
    def stem(self) -> str:
        return self.archive.split(".")[0]

    def packed(self) -> Path:
        """Pack the files in no order at all, and with the entries for folders that real archives have."""
        self.place.mkdir(exist_ok=True)
        members = random.Random(0).sample(list(self.members.items()), len(self.members))
        path = self.place / self.archive
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.mkdir(self.stem)
                for member, content in members:
                    archive.writestr(f"{self.stem}/{member}", content)
        else:
            with tarfile.open(path, "w:gz") as stream:
                folder = tarfile.TarInfo(self.stem)
                folder.type = tarfile.DIRTYPE
                stream.addfile(folder)
                for member, content in members:
                    info = tarfile.TarInfo(f"{self.stem}/{member}")
                    info.size = len(content)
                    stream.addfile(info, io.BytesIO(content))
        self.md5 = md5(path.read_bytes())
        return path

    def unpacked(self) -> Path:
        for member, content in self.members.items():
            path = self.place / self.stem / member
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return self.place / self.stem

    def images(self, split: str) -> dict[str, bytes]:
        """Return a split's images sorted by path, without the other files that lie beside them."""
        of_split = {path: self.members[path] for path in sorted(self.members) if path.startswith(f"{split}/")}
        return {path: c for path, c in of_split.items() if path.endswith(".JPEG") and "/." not in path}

    def fetch(self, raw: Path, own: Path) -> None:
        entry = {"title": "A few pictures", "licence": "ImageNet's terms", "sources": [], "files": self.spec["files"]}
        download.fetch(self.name, entry, own, raw)

    def refusal(self, raw: Path, own: Path) -> str:
        with pytest.raises(UserError) as error:
            self.fetch(raw, own)
        assert not (raw / "files.json").exists()
        return str(error.value)

    @property
    def spec(self) -> dict[str, Any]:
        return {"kind": "data", "name": self.name, "files": {self.archive: self.md5}, "shape": self.shape, **self.counts}

    def prepared(self, raw: Path) -> Any:
        prepare(self.spec, raw, raw.parent / "prepared")
        return load(raw.parent / "prepared", self.spec)


@pytest.fixture
def nette(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    """Make Imagenette with one to four pictures of each class, in all sizes, some in grey."""
    counts = {"train": [4, 1, 2, 1, 3, 1, 1, 2, 1, 1], "val": [1, 2, 1, 1, 1, 1, 1, 3, 1, 1]}
    monkeypatch.setattr(imagenette, "COUNTS", counts)
    members = {"noisy_imagenette.csv": b"path,noisy\n", ".DS_Store": b"", "train/n01440764/._1.JPEG": b"of a Mac"}
    for split in counts:
        for wnid, count in zip(imagenette.CLASSES, counts[split], strict=True):
            for i in range(count):
                size, mode = SIZES[len(members) % 4], "L" if len(members) % 3 == 0 else "RGB"
                members[f"{split}/{wnid}/ILSVRC2012_val_{1000 - i}.JPEG"] = jpeg(len(members), size, mode)
    sizes = {"classes": 10, "train": sum(counts["train"]), "test": sum(counts["val"])}
    return Published("imagenette", "imagenette2-160.tgz", [3, 160, 160], members, tmp_path / "published", sizes)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    """Make Tiny ImageNet with three classes of eleven pictures each."""
    monkeypatch.setattr(tinyimagenet, "TRAIN_IMAGES", 11)
    wnids = "".join(f"{wnid}\n" for wnid in WNIDS).encode()
    annotations = "".join(f"val_{i}.JPEG\t{wnid}\t0\t32\t44\t62\n" for i, wnid in enumerate(VALIDATION)).encode()
    words = b"n00001740\tentity\nn01443537\tgoldfish, Carassius auratus\nn02124075\tEgyptian cat\nn04067472\treel\n"
    texts = {"wnids.txt": wnids, "val/val_annotations.txt": annotations}
    monkeypatch.setattr(tinyimagenet, "MD5", {name: md5(content) for name, content in texts.items()})
    members = {**texts, "words.txt": words}
    for wnid in WNIDS:
        members[f"train/{wnid}/{wnid}_boxes.txt"] = b"boxes"
        for i in range(11):
            members[f"train/{wnid}/images/{wnid}_{i}.JPEG"] = jpeg(len(members), (64, 64), "L" if i == 5 else "RGB")
    for i in range(len(VALIDATION)):
        members[f"val/images/val_{i}.JPEG"] = jpeg(len(members), (64, 64))
        members[f"test/images/test_{i}.JPEG"] = jpeg(len(members), (64, 64))
    sizes = {"classes": 3, "train": 33, "test": 12}
    return Published("tinyimagenet", "tiny-imagenet-200.zip", [3, 64, 64], members, tmp_path / "published", sizes)


@pytest.fixture(params=["nette", "tiny"])
def published(request: pytest.FixtureRequest) -> Published:
    return request.getfixturevalue(request.param)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw"


def decoded(content: bytes) -> np.ndarray:
    """Decode a picture into an array, channels first."""
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).transpose(2, 0, 1)


# --- what they become ---


def test_imagenette_is_in_the_order_of_its_paths_whatever_the_archives(nette, raw):
    nette.fetch(raw, nette.packed())
    arrays = nette.prepared(raw)
    wnids = list(imagenette.CLASSES)
    for split, labels in (("train", arrays.train_labels), ("val", arrays.test_labels)):
        assert labels.tolist() == [wnids.index(path.split("/")[1]) for path in nette.images(split)]
    assert np.bincount(arrays.train_labels).tolist() == [4, 1, 2, 1, 3, 1, 1, 2, 1, 1]
    assert wnids == sorted(wnids)


def test_imagenette_is_squashed_as_torchvision_resizes_pictures(nette, raw):
    from dpvision.vision import torchvision

    nette.fetch(raw, nette.packed())
    arrays = nette.prepared(raw)
    resize = torchvision.transforms.Resize((160, 160))
    for split, images in (("train", arrays.train_images), ("val", arrays.test_images)):
        for image, content in zip(images, nette.images(split).values(), strict=True):
            theirs = resize(Image.open(io.BytesIO(content)).convert("RGB"))
            assert np.array_equal(image, np.asarray(theirs).transpose(2, 0, 1))


def test_imagenettes_classes_are_those_that_torchvision_knows():
    from dpvision.vision import torchvision

    known = torchvision.datasets.Imagenette
    assert {wnid: names[0] for wnid, names in known._WNID_TO_CLASS.items()} == imagenette.CLASSES
    url, md5_of_archive = known._ARCHIVES["160px"]
    assert url.endswith(imagenette.ARCHIVE.name)
    assert md5_of_archive == "e793b78cc4c9e9a4ccc0c1155377a412"


def test_tiny_imagenet_is_labelled_by_sorted_wordnet_numbers_and_its_annotations(tiny, raw):
    tiny.fetch(raw, tiny.packed())
    arrays = tiny.prepared(raw)
    assert arrays.class_names == ["goldfish, Carassius auratus", "Egyptian cat", "reel"]
    assert arrays.train_labels.tolist() == [0] * 11 + [1] * 11 + [2] * 11
    order = [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]  # of paths, as text
    assert arrays.test_labels.tolist() == [sorted(WNIDS).index(VALIDATION[i]) for i in order]
    for split, images in (("train", arrays.train_images), ("val", arrays.test_images)):
        assert np.array_equal(images, [decoded(content) for content in tiny.images(split).values()])


def test_preparing_never_holds_the_images_in_memory(nette, raw, monkeypatch):
    counts = {"train": [9] * 10, "val": [1] * 10}
    picture = jpeg(0, (160, 160))
    monkeypatch.setattr(imagenette, "COUNTS", counts)
    nette.counts = {"classes": 10, "train": 90, "test": 10}
    nette.members = {
        f"{split}/{wnid}/{i}.JPEG": picture for split in counts for wnid in imagenette.CLASSES for i in range(counts[split][0])
    }
    nette.fetch(raw, nette.packed())
    monkeypatch.setattr(provenance, "code_digest", lambda *modules: "")  # it parses the library
    tracemalloc.start()
    prepare(nette.spec, raw, raw.parent / "prepared")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (raw.parent / "prepared/train_images.npy").stat().st_size / 4


def test_the_log_says_how_far_it_is(nette, raw, caplog):
    nette.fetch(raw, nette.packed())
    with caplog.at_level(logging.INFO):
        nette.prepared(raw)
    assert "imagenette2-160 train_images: 8 of 17" in caplog.messages
    assert "imagenette2-160 train_images: 17 of 17" in caplog.messages


@pytest.mark.parametrize(("module", "classes"), [(imagenette, 10), (tinyimagenet, 200)], ids=["imagenette", "tinyimagenet"])
def test_the_configuration_and_the_files_agree_on_archive_shape_and_counts(module, classes):
    said = yaml.safe_load((plan.ROOT / "config/datasets.yaml").read_text())[module.__name__.rpartition(".")[2]]
    (source,) = said["sources"]
    assert said["files"] == {module.ARCHIVE.name: source["md5"]}
    assert source["url"].endswith(f"/{module.ARCHIVE.name}")
    assert (said["classes"], said["shape"]) == (classes, list(module.ARCHIVE.shape))
    counts = [sum(of_split) for of_split in imagenette.COUNTS.values()] if module is imagenette else [200 * 500, 200 * 50]
    assert [said["train"], said["test"]] == counts


# --- the user's own ---


def test_an_archive_is_taken_as_it_is_from_a_folder_or_by_its_path(published, raw):
    archive = published.packed()
    for own in (archive.parent, archive):
        published.fetch(raw, own)
        assert (raw / archive.name).read_bytes() == archive.read_bytes()
        assert {path.name for path in raw.iterdir()} == {archive.name, "files.json"}
        (raw / archive.name).unlink()


def test_a_damaged_archive_is_named(published, raw):
    archive = published.packed()
    archive.write_bytes(archive.read_bytes()[:-1])
    with pytest.raises(UserError, match=f"{archive.name} in published: expected MD5 {published.md5}, found "):
        published.fetch(raw, archive.parent)
    assert not (raw / archive.name).exists()


@pytest.mark.parametrize("given", [lambda tree: tree, lambda tree: tree.parent], ids=["the tree", "the folder it is in"])
def test_what_was_unpacked_becomes_the_same_arrays_and_says_that_nothing_proves_it(published, raw, tmp_path, given, caplog):
    archive = published.packed()
    published.fetch(raw, archive)
    published.prepared(raw)
    tree = published.unpacked()
    archive.unlink()
    again = tmp_path / "again"
    with caplog.at_level(logging.INFO):
        published.fetch(again / "raw", given(tree))
    prepare(published.spec, again / "raw", again / "prepared")
    for name in ARRAYS:
        assert (again / "prepared" / f"{name}.npy").read_bytes() == (tmp_path / "prepared" / f"{name}.npy").read_bytes()
    said = json.loads((again / "raw/files.json").read_text())
    sha256 = said["files"]["unpacked.zip"]["sha256"]
    unproved = f"(own, unpacked: not proved by a publisher's digest; SHA-256 of all of it, packed: {sha256})"
    assert said["source"] == json.loads((again / "prepared/dataset.json").read_text())["source"]
    assert said["source"].endswith(unproved)
    assert [record.levelname for record in caplog.records if unproved in record.getMessage()] == ["WARNING"]


def test_what_was_unpacked_is_packed_into_the_same_bytes_every_time(published, tmp_path):
    tree = published.unpacked()
    for once in ("one", "two"):
        published.fetch(tmp_path / once, tree)
    assert (tmp_path / "one/unpacked.zip").read_bytes() == (tmp_path / "two/unpacked.zip").read_bytes()


def test_a_pipe_among_unpacked_pictures_is_missing_and_not_waited_for(nette, raw):
    tree, path = nette.unpacked(), next(iter(nette.images("train")))
    (tree / path).unlink()
    os.mkfifo(tree / path)
    assert "train" in nette.refusal(raw, tree)


def test_an_archive_takes_the_place_of_what_was_unpacked(published, raw):
    published.fetch(raw, published.unpacked())
    published.fetch(raw, published.packed())
    assert {path.name for path in raw.iterdir()} == {published.archive, "files.json"}


def test_what_was_packed_is_held_to_its_own_digest(published, raw):
    published.fetch(raw, published.unpacked())
    packed = raw / "unpacked.zip"
    packed.write_bytes(packed.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"unpacked.zip was changed: expected SHA-256 .*, found .*Delete .*files.json"):
        prepare(published.spec, raw, raw.parent / "prepared")


# --- what does not belong together ---


def without(path: str) -> Callable[[dict[str, bytes]], None]:
    return lambda members: members.pop(path) and None


def with_(path: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    return lambda members: members.update({path: content})


FAULTS = {
    "a picture too few": (
        "nette",
        without("train/n01440764/ILSVRC2012_val_998.JPEG"),
        "train/n01440764: expected 4 .JPEG files, found 3",
    ),
    "a picture too many": (
        "nette",
        with_("val/n03888257/more.JPEG", jpeg(0, (160, 160))),
        "val/n03888257: expected 1 .JPEG files, found 2",
    ),
    "one more class": (
        "nette",
        with_("train/n00000001/one.JPEG", jpeg(0, (160, 160))),
        "these do not belong to it: train/n00000001/one.JPEG",
    ),
    "a named picture too few": (
        "tiny",
        without("train/n01443537/images/n01443537_3.JPEG"),
        "these are missing: train/n01443537/images/n01443537_3.JPEG",
    ),
    "a named picture too many": (
        "tiny",
        with_("val/images/val_12.JPEG", jpeg(0, (64, 64))),
        "these do not belong to it: val/images/val_12.JPEG",
    ),
    "other annotations": (
        "tiny",
        with_("val/val_annotations.txt", b"val_0.JPEG\tn01443537\n"),
        "val/val_annotations.txt: expected MD5 ",
    ),
    "no names": ("tiny", without("words.txt"), "words.txt not found"),
    "a class without a name": ("tiny", with_("words.txt", b"n01443537\tgoldfish\nn02124075\tcat\n"), "no name for n04067472"),
}


@pytest.mark.parametrize(("which", "change", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_what_is_missing_or_one_too_many_is_named_packed_and_unpacked(which, change, words, request, raw, tmp_path):
    published = request.getfixturevalue(which)
    change(published.members)
    assert words in published.refusal(raw, published.unpacked())
    published.fetch(raw, published.packed())
    with pytest.raises(UserError) as error:
        published.prepared(raw)
    assert words in str(error.value)
    assert not (tmp_path / "prepared").exists()


BROKEN = {
    "a truncated picture": ("nette", "train/n01440764/ILSVRC2012_val_998.JPEG", jpeg(0, (160, 160))[:900], "truncated"),
    "no picture": ("tiny", "val/images/val_3.JPEG", b"<html>", "cannot identify image file"),
    "a picture of a larger version": (
        "nette",
        "val/n03888257/ILSVRC2012_val_1000.JPEG",
        jpeg(0, (427, 320)),
        "imagenette2-320",
    ),
    "a picture of another size": ("tiny", "val/images/val_3.JPEG", jpeg(0, (64, 63)), "expected 64 x 64 pixels, found 64 x 63"),
}


@pytest.mark.parametrize(("which", "path", "content", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_every_unpacked_picture_is_opened(which, path, content, words, request, raw):
    published = request.getfixturevalue(which)
    published.members[path] = content
    message = published.refusal(raw, published.unpacked())
    assert f"your own {published.place / published.stem}: {path}: " in message
    assert words in message


def test_a_folder_without_pictures_is_refused_with_what_to_put_there(published, raw, tmp_path):
    (tmp_path / "own").mkdir()
    message = published.refusal(raw, tmp_path / "own")
    assert f"not found there: {published.archive}" in message
    assert f"put {published.archive}, or the folder {published.stem} that is unpacked from it, into a folder" in message


def test_many_missing_pictures_are_a_few_names_and_a_number(tiny, raw):
    for i in range(12):
        del tiny.members[f"val/images/val_{i}.JPEG"]
    first = (
        "val/images/val_0.JPEG, val/images/val_1.JPEG, val/images/val_10.JPEG, val/images/val_11.JPEG, val/images/val_2.JPEG"
    )
    assert f"these are missing: {first} and 7 more" in tiny.refusal(raw, tiny.unpacked())
