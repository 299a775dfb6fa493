"""Picture files that are decoded when they are asked for: data that fits no memory.

An index has a line for each picture: where it lies, and the SHA-256 that it had when it was looked at. Decoding is
deterministic: which pictures are asked for, and what becomes of them, is decided by whoever asks.
"""

import hashlib
import os
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dpvision.errors import UserError

PICTURES = "pictures"  # folder of the files, or a link to it
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, struct.error, Image.DecompressionBombError)
"""Errors that Pillow raises of files that are broken, or no pictures."""
AHEAD = 1  # pieces that are decoded beyond the one in use: memory holds so many and no more


def link(place: Path, to: Path) -> None:
    """Let a place lead to a folder, whatever it led to before."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(to, target_is_directory=True)


def entry(longest: int) -> np.dtype:
    """Return the type of a line of the index, with room for the longest path."""
    return np.dtype([("path", f"S{longest}"), ("bytes", np.int64), ("sha256", np.uint8, 32)])


def sha256(content: bytes) -> np.ndarray:
    return np.frombuffer(hashlib.sha256(content).digest(), np.uint8)


def decoded(content: bytes, shape: tuple[int, int, int]) -> np.ndarray:
    """Return the square in the middle of a picture, resized: channels x height x width.

    So do De et al.'s code: the largest square, bicubic. Here Pillow's bicubic filter smooths what it makes smaller.
    """
    channels, height, width = shape
    with Image.open(BytesIO(content)) as picture:
        colours = picture.convert("RGB" if channels == 3 else "L")
    side = min(colours.size)
    left, top = (colours.width - side) // 2, (colours.height - side) // 2
    square = colours.crop((left, top, left + side, top + side))  # and not resize's own box, whose edges see what lies beside
    resized = square.resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(resized).reshape(height, width, channels).transpose(2, 0, 1)


@dataclass(frozen=True)
class Files:
    """The pictures of a split, in place of an array of them."""

    root: Path
    index: np.ndarray
    image: tuple[int, int, int]
    """Channels, height, width of what they become."""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.index), *self.image)

    def batches(self, pieces: Iterable[np.ndarray], margin: int, threads: int) -> Iterator[np.ndarray]:
        """Yield the pictures of each piece, higher and wider by a margin; the next piece is decoded meanwhile.

        Threads are enough: Pillow decodes and resizes without Python's lock. They end with the process, however it ends.
        """
        shape = (self.image[0], self.image[1] + margin, self.image[2] + margin)
        waiting: deque[tuple[np.ndarray, list[Future[None]]]] = deque()
        pool = ThreadPoolExecutor(threads)
        try:
            for piece in pieces:
                images = np.empty((len(piece), *shape), np.uint8)
                waiting.append((images, [pool.submit(self._decode, n, images[i]) for i, n in enumerate(piece.tolist())]))
                if len(waiting) > AHEAD:
                    yield _finished(*waiting.popleft())
            while waiting:
                yield _finished(*waiting.popleft())
        finally:
            pool.shutdown(cancel_futures=True)  # where nobody wants the rest: after an error, or a signal

    def _decode(self, number: int, into: np.ndarray) -> None:
        line = self.index[number]
        path = self.root / os.fsdecode(bytes(line["path"]))
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error.strerror}): {_mended(self.root)}") from error
        if not np.array_equal(sha256(content), line["sha256"]):
            now = f"it had {line['bytes']} bytes, now {len(content)}, or others"
            raise UserError(f"{path} is not the picture that was there when all were looked at ({now}): {_mended(self.root)}")
        into[:] = decoded(content, into.shape)


def _finished(images: np.ndarray, under_way: list[Future[None]]) -> np.ndarray:
    for picture in under_way:
        picture.result()
    return images


def _mended(root: Path) -> str:
    raw = os.path.normpath(root.parent / os.readlink(root))
    return (
        f"bring it back, and the same command goes on. If all pictures were moved, lead {raw} to them, a link; if they are "
        f"to be others, delete the folder {root.parent} so that all are looked at again"
    )


def read(images: Any, pieces: Iterable[np.ndarray], margin: int = 0, threads: int = 1) -> Iterator[np.ndarray]:
    """Yield what each piece has of a data set's images, or features, whether they are mapped or in files."""
    if isinstance(images, Files):
        yield from images.batches(pieces, margin, threads)
    else:
        yield from (images[piece] for piece in pieces)
