"""The weights that a training begins with: another run's, or a file's that was proved by its SHA-256."""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor, nn

from dpvision.data import weights
from dpvision.errors import UserError
from dpvision.files import file_digest, read_json
from dpvision.plan.specs import weights_key
from dpvision.training.parts import head_of


def begin(network: nn.Module, start: dict[str, Any], folder: Path) -> str:
    """Give a network the weights that lie in a folder, but for its head; return the SHA-256 of their file."""
    of = start.get("weights", start)
    file = file_of(of, folder)
    weights.begin_with(network, tensors_of(of, folder), head_of(network)[0], weights_key(of)[1])
    return file_digest(file)


def file_of(of: dict[str, Any], folder: Path) -> Path:
    """Return the file that weights lie in: what was fetched, or what a run left at its last step or averaged."""
    return folder / ("averaged.safetensors" if of.get("take") == "averaged" else weights.FILE)


def tensors_of(of: dict[str, Any], folder: Path) -> dict[str, Tensor]:
    """Return the tensors of weights; anything else in their place is an error."""
    if "run" not in of:
        return weights.load(folder, of)
    file = file_of(of, folder)
    if not file.exists() or file_digest(file) != read_json(folder / "provenance.json")[f"{file.stem}_sha256"]:
        raise UserError(f"{file} is not the file that the training wrote; delete {folder} so that it is made again")
    return load_file(file)
