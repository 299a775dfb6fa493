"""A data set that stays the picture files that it is: each is looked at once, and noted in an index.

What is broken is found here, in parallel, and not by a training that has gone on for days.
"""

import hashlib
import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dpvision.data import SourceFault
from dpvision.data.filling import Filling
from dpvision.data.pictures import Listed, Listing, in_words
from dpvision.data.streamed import UNREADABLE, decoded, entry, sha256
from dpvision.errors import UserError

log = logging.getLogger(__name__)

SUFFIXES = (".jpeg", ".jpg", ".png")
AT_ONCE = 1000  # pictures from one note of how far it is to the next
NAMED = 20  # broken pictures that an error names
BROKEN = -1  # in place of the bytes of a picture
SPLITS = ("train", "test")


@dataclass(frozen=True)
class Tree(Listed):
    """The pictures below a folder, as they are listed; as `datasets.Arrays` in all else, with an index in place of images."""

    root: Path
    image: list[int]
    indices: dict[str, Filling] = field(default_factory=dict)
    """The index of each split, once `look_through` is over."""

    @property
    def shape(self) -> list[int]:
        return self.image

    def look_through(self, name: str, folder: Path, threads: int) -> None:
        """Make the index of each split, in a folder, and raise if a picture is broken; a killed look goes on where it was.

        All that are broken are named together. Those alone are looked at again by the next look.
        """
        broken = []
        for split in SPLITS:
            paths = [os.fsencode(path) for path in getattr(self.listing, split)]
            whose = {"listing": hashlib.sha256(b"\0".join(paths)).hexdigest(), "shape": self.image}
            index = self.indices[split] = Filling(folder, split, whose, (len(paths),), entry(max(map(len, paths))))
            index.fill(self._looked_at(paths[index.done :], index.array.dtype, threads), name)
            for place in np.flatnonzero(index.array["bytes"] == BROKEN):
                index.array[place : place + 1] = next(self._looked_at([paths[place]], index.array.dtype, 1))
                if index.array["bytes"][place] == BROKEN:
                    broken.append(os.fsdecode(paths[place]))
        if broken:
            more = f" and {len(broken) - NAMED} more" if len(broken) > NAMED else ""
            raise UserError(
                f"{name}: {len(broken)} of {sum(len(index.array) for index in self.indices.values())} pictures cannot be read: "
                f"{', '.join(broken[:NAMED])}{more}. Put whole copies in their place; the same command looks at them alone."
            )

    def save(self, name: str, file: Path) -> None:
        split, what = name.split("_")
        if what == "labels":
            np.save(file, getattr(self, name))
        else:
            self.indices[split].save(file)

    def _looked_at(self, paths: list[bytes], dtype: np.dtype, threads: int) -> Iterator[np.ndarray]:
        with ThreadPoolExecutor(threads) as pool:
            for start in range(0, len(paths), AT_ONCE):
                some = paths[start : start + AT_ONCE]
                lines = np.zeros(len(some), dtype)
                lines["path"] = some
                for line, (size, proof) in zip(lines, pool.map(self._look, some), strict=True):
                    line["bytes"], line["sha256"] = size, proof
                yield lines

    def _look(self, path: bytes) -> tuple[int, np.ndarray]:
        file = self.root / os.fsdecode(path)
        try:
            if not file.is_file():  # a pipe would be waited for
                raise OSError("no file")
            content = file.read_bytes()
            decoded(content, tuple(self.image))  # type: ignore[arg-type]
        except UNREADABLE as error:
            log.warning("%s: %s", os.fsdecode(path), error)
            return BROKEN, np.zeros(32, np.uint8)
        return len(content), sha256(content)


def pictures_in(folder: Path) -> list[str]:
    """Return the names of a folder's pictures, sorted."""
    with os.scandir(folder) as found:
        names = [entry.name for entry in found]
    return sorted(name for name in names if name.lower().endswith(SUFFIXES) and not name.startswith("."))


def class_folders(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted: its classes."""
    if not folder.is_dir():
        raise SourceFault(f"there is no folder {folder.name}/ in it")
    with os.scandir(folder) as found:
        return sorted(entry.name for entry in found if entry.is_dir() and not entry.name.startswith("."))


def in_folders(root: Path, split: str, classes: list[str]) -> dict[str, int]:
    """Return the pictures below the folders of classes, and the label of each: its class's place."""
    if absent := [name for name in classes if not (root / split / name).is_dir()]:
        raise SourceFault(f"there is no folder {split}/ of these classes: {in_words(absent)}")
    found = ((label, f"{split}/{name}") for label, name in enumerate(classes))
    return {f"{folder}/{name}": label for label, folder in found for name in pictures_in(root / folder)}


def in_two_trees(root: Path, train: str, test: str) -> Listing:
    """Return the pictures of two folders that have a folder for each class, of the same names."""
    classes = class_folders(root / train)
    if strange := sorted(set(class_folders(root / test)) - set(classes)):
        raise SourceFault(f"{test}/ has folders of classes that {train}/ has not: {in_words(strange)}")
    return Listing(in_folders(root, train, classes), in_folders(root, test, classes), classes)
