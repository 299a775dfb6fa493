"""CIFAR-100 (Krizhevsky 2009): 50,000 + 10,000 colour images, 32 x 32, by their 100 fine labels.

Its raw files are the two of the binary release, records of two label bytes, coarse and fine, and 3,072 planar RGB bytes. The
pickles of the Python release are rebuilt into them, and nothing that they say is run.
"""

import io
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpvision.data import SourceFault, pickles
from dpvision.data.datasets import Arrays, Content, files_of, members_of

UNDERSTOOD = "cifar-100-binary.tar.gz, cifar-100-python.tar.gz, or one of the two unpacked,"

SPLITS = ("train", "test")
PIXELS = 3 * 32 * 32
# fmt: off
CLASS_NAMES = [
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy",
    "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock",
    "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest",
    "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard",
    "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid",
    "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine", "possum",
    "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper",
    "snail", "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone",
    "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf",
    "woman", "worm",
]
# fmt: on


def read(raw: Path) -> Arrays:
    """Return images and fine labels."""
    (train_images, train_labels), (test_images, test_labels) = (_images_and_labels(raw / f"{side}.bin") for side in SPLITS)
    return Arrays(train_images, train_labels, test_images, test_labels, CLASS_NAMES)


def _images_and_labels(file: Path) -> tuple[np.ndarray, np.ndarray]:
    records = np.fromfile(file, np.uint8).reshape(-1, 2 + PIXELS)
    return np.ascontiguousarray(records[:, 2:]).reshape(-1, 3, 32, 32), records[:, 1].astype(np.int64)


def understand(thing: Path) -> Iterator[Content]:
    """Yield the binary files that a folder or an archive has, or those made of its pickles."""
    if thing.is_file() and not thing.name.endswith((".tar.gz", ".tgz")):
        return
    for name, content in files_of(thing) if thing.is_dir() else members_of(thing):
        if name.removesuffix(".bin") in SPLITS and name.endswith(".bin"):
            yield name, content
        elif name in SPLITS:
            try:
                batch = pickles.read(content)
                labels = [np.asarray(batch[kind], np.uint8) for kind in ("coarse_labels", "fine_labels")]
                records = np.column_stack([*labels, batch["data"]]).tobytes()
            except (pickle.UnpicklingError, KeyError, TypeError, ValueError) as error:
                raise SourceFault(f"{name}: {error}") from error
            yield f"{name}.bin", io.BytesIO(records)
