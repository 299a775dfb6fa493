"""The state of an unfinished training on disk, so that a killed run goes on: to the same bits, unless its noise is secret."""

import io
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dpvision.errors import UserError
from dpvision.files import replacing

SHARE = 0.02  # largest share of the time that goes into writing checkpoints
LEAST_SECONDS = 1.0


class Checkpoint:
    """A file with the whole state, replaced whole. It lies outside the outputs that Snakemake deletes before a rerun."""

    def __init__(self, folder: Path, still_ours: Callable[[], None] = lambda: None) -> None:
        """Set the file's folder; `still_ours()` runs before anything is changed and raises if the run is ours no more."""
        self.folder, self.still_ours = folder, still_ours
        self.file = folder / "state.pt"
        self._written = time.monotonic()
        self._cost = 0.0

    def load(self, spec_digest: str) -> dict[str, Any] | None:
        if not self.file.exists():
            return None
        try:
            _check(self.file)
            state: dict[str, Any] = torch.load(self.file, map_location="cpu", weights_only=True)
            found = state["spec_digest"]
        except Exception as error:  # any error of the readers
            what = "it was cut or changed, or is something else"
            raise UserError(f"{self.file} cannot be read: {what}; delete it to start the run anew") from error
        if found != spec_digest:
            raise UserError(f"{self.file} belongs to another spec ({found}, not {spec_digest}); delete it to start anew")
        return state

    def due(self) -> bool:
        return time.monotonic() - self._written > max(LEAST_SECONDS, self._cost / SHARE)

    def save(self, state: dict[str, Any]) -> None:
        begun = time.monotonic()
        with replacing(self.file, may=self.still_ours) as beside:
            written = io.BytesIO()
            torch.save(state, written)  # into a file itself it would not say that the disk is full
            beside.write_bytes(written.getbuffer())
        self._written = time.monotonic()
        self._cost = self._written - begun

    def remove(self) -> None:
        """Delete the checkpoint, once the record is whole."""
        self.still_ours()
        shutil.rmtree(self.folder, ignore_errors=True)


def _check(file: Path) -> None:
    """Raise unless every part has the checksum it was written with: torch reads a flipped bit as another number."""
    with zipfile.ZipFile(file) as parts:
        if broken := parts.testzip():
            raise ValueError(f"{broken} is broken")
