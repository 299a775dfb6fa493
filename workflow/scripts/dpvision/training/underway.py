"""The progress of an unfinished training, for people who look: files beside its checkpoint that nothing continues from."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpvision.files import write_csv, write_json

if TYPE_CHECKING:
    from dpvision.training.fit import Training

EVERY = 5.0  # seconds at least between two writings, but for those at the end of an epoch and when it leaves


class UnderWay:
    """The files progress.json, and history.csv as the record will have it, replaced whole; they go with the checkpoint."""

    def __init__(self, folder: Path, still_ours: Callable[[], None]) -> None:
        self.folder, self.still_ours = folder, still_ours
        self.written = 0.0
        self.kept = 0
        """Step of the checkpoint; 0: there is none."""

    def due(self) -> bool:
        return time.monotonic() - self.written > EVERY

    def write(self, training: "Training", seconds_left: float | None, interrupted_by: str | None = None) -> None:
        """Show how far it is; `interrupted_by` names the signal that ended it. A full disk is the checkpoint's business."""
        self.still_ours()
        last = training.history[-1] if training.history else {}
        progress = {
            "step": training.made,
            "steps": training.planned,
            "epoch": len(training.history),
            "epochs": len(training.ends),
            "epsilon": training.epsilon,
            "simulated": training.divisor > 1,
            "validation_top1": last.get("validation_top1"),
            "test_top1": last.get("test_top1"),
            "seconds_left": seconds_left,
            "kept": self.kept,
            "told": interrupted_by,
        }
        with suppress(OSError):
            if training.history:
                write_csv(self.folder / "history.csv", training.history)
            write_json(self.folder / "progress.json", progress)
        self.written = time.monotonic()
