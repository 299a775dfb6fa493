"""ImageNet-32 (Chrabaszcz et al. 2017): ImageNet's 1,281,167 + 50,000 images at 32 x 32, which a user brings.

They come in eleven files, pickles or .npz, with a row of 3,072 planar RGB bytes and a label from 1 to 1,000 an image. Nothing
that a pickle says is run. Pickles that are those of the MD5s are taken as they are; others, and .npz, which no published
digest proves, are checked and packed. There is never more than one file in memory.
"""

import logging
import pickle
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from dpvision.data import SourceFault, pickles
from dpvision.data.datasets import UNPACKED
from dpvision.errors import UserError

log = logging.getLogger(__name__)

UNDERSTOOD = "train_data_batch_1 to train_data_batch_10 and val_data, as pickles or as .npz,"

FILES = {"train": [f"train_data_batch_{i}" for i in range(1, 11)], "test": ["val_data"]}
EXAMPLES = {"train": 1281167, "test": 50000}
CLASSES = 1000
SHAPE = [3, 32, 32]
PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Images:
    """The images, file by file; as `datasets.Arrays` in all else."""

    raw: Path

    @property
    def shape(self) -> list[int]:
        return SHAPE

    @property
    def class_names(self) -> list[str]:
        """Return the labels as they are in the files: these do not say what they are of."""
        return [str(label) for label in range(1, CLASSES + 1)]

    @cached_property
    def train_labels(self) -> np.ndarray:
        return np.concatenate([self._batch(name)[1] for name in FILES["train"]])

    @cached_property
    def test_labels(self) -> np.ndarray:
        return np.concatenate([self._batch(name)[1] for name in FILES["test"]])

    def save(self, name: str, file: Path) -> None:
        """Save one of the arrays as an .npy file; images are written file by file."""
        side, what = name.split("_")
        if what == "labels":
            np.save(file, getattr(self, name))
            return
        with open(file, "wb") as array:
            header = {"descr": "|u1", "fortran_order": False, "shape": (len(getattr(self, f"{side}_labels")), *SHAPE)}
            np.lib.format.write_array_header_1_0(array, header)
            for batch in FILES[side]:
                array.write(np.ascontiguousarray(self._batch(batch)[0]).data)

    def _batch(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of pixels, and labels from 0."""
        packed = self.raw / UNPACKED
        if packed.exists():
            with zipfile.ZipFile(packed) as members:
                pixels, labels = members.read(f"{name}/data"), members.read(f"{name}/labels")
            return np.frombuffer(pixels, np.uint8).reshape(-1, PIXELS), np.frombuffer(labels, "<i2").astype(np.int64)
        try:
            return batch_of(self.raw / name)
        except SourceFault as fault:
            raise UserError(f"{self.raw / name}: {fault}. The MD5 in config/datasets.yaml is that of another file.") from fault


def read(raw: Path) -> Images:
    """Return the data set."""
    return Images(raw)


def pack(folder: Path, file: Path) -> bool:
    """Pack what all files of a folder, or of folders in it, hold; the same images are the same bytes, pickled or not."""
    there = {path.name.removesuffix(".npz"): path for path in _inside(folder)}
    names = [name for names in FILES.values() for name in names]
    if not any(name in there for name in names):
        return False
    if missing := [name for name in names if name not in there]:
        raise SourceFault(f"{', '.join(missing)} not found, neither without a suffix nor as .npz")
    counts = dict.fromkeys(FILES, 0)
    with zipfile.ZipFile(file, "w", allowZip64=True) as packed:
        for side, of_side in FILES.items():
            for name in of_side:
                log.info("checking and packing %s", there[name])
                pixels, labels = batch_of(there[name])
                counts[side] += len(labels)
                for what, array in (("data", pixels), ("labels", labels.astype("<i2"))):
                    with packed.open(zipfile.ZipInfo(f"{name}/{what}"), "w", force_zip64=True) as member:
                        member.write(np.ascontiguousarray(array).data)
    if counts != EXAMPLES:
        raise SourceFault(f"expected are {EXAMPLES} images, found are {counts}")
    return True


def _inside(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and of the folders in it."""
    for path in sorted(folder.iterdir()):
        yield from sorted(path.iterdir()) if path.is_dir() else [path]


def batch_of(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of pixels of a file, and its labels from 0; SourceFault says what is wrong with it."""
    try:
        with open(file, "rb") as content:
            batch = np.load(content, allow_pickle=False) if file.suffix == ".npz" else pickles.read(content)
            pixels, labels = np.asarray(batch["data"]), np.asarray(batch["labels"])
    except (pickle.UnpicklingError, zipfile.BadZipFile, KeyError, TypeError, IndexError, ValueError) as error:
        raise SourceFault(f"{file.name}: {error}") from error
    if pixels.dtype != np.uint8 or pixels.shape != (labels.size, PIXELS) or labels.ndim != 1:
        found = f"{pixels.dtype} {list(pixels.shape)} and {list(labels.shape)}"
        raise SourceFault(f"{file.name}: expected are rows of {PIXELS} bytes in data and a label each in labels, found {found}")
    if labels.size and (labels.min() < 1 or labels.max() > CLASSES):
        raise SourceFault(f"{file.name}: labels must be from 1 to {CLASSES}, found {labels.min()} to {labels.max()}")
    return pixels, labels.astype(np.int64) - 1
