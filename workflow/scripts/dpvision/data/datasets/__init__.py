"""The data sets: one file each in this folder, named like its entry in config/datasets.yaml.

A file of a data set has:
- `read(raw)`: the data set, from the folder of its raw files, which have been checked: `Arrays`, or what can do the
  same without having all images in memory (`Pictures` of data/pictures.py).
- `understand(thing)`, where the raw files come in more than one form: those raw files that `thing`, a folder
  or a file that some source gave, has, each with its content. Files it does not know are passed over. It need
  not prove what it yields (the MD5s do), but must not trust what it reads. Left out, raw files are copied as they are.
- `pack(folder, file)`, where files will do that no published digest proves: checks what is in a folder of the user's by
  all that is known, and packs it into a file, the raw file UNPACKED; False where it is not there.
- `listed(raw)` alone, where the entry says `streamed`: the `Listing` of the picture files below PICTURES of
  data/streamed.py, a folder of the user's or one that it makes; SourceFault names what is missing.
- `UNDERSTOOD`, with any: what of the user's own files will do; a piece of a sentence.
"""

import importlib
import pkgutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from dpvision.data import SourceFault
from dpvision.errors import UserError

if TYPE_CHECKING:
    from dpvision.data.pictures import Pictures
    from dpvision.data.tree import Tree

Content = tuple[str, IO[bytes]]

UNPACKED = "unpacked.zip"
"""Raw file that stands for all others where the user's own are unpacked; files.json has its SHA-256."""


@dataclass(frozen=True)
class Arrays:
    """A data set: images uint8, examples x channels x height x width, C-contiguous; labels int64."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    class_names: list[str]

    @property
    def shape(self) -> list[int]:
        return list(self.train_images.shape[1:])

    def save(self, name: str, file: Path) -> None:
        """Save one of the arrays as an .npy file."""
        np.save(file, getattr(self, name))


def read(spec: dict[str, Any], raw: Path) -> "Arrays | Pictures | Tree":
    """Return a data set by its spec; a file that serves many has `read_as(spec, raw)` in the place of `read(raw)`."""
    reader = module(spec.get("reader", spec["name"]))
    if spec.get("streamed"):
        return _tree(spec, reader, raw)
    contents: Arrays | Pictures = reader.read_as(spec, raw) if hasattr(reader, "read_as") else reader.read(raw)
    return contents


def _tree(spec: dict[str, Any], reader: ModuleType, raw: Path) -> "Tree":
    from dpvision.data.streamed import PICTURES  # Pillow is for data sets of pictures alone
    from dpvision.data.tree import Tree

    try:
        return Tree(reader.listed(raw), raw / PICTURES, spec["shape"])
    except SourceFault as fault:
        expected = understood(spec.get("reader", spec["name"]), list(spec["files"]))
        raise UserError(f"{spec['name']}: {raw / PICTURES}: {fault}; expected: {expected} in the folder it leads to") from fault


def understand(name: str, thing: Path) -> Iterator[Content]:
    contents: Iterator[Content] = getattr(module(name), "understand", files_of)(thing)
    return contents


def pack(name: str, folder: Path, file: Path) -> bool:
    done: bool = getattr(module(name), "pack", lambda *_: False)(folder, file)
    return done


def understood(name: str, raw_files: list[str]) -> str:
    text: str = getattr(module(name), "UNDERSTOOD", ", ".join(raw_files))
    return text


def module(name: str) -> ModuleType:
    """Import the file of a data set, and only now what that needs."""
    known = sorted(found.name for found in pkgutil.iter_modules(__path__))
    if name not in known:
        raise UserError(
            f"no data set is called '{name}'; there are: {', '.join(known)}. "
            f"A new one is a file {name}.py in dpvision/data/datasets and an entry in config/datasets.yaml."
        )
    return importlib.import_module(f"{__name__}.{name}")


def files_of(thing: Path) -> Iterator[Content]:
    """Yield a file itself, or those that lie in a folder."""
    for path in sorted(thing.iterdir()) if thing.is_dir() else [thing]:
        if path.is_file():
            with open(path, "rb") as content:
                yield path.name, content


def members_of(archive: Path) -> Iterator[Content]:
    """Yield the regular files of a tar archive by their last name: its folders and links decide nothing here."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and (content := tar.extractfile(member)):
                yield PurePosixPath(member.name).name, content
