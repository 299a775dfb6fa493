"""A user's folder of pictures: what lies in it, what cannot be read and why, and all of it packed into one file."""

import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from PIL import Image, UnidentifiedImageError

from dpvision.data.pictures import in_words
from dpvision.errors import UserError

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
SUFFIXES_NOT_READ = (".arw", ".avif", ".cr2", ".cr3", ".dcm", ".dng", ".heic", ".heif", ".jp2", ".jxl", ".nef", ".psd", ".svg")
"""Endings of pictures of kinds that are not read."""
MOST_PIXELS = 80_000_000
"""Pixels that a picture may have. A file of 20 kB can hold more than memory does."""
SPLITS = ("train", "test")
EXPECTED = "expected are pictures in a folder for each class, or such folders below two folders, train/ and test/"


@dataclass
class FolderContents:
    """The paths in a folder of pictures, relative to it and sorted."""

    pictures: list[str] = field(default_factory=list)
    """Pictures by their names; the last folder of each is its class."""
    misplaced: list[str] = field(default_factory=list)
    """Pictures by their names that lie above or below the folders of classes."""
    not_read: list[str] = field(default_factory=list)
    """Pictures of kinds that are not read."""
    others: list[str] = field(default_factory=list)
    """Files that are no pictures by their names."""
    links: list[str] = field(default_factory=list)
    """Links that were not followed: to folders, and to what lies outside."""
    empty: list[str] = field(default_factory=list)
    """Classes without a picture."""
    depth: int = 1
    """How many folders deep the classes lie: 2 below train/ and test/."""

    @property
    def is_split(self) -> bool:
        return self.depth == 2

    @property
    def classes(self) -> list[str]:
        return sorted({path.split("/")[-2] for path in self.pictures})


def list_folder(folder: Path, follow_links: bool = False) -> FolderContents:
    """List a folder of pictures; nothing is read of them yet.

    Args:
        folder: Folder with a folder for each class, or with train/ and test/ that have such.
        follow_links: Whether links that lead out of the folder are followed, and links to folders.

    Returns:
        What lies in it. Hidden files and folders are left out.
    """
    tops = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    contents = FolderContents(depth=2 if tops == sorted(SPLITS) else 1)
    for place, folders, names in os.walk(folder, followlinks=follow_links, onerror=_refuse_folder):
        here = Path(place).relative_to(folder)
        level = len(here.parts)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if not follow_links:
            contents.links += [(here / name).as_posix() for name in folders if (folder / here / name).is_symlink()]
        elif level > contents.depth + 2:
            folders.clear()  # a link may lead to a folder around it
        visible = [(here / name).as_posix() for name in sorted(names) if not name.startswith(".")]
        inside = [path for path in visible if follow_links or not _leads_out(folder / path, folder)]
        contents.links += [path for path in visible if path not in inside]
        pictures = _sort_in(inside, level == contents.depth, contents)
        if level == contents.depth and not pictures:
            contents.empty.append(here.as_posix())
    contents.pictures.sort()
    return contents


def _refuse_folder(error: OSError) -> None:
    """Raise for a folder that cannot be listed: a class would be missing without a word."""
    raise UserError(f"{error.filename}: this folder cannot be read: {error.strerror}") from error


def _sort_in(paths: list[str], is_class: bool, contents: FolderContents) -> list[str]:
    """Sort a folder's files by what they are called; return the pictures, if it is a class."""
    pictures = [path for path in paths if path.lower().endswith(SUFFIXES)]
    not_read = [path for path in paths if path.lower().endswith(SUFFIXES_NOT_READ)]
    contents.not_read += not_read
    contents.others += [path for path in paths if path not in pictures and path not in not_read]
    if is_class:
        contents.pictures += pictures
        return pictures
    contents.misplaced += pictures
    return []


def _leads_out(path: Path, folder: Path) -> bool:
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def check_layout(contents: FolderContents, folder: Path) -> None:
    """Refuse a folder that is no data set, and say why.

    Raises:
        UserError: No picture lies where one is expected, or one lies elsewhere; there is one class; test/ has another class.
    """
    unfollowed = f"; links that were not followed: {in_words(contents.links)} (--follow-links)" if contents.links else ""
    if contents.misplaced and not contents.pictures:
        places = in_words({path.rpartition("/")[0] or "." for path in contents.misplaced})
        count = len(contents.misplaced)
        raise UserError(f"{folder}: {count} pictures, none of them where one is expected; they lie in {places}; {EXPECTED}")
    if not contents.pictures:
        not_read = f"; of kinds that are not read: {in_words(contents.not_read)}" if contents.not_read else ""
        raise UserError(f"{folder}: there is no picture in it ({', '.join(SUFFIXES)}){not_read}{unfollowed}; {EXPECTED}")
    if len(contents.classes) < 2:
        only = contents.classes[0]
        raise UserError(f"{folder}: there is one class, {only}, and nothing to tell it from{unfollowed}; {EXPECTED}")
    if contents.misplaced:
        shown = [_remedy(path, contents.depth) for path in contents.misplaced[:5]]
        more = [f"and {len(contents.misplaced) - 5} more"] if len(contents.misplaced) > 5 else []
        raise UserError("\n".join([f"{folder}:", *shown, *more, EXPECTED]))
    if contents.is_split:
        classes = {side: {p.split("/")[1] for p in contents.pictures if p.startswith(f"{side}/")} for side in SPLITS}
        if lacking := classes["test"] - classes["train"]:
            raise UserError(f"{folder}: classes that test/ has and train/ has not: {in_words(lacking)}")


def _remedy(path: str, depth: int) -> str:
    """Say where a picture should lie."""
    folders = path.split("/")[:-1]
    if len(folders) > depth:
        return f"  {path} lies too deep: put it into {'/'.join(folders[:depth])}/"
    return f"  {path} lies in no class: put it into the folder of its class"


def unreadable_pictures(contents: FolderContents, folder: Path) -> dict[str, str]:
    """Open each picture of a folder; return those that cannot be read, and why."""
    faults = {path: fault_of(folder / path) for path in contents.pictures}
    return {path: fault for path, fault in faults.items() if fault}


def fault_of(path: Path) -> str:
    """Return why a file cannot be read as a picture; empty if it can."""
    if not path.is_file():  # a pipe would be waited for
        return "no file"
    try:
        with open_picture(path) as picture:
            picture.load()
    except TooLarge as error:
        return str(error)
    except UnidentifiedImageError:
        return "no picture"
    except PermissionError:
        return "no permission"
    except (OSError, SyntaxError, ValueError) as error:
        return "cut off" if "truncated" in str(error) else "damaged"
    return ""


class TooLarge(Exception):
    """An error: a picture has more than MOST_PIXELS pixels."""


@contextmanager
def open_picture(file: Path | IO[bytes]) -> Iterator[Image.Image]:
    """Open a picture; TooLarge says its size where that is more than is read. Nothing of it is decoded before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # its error would not say the size
        try:
            picture = Image.open(file)
        finally:
            Image.MAX_IMAGE_PIXELS = limit
    with picture:
        if picture.width * picture.height > MOST_PIXELS:
            size = f"{picture.width} x {picture.height}"
            raise TooLarge(f"{size}: too large; at most {MOST_PIXELS // 1_000_000} million pixels are read")
        yield picture


def pack_pictures(contents: FolderContents, folder: Path, file: IO[bytes]) -> None:
    """Write all pictures into one file: the same pictures are the same bytes, sorted and without dates."""
    with zipfile.ZipFile(file, "w") as packed:
        for path in contents.pictures:
            entry = zipfile.ZipInfo(path)
            entry.create_system = 3
            packed.writestr(entry, (folder / path).read_bytes())
