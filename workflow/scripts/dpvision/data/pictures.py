"""Data sets that are published as an archive of picture files.

They are read from the archive as it is, one picture after another: neither 100,000 files on the disk nor 100,000
images in memory. An archive that somebody unpacked will do, too. No published digest proves its files, so it is
checked by what is known of them, and packed into one raw file of its own (datasets.UNPACKED).
"""

import io
import logging
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from dpvision import logs
from dpvision.data import SourceFault
from dpvision.data.datasets import UNPACKED
from dpvision.data.streamed import UNREADABLE
from dpvision.errors import UserError

log = logging.getLogger(__name__)

SUFFIX = ".JPEG"
LINES = 10  # that the log is given of a long reading
Read = Callable[[], bytes]


@dataclass(frozen=True)
class Listing:
    """The pictures of a data set: their paths, in the order of its examples, and the label of each."""

    train: dict[str, int]
    test: dict[str, int]
    class_names: list[str]


@dataclass(frozen=True)
class Archive:
    """An archive of pictures: how they are published, and what they become."""

    name: str
    """Name of the archive; its folder has the same, without the suffix."""
    texts: tuple[str, ...]
    """Members that say what the pictures are."""
    listing: Callable[[list[str], dict[str, bytes]], Listing]
    """Function from the paths of all pictures, sorted, and the texts; SourceFault names what is missing or one too many."""
    decode: Callable[[Image.Image], Image.Image]
    """Function from a published picture to one in RGB and the data set's size; SourceFault where it cannot be one of these."""
    shape: tuple[int, int, int]

    @property
    def folder(self) -> str:
        return self.name.partition(".")[0]

    def read(self, raw: Path) -> "Pictures":
        thing = raw / self.name if (raw / self.name).exists() else raw / UNPACKED
        try:
            return Pictures(self._list(thing), self, thing)
        except SourceFault as fault:
            raise UserError(f"{thing}: {fault}. The MD5 in config/datasets.yaml is that of another archive.") from fault

    def pack(self, folder: Path, file: Path) -> bool:
        """Pack what was unpacked, in `folder` or one in it, after all checks that there are; return False if none is there."""
        tree = folder / self.folder if (folder / self.folder).is_dir() else folder
        if not (tree / "train").is_dir():
            return False
        listing = self._list(tree)
        needed = {*listing.train, *listing.test, *self.texts}
        progress = _Progress(f"checking and packing {tree}", len(needed))
        with zipfile.ZipFile(file, "w") as packed:  # the same files are the same bytes: sorted, without dates
            for path, read in members(tree):
                if path in needed:
                    content = read()
                    if path.endswith(SUFFIX):
                        self.image(path, content)
                    packed.writestr(zipfile.ZipInfo(path), content)
                    progress.step()
        progress.close()
        return True

    def image(self, path: str, content: bytes) -> np.ndarray:
        """Decode a picture into channels x height x width."""
        try:
            with Image.open(io.BytesIO(content)) as picture:
                pixels = np.asarray(self.decode(picture))
        except (*UNREADABLE, SourceFault) as fault:
            raise SourceFault(f"{path}: {fault}") from fault
        return np.ascontiguousarray(pixels.transpose(2, 0, 1))

    def _list(self, thing: Path) -> Listing:
        paths: list[str] = []
        texts: dict[str, bytes] = {}
        for path, read in members(thing):
            relative = path.removeprefix(f"{self.folder}/")
            if relative in self.texts:
                texts[relative] = read()
            elif path.endswith(SUFFIX) and not PurePosixPath(path).name.startswith("."):  # what some systems leave beside
                paths.append(relative)
        if absent := [text for text in self.texts if text not in texts]:
            raise SourceFault(f"{', '.join(absent)} not found")
        return self.listing(sorted(paths), texts)


@dataclass(frozen=True)
class Listed:
    """A data set whose pictures are listed."""

    listing: Listing

    @property
    def class_names(self) -> list[str]:
        return self.listing.class_names

    @property
    def train_labels(self) -> np.ndarray:
        return np.fromiter(self.listing.train.values(), np.int64)

    @property
    def test_labels(self) -> np.ndarray:
        return np.fromiter(self.listing.test.values(), np.int64)


@dataclass(frozen=True)
class Pictures(Listed):
    """A data set like `datasets.Arrays`, with images that are decoded while they are written."""

    archive: Archive
    thing: Path

    @property
    def shape(self) -> list[int]:
        return list(self.archive.shape)

    def save(self, name: str, file: Path) -> None:
        if name.endswith("_labels"):
            np.save(file, getattr(self, name))
        else:
            self._save_images(getattr(self.listing, name.removesuffix("_images")), f"{self.archive.folder} {name}", file)

    def _save_images(self, paths: Iterable[str], title: str, file: Path) -> None:
        """Write each image at its place, whatever the archive's order; not by a map, so that a full disk is an error."""
        places = {path: place for place, path in enumerate(paths)}
        shape = (len(places), *self.archive.shape)
        start = np.lib.format.open_memmap(file, mode="w+", dtype=np.uint8, shape=shape).offset
        progress = _Progress(title, len(places))
        with open(file, "r+b") as array:
            for path, read in members(self.thing):
                relative = path.removeprefix(f"{self.archive.folder}/")
                if relative in places:
                    image = self.archive.image(relative, read())
                    array.seek(start + places[relative] * image.nbytes)
                    array.write(image.data)
                    progress.step()
        progress.close()


def members(thing: Path) -> Iterator[tuple[str, Read]]:
    """Yield the files in a folder, a zip or a tar archive: the path of each, and what reads it as long as it is the last."""
    if thing.is_dir():
        for folder, folders, names in os.walk(thing, followlinks=True):
            folders.sort()
            for path in (Path(folder, name) for name in sorted(names)):
                if path.is_file():  # a pipe would be waited for
                    yield path.relative_to(thing).as_posix(), path.read_bytes
    elif thing.suffix == ".zip":
        with zipfile.ZipFile(thing) as archive:
            for name in archive.namelist():
                yield _plain(name), lambda name=name: archive.read(name)  # type: ignore[misc]
    else:
        with tarfile.open(thing) as stream:
            for member in stream:
                if member.isfile():
                    yield _plain(member.name), lambda member=member: _content(stream, member)  # type: ignore[misc]


def _content(stream: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content: Any = stream.extractfile(member)
    return content.read()


def _plain(path: str) -> str:
    """Return a path without the ./ that some archives begin with."""
    return PurePosixPath(path).as_posix()


def in_words(paths: Iterable[str]) -> str:
    """Name the first of the paths, and how many more."""
    first, *others = sorted(paths)
    shown = ", ".join([first, *others[:4]])
    return f"{shown} and {len(others) - 4} more" if len(others) > 4 else shown


class _Progress:
    """A line that is rewritten on a terminal; now and then one in the log."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.on_terminal = logs.Progress(title, total)

    def step(self) -> None:
        self.done += 1
        self.on_terminal.step(self.done, lambda: "files")
        if self.done % -(-self.total // LINES) == 0 or self.done == self.total:
            log.info("%s: %d of %d", self.title, self.done, self.total)

    def close(self) -> None:
        self.on_terminal.close()
