"""The weights that a training begins with: another run's, or a file's that was proved by its SHA-256."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import nn

from dpvision.data import weights
from dpvision.errors import UserError
from dpvision.files import file_digest, read_json
from dpvision.training.parts import head_of


def begin(network: nn.Module, start: dict[str, Any], folder: Path) -> str:
    """Give a network the weights that lie in a folder, but for its head; return the SHA-256 of their file."""
    if "weights" in start:
        file, name = folder / weights.FILE, start["weights"]["name"]
        tensors = weights.load(folder, start["weights"])
    else:
        which = {"last": "weights", "averaged": "averaged"}[start["take"]]
        file, name = folder / f"{which}.safetensors", start["run"]
        if not file.exists() or file_digest(file) != read_json(folder / "provenance.json")[f"{which}_sha256"]:
            raise UserError(f"{file} is not the file that the training wrote; delete {folder} so that it is made again")
        tensors = load_file(file)
    weights.begin_with(network, tensors, head_of(network)[0], name)
    return file_digest(file)
