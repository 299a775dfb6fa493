"""Fixtures of several folders of tests: the digits, prepared once, and the spec of a training of a second or two."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported; nothing here is large enough for two

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

if TYPE_CHECKING:
    from made import Made
    from torch import Tensor, nn

DIGITS: dict[str, Any] = {
    "kind": "data",
    "name": "digits",
    "files": {"digits.csv.gz": "9b335364a7bfd63947c7480a5bd51f2d"},
    "shape": [1, 8, 8],
    "classes": 10,
    "train": 1437,
    "test": 360,
}
RUN: dict[str, Any] = {
    "kind": "run",
    "data": {**DIGITS, "validation": 437, "split_seed": 0, "mean": [0.305], "std": [0.376], "prepared": "digits-0"},
    "model": {
        "family": "resnet9",
        "slug": "scaleresnet9",
        "scale_norm": True,
        "norm": "group",
        "groups": 4,
        "order": "norm-activation",
        "width": 0.0625,
    },
    "recipe": {
        "optimizer": {"name": "nadam", "learning_rate": 5e-3},
        "schedule": {"name": "plateau", "factor": 0.5, "patience": 3},
        "batch": 100,
        "epochs": 4,
        "clip": 1.5,
        "augmentation": None,
        "averaging": None,
        "simulate": None,
        "precision": "float32",
    },
    "budget": {"epsilon": 7.42, "delta": 1e-4, "accountant": "rdp"},
    "seed": 34,
}


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare the digits and return their folder."""
    from dpvision.data import download
    from dpvision.data.prepare import prepare

    folder = tmp_path_factory.mktemp("digits")
    source = {"kind": "python", "package": "sklearn.datasets.data", "path": "digits.csv.gz"}
    dataset = {"title": "Digits", "licence": "CC BY 4.0", "sources": [source], "files": DIGITS["files"]}
    download.fetch("digits", dataset, None, folder / "raw")
    prepare(DIGITS, folder / "raw", folder / "prepared")
    return folder / "prepared"


@pytest.fixture(scope="session")
def run_spec() -> Callable[..., dict[str, Any]]:
    """Make the spec of a run of forty private steps; `run_spec({"recipe.epochs": 1, "budget": None})` makes another."""

    def make(changes: dict[str, Any] | None = None) -> dict[str, Any]:
        spec = RUN
        for key, value in (changes or {}).items():
            part, _, name = key.partition(".")
            spec = {**spec, part: {**spec[part], name: value} if name else value}
        return spec

    return make


@pytest.fixture(scope="session")
def narrow() -> "Callable[..., nn.Module]":
    """Build a ResNet-9 in float64 and in training mode, with convolutions of 4, 8 and 16 channels."""
    import torch

    from dpvision.models import build

    def make(channels: int = 1, classes: int = 3, dtype: torch.dtype = torch.float64, **changes: Any) -> "nn.Module":
        return build(RUN["model"] | changes, classes, channels).to(dtype).train()

    return make


@pytest.fixture(scope="session")
def one_at_a_time() -> "Callable[..., tuple[Tensor, Tensor]]":
    """Compute the sum of min(1, C / |g|) g over the examples, all parameters in one vector, and every |g|."""
    import copy

    import torch
    from torch.nn.functional import cross_entropy

    def compute(network: "nn.Module", images: "Tensor", labels: "Tensor", clip: float) -> "tuple[Tensor, Tensor]":
        plain = copy.deepcopy(network)
        total = torch.zeros(sum(p.numel() for p in plain.parameters()), dtype=images.dtype)
        norms = []
        for image, label in zip(images, labels, strict=True):
            pieces = torch.autograd.grad(cross_entropy(plain(image[None]), label[None]), list(plain.parameters()))
            gradient = torch.cat([piece.flatten() for piece in pieces])
            norms.append((gradient**2).sum().sqrt())
            total = total + gradient * min(1.0, clip / norms[-1].item())
        return total, torch.tensor(norms, dtype=images.dtype)

    return compute


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> "Made":
    """Make every record and artifact of a scale of seconds, and the checkout that it is of."""
    from made import Made

    return Made(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="session")
def archive(made: "Made") -> Path:
    return made.archive(made.root / "results/tiny/archive/dpvision.zip")


@pytest.fixture
def unpacked(archive: Path, tmp_path: Path) -> Path:
    """Unpack the archive on a path with spaces and return its folder, to be damaged."""
    folder = tmp_path / "an archive, unpacked"
    with ZipFile(archive) as packed:
        packed.extractall(folder)
    return folder
