"""Features: what a network with public weights makes of a data set's images, in evaluation mode, computed once.

They lie as a prepared data set does, and any number of trainings share them. An example's features depend on that example
and on the public weights alone: so what is trained on them is as private as what is trained on images.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dpvision.data.filling import Filling
from dpvision.data.prepare import ARRAYS
from dpvision.data.prepared import Prepared, load
from dpvision.data.streamed import read
from dpvision.errors import UserError
from dpvision.files import digest, file_digest, read_json, replacing, rights, write_json
from dpvision.models import build
from dpvision.plan.cost import FEATURES_AT_ONCE
from dpvision.provenance import Origin
from dpvision.training.machine import device
from dpvision.training.parts import head_of
from dpvision.training.precision import in_precision
from dpvision.training.start import file_of, tensors_of

log = logging.getLogger(__name__)


def compute(spec: dict[str, Any], of: dict[str, Any], images: Path, weights_folder: Path, folder: Path) -> None:
    """Leave the arrays, dataset.json, which proves them, and provenance.json; `of` is the spec of the images.

    Features of private images have rights for their owner alone.
    """
    with rights(folder, of.get("private", False)):
        _compute(spec, of, images, weights_folder, folder)


def _compute(spec: dict[str, Any], of: dict[str, Any], images: Path, weights_folder: Path, folder: Path) -> None:
    origin = Origin(f"dpvision.training.features dpvision.models.{spec['weights']['model']['family']}.network")
    prepared = load(images, of)
    network = Network(spec, weights_folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write(spec, network, prepared, split, folder) for split in ("train", "test")]
    source = read_json(images / "dataset.json")
    about = {key: source[key] for key in ("title", "licence", "class_names", "images_per_class", "train", "test", "classes")}
    by = spec["weights"].get("run") or read_json(weights_folder / "weights.json")["title"]
    about["source"] = f"{source['source']}; features by {by}"
    made = {"name": spec["name"], "spec": digest(spec), "shape": spec["shape"]}
    made |= {"images": prepared.digest, "weights": network.weights_sha256}
    sha256 = {f"{name}.npy": file_digest(folder / f"{name}.npy") for name in ARRAYS}
    description = {**about, **made, "sha256": sha256}
    write_json(folder / "dataset.json", description | {"digest": digest(description)})
    write_json(folder / "provenance.json", origin.provenance(spec, data=prepared.digest))
    for features in written:
        features.forget()


class Network:
    """The network up to the layer that a spec names, with its preprocessing."""

    def __init__(self, spec: dict[str, Any], folder: Path) -> None:
        of, how = spec["weights"], spec["preprocessing"]
        self.spec, self.device = spec, device()
        network = build(of["model"], of["classes"], how["shape"][0])
        network.load_state_dict(tensors_of(of, folder))
        self.weights_sha256 = file_digest(file_of(of, folder))
        network.eval().to(self.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.compute = in_precision(network, spec["precision"])
        self.mean, self.std = (torch.tensor(how[key], device=self.device).view(-1, 1, 1) for key in ("mean", "std"))
        self.found: Tensor | None = None
        named = dict(network.named_modules())
        if spec["layer"] == "the head's input":
            head_of(network)[1].register_forward_pre_hook(lambda layer, inputs: self._keep(inputs[0]))
        elif spec["layer"] in named:
            named[spec["layer"]].register_forward_hook(lambda layer, inputs, output: self._keep(output))
        else:
            raise UserError(
                f"{spec['name']}: the network has no layer {spec['layer']}; there are: {', '.join(filter(None, named))}"
            )

    def _keep(self, found: Tensor) -> None:
        self.found = found

    @torch.inference_mode()
    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Return the features of images, examples x channels x height x width, uint8."""
        x = torch.from_numpy(np.array(images)).to(self.device).float().div_(255)
        x = x.expand(-1, self.spec["preprocessing"]["shape"][0], -1, -1)  # of greyscale, each channel is the one there is
        x = F.interpolate(x, self.spec["preprocessing"]["shape"][1:], mode="bilinear", antialias=True)
        self.compute(((x - self.mean) / self.std).contiguous(memory_format=torch.channels_last))
        assert self.found is not None
        features = self.found.float()
        features = features.mean((2, 3)) if features.dim() == 4 else features
        if list(features.shape[1:]) != self.spec["shape"]:
            raise UserError(
                f"{self.spec['name']}: config/features.yaml says shape: {self.spec['shape']}, the layer gives "
                f"{list(features.shape[1:])}. Put that right there."
            )
        if self.spec["scale"] == "norm":  # each by itself: nothing of one example is in another's
            features = F.normalize(features)
        return features.half().cpu().numpy()


def _write(spec: dict[str, Any], network: Network, prepared: Prepared, split: str, folder: Path) -> Filling:
    """Write a split's features and labels; what a killed job wrote of them is kept, if it was by the same weights."""
    images, labels = getattr(prepared, f"{split}_images"), getattr(prepared, f"{split}_labels")
    with replacing(folder / f"{split}_labels.npy") as beside:
        np.save(beside, labels)
    whose = {"spec": digest(spec), "images": prepared.digest, "weights": network.weights_sha256}
    features = Filling(folder, split, whose, (len(images), *spec["shape"]), np.float16)
    starts = range(features.done, len(images), FEATURES_AT_ONCE)
    cut = (np.arange(start, min(start + FEATURES_AT_ONCE, len(images))) for start in starts)
    features.fill(map(network, read(images, cut, threads=torch.get_num_threads())), spec["name"])
    with replacing(folder / f"{split}_images.npy") as beside:
        features.save(beside)
    return features
