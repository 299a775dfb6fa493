"""The files of records that a page is made of, by what they are and by folder, each read once."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpvision.files import read_json


class Records:
    """The files of runs, searches and analyses that there are."""

    def __init__(self, inputs: dict[str, list[str]]) -> None:
        self.files = {(Path(file).name, Path(file).parent.name): Path(file) for files in inputs.values() for file in files}
        self.read: dict[Path, Any] = {}

    def json(self, name: str, folder: str) -> Any:
        return self._cached(name, folder, read_json)

    def rows(self, name: str, folder: str) -> list[dict[str, str]] | None:
        return self._cached(name, folder, _csv_rows)

    def parameters(self, folder: str) -> int | None:
        """Count a trained network's parameters; None where its weights are not kept."""
        file = self.files.get(("weights.safetensors", folder))
        if file is None or not file.exists():
            return None
        return self._cached("weights.safetensors", folder, _parameter_count)

    def _cached(self, name: str, folder: str, read: Callable[[Path], Any]) -> Any:
        file = self.files.get((name, folder))
        if file is None:
            return None
        if file not in self.read:
            self.read[file] = read(file)
        return self.read[file]


def _csv_rows(file: Path) -> list[dict[str, str]]:
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _parameter_count(file: Path) -> int:
    """Count a trained network's weights, without the statistics that batch normalisation keeps. The file's head is JSON."""
    with open(file, "rb") as weights:
        head = json.loads(weights.read(int.from_bytes(weights.read(8), "little")))
    kept = ("running_mean", "running_var", "num_batches_tracked", "__metadata__")
    return sum(math.prod(entry["shape"]) for name, entry in head.items() if not name.endswith(kept))
