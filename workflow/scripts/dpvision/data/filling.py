"""Arrays that take long to fill: piece after piece, so that a killed job goes on where it was.

Snakemake deletes the files of a job that did not end: so an array lies beside, under a name that it does not know, with a
note of how far it is. Both stay until `forget`, when all that they are for is whole.
"""

import logging
import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from dpvision.files import read_json, write_json
from dpvision.logs import Progress

log = logging.getLogger(__name__)

EVERY = 10_000  # examples from one line of the log to the next


class Filling:
    """An array in a folder, filled from its first entry on; what was filled for the same `whose` is kept."""

    def __init__(self, folder: Path, name: str, whose: dict[str, Any], shape: tuple[int, ...], dtype: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name, self.whose = name, whose
        self.part, self.note = folder / f".{name}.npy", folder / f".{name}.json"
        said = read_json(self.note) if self.note.exists() and self.part.exists() else {}
        self.done: int = said.pop("done", 0) if said.items() >= whose.items() else 0
        self.array = np.lib.format.open_memmap(self.part, mode="r+" if self.done else "w+", dtype=dtype, shape=shape)

    def fill(self, pieces: Iterable[np.ndarray], title: str) -> None:
        """Put the pieces behind what is done, each with a note of it."""
        total = len(self.array)
        if self.done:
            log.info("%s: goes on behind %d of %d examples", self.name, self.done, total)
        with closing(Progress(f"{title} {self.name}", total)) as progress:
            for piece in pieces:
                start, self.done = self.done, self.done + len(piece)
                self.array[start : self.done] = piece
                self.array.flush()
                write_json(self.note, self.whose | {"done": self.done})
                progress.step(self.done, lambda: "examples")
                if self.done // EVERY > start // EVERY or self.done == total:
                    log.info("%s: %d of %d examples", self.name, self.done, total)

    def save(self, file: Path) -> None:
        self.array.flush()
        shutil.copyfile(self.part, file)

    def forget(self) -> None:
        self.note.unlink()
        self.part.unlink()
