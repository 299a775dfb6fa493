"""The state of an unfinished training on disk, so that a killed run goes on to the same bits."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from dpvision.errors import UserError
from dpvision.files import replacing
from dpvision.locks import held

SHARE = 0.02  # of the time that goes into writing checkpoints
LEAST_SECONDS = 1.0


class Checkpoint:
    """One file, replaced whole. It lies outside the outputs that Snakemake deletes before a rerun."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "state.pt"
        self._written = time.monotonic()
        self._cost = 0.0

    @contextmanager
    def owned(self) -> Iterator[None]:
        """By one process at a time: two that wrote into one run would spoil it."""
        path = self.folder / "owner.json"
        try:
            with held(path, wait=False) as file:
                file.truncate(0)
                file.write(json.dumps({"process": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}))
                file.flush()
                yield
        except BlockingIOError:
            raise UserError(f"another process is at this run already: {path.read_text()} ({path})") from None

    def load(self, spec_digest: str) -> dict[str, Any] | None:
        if not self.file.exists():
            return None
        state = torch.load(self.file, map_location="cpu", weights_only=True)
        if state["spec_digest"] != spec_digest:
            raise UserError(f"{self.file} belongs to another spec ({state['spec_digest']}); delete it to start anew")
        return state

    def due(self) -> bool:
        return time.monotonic() - self._written > max(LEAST_SECONDS, self._cost / SHARE)

    def save(self, state: dict[str, Any]) -> None:
        begun = time.monotonic()
        with replacing(self.file) as beside:
            torch.save(state, beside)
        self._written = time.monotonic()
        self._cost = self._written - begun

    def remove(self) -> None:
        """After the record is whole; the lock file goes with the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
