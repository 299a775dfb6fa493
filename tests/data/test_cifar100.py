"""CIFAR-100's raw files are the same bytes, whatever form it comes in, and its labels are the fine ones."""

import io
import os
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpvision.data.datasets import cifar100
from dpvision.data.download import fetch
from dpvision.data.prepare import prepare
from dpvision.data.prepared import load
from dpvision.errors import UserError

COUNTS = {"train": 200, "test": 100}


class Published:
    """Made-up images, every fine label among them, and the forms in which the real ones are published."""

    def __init__(self, folder: Path) -> None:
        random = np.random.default_rng(0)
        self.folder = folder
        self.images = {side: random.integers(0, 256, (count, 3, 32, 32), np.uint8) for side, count in COUNTS.items()}
        self.fine = {side: (np.arange(count) % 100).astype(np.uint8) for side, count in COUNTS.items()}
        self.coarse = {side: labels // 5 for side, labels in self.fine.items()}

    @property
    def raw(self) -> dict[str, bytes]:
        rows = {side: self.images[side].reshape(-1, 3072) for side in COUNTS}
        return {f"{side}.bin": np.column_stack([self.coarse[side], self.fine[side], rows[side]]).tobytes() for side in COUNTS}

    @property
    def pickles(self) -> dict[str, bytes]:
        return {side: pickle.dumps(self.batch(side), 2).replace(b"numpy._core", b"numpy.core") for side in COUNTS}

    def batch(self, side: str) -> dict[str, Any]:
        labels = {"coarse_labels": self.coarse[side].tolist(), "fine_labels": self.fine[side].tolist()}
        return labels | {"data": self.images[side].reshape(-1, 3072), "filenames": ["a.png"]}

    def archive(self, name: str, members: dict[str, bytes]) -> Path:
        with tarfile.open(self.folder / name, "w:gz") as tar:
            for member, content in members.items():
                info = tarfile.TarInfo(f"cifar-100/{member}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        return self.folder / name

    def spec(self, md5: Any) -> dict[str, Any]:
        files = {name: md5(content) for name, content in self.raw.items()}
        return {"kind": "data", "name": "cifar100", "files": files, "classes": 100, "shape": [3, 32, 32], **COUNTS}


@pytest.fixture
def published(tmp_path: Path) -> Published:
    (tmp_path / "published").mkdir()
    return Published(tmp_path / "published")


@pytest.fixture
def entry(published) -> dict[str, Any]:
    return {"title": "Made up", "licence": "none", "sources": [], "files": published.spec(_md5)["files"]}


def _md5(content: bytes) -> str:
    import hashlib

    return hashlib.md5(content).hexdigest()


@pytest.mark.parametrize("form", ["raw", "pickles"])
@pytest.mark.parametrize("unpacked", [False, True])
def test_every_form_gives_images_and_fine_labels(published, entry, tmp_path, form, unpacked):
    members = getattr(published, form)
    thing = published.archive("cifar-100.tar.gz", members)
    if unpacked:
        thing.unlink()
        (published.folder / "cifar-100").mkdir()
        for name, content in members.items():
            (published.folder / "cifar-100" / name).write_bytes(content)
    fetch("cifar100", entry, published.folder, tmp_path / "raw")
    prepare(published.spec(_md5), tmp_path / "raw", tmp_path / "prepared")
    data = load(tmp_path / "prepared", published.spec(_md5))
    assert np.array_equal(data.train_images, published.images["train"])
    assert np.array_equal(data.test_images, published.images["test"])
    assert data.train_labels.tolist() == published.fine["train"].tolist()
    assert data.class_names[0] == "apple"
    assert data.class_names == sorted(data.class_names)
    assert len(data.class_names) == 100


def test_a_pickle_that_would_run_code_does_not(published, entry, tmp_path):
    class Harm:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "harm"),)

    published.archive("cifar-100-python.tar.gz", {"train": pickle.dumps(Harm())})
    with pytest.raises(UserError, match=r"train: it names \w+\.mkdir"):
        fetch("cifar100", entry, published.folder, tmp_path / "raw")
    assert not (tmp_path / "harm").exists()


def test_other_files_and_other_images_are_no_cifar_100(published, entry, tmp_path):
    assert list(cifar100.understand(published.archive("other.tar.gz", {"readme.txt": b"hello"}))) == []
    (published.folder / "other.tar.gz").unlink()
    published.archive("cifar-100-python.tar.gz", {"train": pickle.dumps({"data": []})})
    with pytest.raises(UserError, match="train: 'coarse_labels'"):
        fetch("cifar100", entry, published.folder, tmp_path / "raw")
    published.images["train"] = published.images["train"][::-1]
    published.archive("cifar-100-python.tar.gz", published.pickles)
    with pytest.raises(UserError, match=r"train\.bin in .*expected MD5"):
        fetch("cifar100", entry, published.folder, tmp_path / "raw")
