"""Anybody's pictures: a folder with a folder for each class, or with such folders below train/ and test/.

Its raw file is all pictures packed into one: the same pictures give the same bytes, whose MD5 the data set's entry says.
`python -m dpvision try` writes that entry.
"""

import hashlib
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dpvision.data import SourceFault
from dpvision.data.datasets import Content
from dpvision.data.picture_folders import (
    SPLITS,
    FolderContents,
    TooLarge,
    check_layout,
    list_folder,
    open_picture,
    pack_pictures,
)
from dpvision.data.prepared import split
from dpvision.errors import UserError

PACKED = "pictures.zip"
UNDERSTOOD = "the folder of pictures, as it was when `python -m dpvision try` looked at it,"
SEED = 0  # of the split where the folder has none
TEST_SHARE = 5
"""Where the folder has no test/, one picture out of so many is held back to test with."""


def understand(thing: Path) -> Iterator[Content]:
    """Yield the packed pictures of a folder, without and with what its links lead to, or of a file that was packed before."""
    if thing.is_file() and thing.suffix == ".zip":
        with open(thing, "rb") as content:
            yield PACKED, content
    elif thing.is_dir() and any(entry.is_dir() for entry in thing.iterdir()):
        readings = [list_folder(thing, follow_links) for follow_links in (False, True)]
        usable = [contents for contents in readings if _is_data_set(contents, thing)]
        if not usable:  # the words of its fault name pictures, and a log may not
            raise SourceFault("it is no data set now: `python -m dpvision try` with this folder says why")
        for contents in usable if readings[0].links else usable[:1]:
            with tempfile.TemporaryFile() as packed:
                pack_pictures(contents, thing, packed)
                packed.seek(0)
                yield PACKED, packed


def _is_data_set(contents: FolderContents, folder: Path) -> bool:
    try:
        check_layout(contents, folder)
    except UserError:
        return False
    return all((folder / path).is_file() for path in contents.pictures)


def test_count(count: int) -> int:
    """Return how many pictures of a class are held back to test with, where a folder has no test/."""
    return max(1, count // TEST_SHARE) if count > 1 else 0


@dataclass(frozen=True)
class Folder:
    """The pictures of a folder, decoded while they are written; as `datasets.Arrays` in all else."""

    file: Path
    shape: list[int]
    test: int
    test_by_class: bool = False
    """Whether the test examples are drawn class by class, where the folder has no test/."""

    @cached_property
    def _paths(self) -> dict[str, list[str]]:
        """Return the paths of each split, in the order of its examples."""
        with zipfile.ZipFile(self.file) as packed:
            paths = sorted(packed.namelist())
        if all(path.partition("/")[0] in SPLITS for path in paths):
            return {side: [path for path in paths if path.startswith(f"{side}/")] for side in SPLITS}
        if not self.test_by_class:
            train, test = split(len(paths), self.test, SEED)
            return {"train": [paths[i] for i in train], "test": [paths[i] for i in test]}
        test_paths = set(_drawn_by_class(paths))
        return {"train": [path for path in paths if path not in test_paths], "test": sorted(test_paths)}

    @property
    def class_names(self) -> list[str]:
        return sorted({path.split("/")[-2] for paths in self._paths.values() for path in paths})

    def _labels(self, side: str) -> np.ndarray:
        places = {name: place for place, name in enumerate(self.class_names)}
        return np.array([places[path.split("/")[-2]] for path in self._paths[side]], np.int64)

    @property
    def train_labels(self) -> np.ndarray:
        return self._labels("train")

    @property
    def test_labels(self) -> np.ndarray:
        return self._labels("test")

    @cached_property
    def duplicates(self) -> dict[str, list[list[str]]]:
        """Return groups of pictures with the same bytes: within the training examples, within the test's, across the two."""
        same: dict[str, list[str]] = defaultdict(list)
        side_of = {path: side for side, paths in self._paths.items() for path in paths}
        with zipfile.ZipFile(self.file) as packed:
            for path in sorted(side_of):
                same[hashlib.sha256(packed.read(path)).hexdigest()].append(path)
        groups: dict[str, list[list[str]]] = {"train": [], "test": [], "across": []}
        for paths in (paths for paths in same.values() if len(paths) > 1):
            sides = Counter(side_of[path] for path in paths)
            groups["across" if len(sides) > 1 else next(iter(sides))].append(paths)
        return {where: paths for where, paths in groups.items() if paths}

    def save(self, name: str, file: Path) -> None:
        side, what = name.split("_")
        if what == "labels":
            np.save(file, self._labels(side))
            return
        paths = self._paths[side]
        images = np.lib.format.open_memmap(file, mode="w+", dtype=np.uint8, shape=(len(paths), *self.shape))
        with zipfile.ZipFile(self.file) as packed:
            for place, path in enumerate(paths):
                try:
                    with open_picture(BytesIO(packed.read(path))) as picture:
                        images[place] = _fitted(picture, self.shape)
                except TooLarge as error:
                    raise UserError(f"picture {place + 1} of {side} in {PACKED} ({error})") from None
        images.flush()


def _drawn_by_class(paths: list[str]) -> Iterator[str]:
    """Yield the pictures of each class that are held back to test with."""
    by_class: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        by_class[path.split("/")[-2]].append(path)
    for place, name in enumerate(sorted(by_class)):
        _, test = split(len(by_class[name]), test_count(len(by_class[name])), SEED + place)
        yield from (by_class[name][i] for i in test)


def _fitted(picture: Image.Image, shape: list[int]) -> np.ndarray:
    """Return a picture with its shorter side resized and its middle cut out: channels x height x width."""
    height, width = shape[1:]
    colours = picture.convert("RGB" if shape[0] == 3 else "L")
    scale = max(height / colours.height, width / colours.width)
    size = (max(width, round(colours.width * scale)), max(height, round(colours.height * scale)))
    resized = colours.resize(size, Image.Resampling.BILINEAR)
    left, top = (resized.width - width) // 2, (resized.height - height) // 2
    pixels = np.asarray(resized.crop((left, top, left + width, top + height)))
    return np.ascontiguousarray(pixels.reshape(height, width, shape[0]).transpose(2, 0, 1))


def read_as(spec: dict[str, Any], raw: Path) -> Folder:
    """Return the pictures as a spec asks for them."""
    return Folder(raw / PACKED, spec["shape"], spec["test"], spec.get("test_by_class", False))
