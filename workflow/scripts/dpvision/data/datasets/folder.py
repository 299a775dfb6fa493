"""Anybody's pictures: a folder with a folder a class, or with such folders below train/ and test/.

Its raw file is all pictures packed into one: the same pictures give the same bytes, whose MD5 the entry in
config/datasets.yaml says. `python -m dpvision try` writes that entry.
"""

import hashlib
import logging
import os
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from PIL import Image

from dpvision.data import SourceFault
from dpvision.data.datasets import Content
from dpvision.data.pictures import in_words
from dpvision.data.prepared import split
from dpvision.errors import UserError

log = logging.getLogger(__name__)

PACKED = "pictures.zip"
UNDERSTOOD = "the folder of pictures, as it was when `python -m dpvision try` looked at it,"
SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
SPLITS = ("train", "test")
SEED = 0  # of the split where the folder has none


@dataclass
class Found:
    """The contents of a folder of pictures."""

    pictures: list[str] = field(default_factory=list)
    """Paths, sorted; the last folder of each is its class."""
    strange: list[str] = field(default_factory=list)
    """What is no picture by its name, or lies where none belongs."""
    empty: list[str] = field(default_factory=list)
    """Classes without a picture."""

    @property
    def is_split(self) -> bool:
        return all(path.partition("/")[0] in SPLITS for path in self.pictures)

    @property
    def classes(self) -> list[str]:
        return sorted({path.split("/")[-2] for path in self.pictures})


def look(folder: Path) -> Found:
    """List a folder of pictures; nothing is read of them yet."""
    tops = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    depth = 2 if tops == sorted(SPLITS) else 1
    found = Found()
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = Path(place).relative_to(folder)
        inside = [name for name in sorted(names) if not name.startswith(".")]
        pictures = [name for name in inside if name.lower().endswith(SUFFIXES)]
        at = len(here.parts)
        right = pictures if at == depth else []
        found.pictures += [(here / name).as_posix() for name in right]
        found.strange += [(here / name).as_posix() for name in inside if name not in right]
        if at == depth and not right:
            found.empty.append(here.as_posix())
    found.pictures.sort()
    return found


def check(found: Found, folder: Path) -> None:
    """Refuse a folder that is no data set, and say why."""
    expected = "expected are pictures in a folder for each class, or such folders below two folders, train/ and test/"
    elsewhere = [path for path in found.strange if path.lower().endswith(SUFFIXES)]
    if elsewhere and not found.pictures:
        places = in_words(sorted({path.rpartition("/")[0] or "." for path in elsewhere}))
        raise UserError(
            f"{folder}: {len(elsewhere)} pictures, none of them where one is expected; they lie in {places}; {expected}"
        )
    if not found.pictures:
        raise UserError(f"{folder}: there is no picture in it ({', '.join(SUFFIXES)}); {expected}")
    if len(found.classes) < 2:
        raise UserError(f"{folder}: there is one class, {found.classes[0]}, and nothing to tell it from; {expected}")
    if elsewhere:
        raise UserError(f"{folder}: pictures that lie in no folder of a class, or below one: {in_words(elsewhere)}; {expected}")
    if found.is_split:
        sides = {side: {p.split("/")[1] for p in found.pictures if p.startswith(f"{side}/")} for side in SPLITS}
        if lacking := sides["test"] - sides["train"]:
            raise UserError(f"{folder}: classes that test/ has and train/ has not: {in_words(lacking)}")


def pack_folder(folder: Path, file: IO[bytes]) -> Found:
    """Write all pictures into one file, and look at each; one that cannot be read is an error that names it."""
    found = look(folder)
    check(found, folder)
    broken = []
    with zipfile.ZipFile(file, "w") as packed:  # the same pictures are the same bytes: sorted, without dates
        for path in found.pictures:
            content = (folder / path).read_bytes()
            try:
                with Image.open(BytesIO(content)) as picture:
                    picture.load()
            except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
                broken.append(path)
                continue
            entry = zipfile.ZipInfo(path)
            entry.create_system = 3
            packed.writestr(entry, content)
    if broken:
        raise UserError(f"{folder}: these cannot be read as pictures: {in_words(broken)}; mend them or take them away")
    return found


def understand(thing: Path) -> Iterator[Content]:
    """Yield the packed pictures of a folder, or of a file that was packed before."""
    if thing.is_file() and thing.suffix == ".zip":
        with open(thing, "rb") as content:
            yield PACKED, content
    elif thing.is_dir() and any(entry.is_dir() for entry in thing.iterdir()):
        with tempfile.TemporaryFile() as packed:
            try:
                pack_folder(thing, packed)
            except UserError as error:
                raise SourceFault(str(error)) from error
            packed.seek(0)
            yield PACKED, packed


@dataclass(frozen=True)
class Folder:
    """The pictures of a folder, decoded while they are written; as `datasets.Arrays` in all else."""

    file: Path
    shape: list[int]
    test: int

    @cached_property
    def _paths(self) -> dict[str, list[str]]:
        """Return the paths of each split, in the order of its examples."""
        with zipfile.ZipFile(self.file) as packed:
            paths = sorted(packed.namelist())
        if all(path.partition("/")[0] in SPLITS for path in paths):
            return {side: [path for path in paths if path.startswith(f"{side}/")] for side in SPLITS}
        train, test = split(len(paths), self.test, SEED)
        return {"train": [paths[i] for i in train], "test": [paths[i] for i in test]}

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
        found: dict[str, list[list[str]]] = {"train": [], "test": [], "across": []}
        for paths in (paths for paths in same.values() if len(paths) > 1):
            sides = Counter(side_of[path] for path in paths)
            found["across" if len(sides) > 1 else next(iter(sides))].append(paths)
        for where, groups in found.items():
            for paths in groups:
                log.warning("the same picture, %s: %s", "in both splits" if where == "across" else where, ", ".join(paths))
        return {where: groups for where, groups in found.items() if groups}

    def save(self, name: str, file: Path) -> None:
        side, what = name.split("_")
        if what == "labels":
            np.save(file, self._labels(side))
            return
        paths = self._paths[side]
        images = np.lib.format.open_memmap(file, mode="w+", dtype=np.uint8, shape=(len(paths), *self.shape))
        with zipfile.ZipFile(self.file) as packed:
            for place, path in enumerate(paths):
                with Image.open(BytesIO(packed.read(path))) as picture:
                    images[place] = _fitted(picture, self.shape)
        images.flush()


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
    return Folder(raw / PACKED, spec["shape"], spec["test"])
