"""Prepared arrays, proved when they are opened, and the split of the training examples."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpvision import files
from dpvision.data.streamed import PICTURES, Files
from dpvision.errors import UserError


@dataclass(frozen=True)
class Prepared:
    """Arrays that are mapped from disk, read-only: an example is read when it is used. Of data that is streamed, files."""

    train_images: np.ndarray | Files
    train_labels: np.ndarray
    test_images: np.ndarray | Files
    test_labels: np.ndarray
    class_names: list[str]
    digest: str
    """`content_digest` of the arrays."""


def load(folder: Path, spec: dict[str, Any]) -> Prepared:
    """Open what `prepare` made of `spec`; raise if anything is not what it wrote."""
    description = _description(folder / "dataset.json", files.digest(spec))
    arrays: dict[str, Any] = {
        name.removesuffix(".npy"): _array(folder / name, sha) for name, sha in description["sha256"].items()
    }
    if spec.get("streamed"):
        for images in ("train_images", "test_images"):
            arrays[images] = Files(folder / PICTURES, arrays[images], tuple(spec["shape"]))
    return Prepared(**arrays, class_names=description["class_names"], digest=content_digest(description))


def content_digest(description: dict[str, Any]) -> str:
    """Return a digest of the arrays alone, by dataset.json: the same for the same data, whichever source they came from."""
    return files.digest(description["sha256"])


def data_part(run: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of the prepared data, or features, inside a run's."""
    of_run = ("split_seed", "mean", "std", "validation", "by", "prepared")
    return {key: value for key, value in run["data"].items() if key not in of_run}


def _description(path: Path, spec_digest: str) -> dict[str, Any]:
    try:
        description: dict[str, Any] = files.read_json(path)
    except FileNotFoundError as error:
        raise _unusable(path, "is not there") from error
    except UserError as error:
        raise _unusable(path, "is not the JSON it should be") from error
    said, found = description.pop("digest", None), files.digest(description)
    if found != said:
        raise _unusable(path, f"was changed: expected digest {said}, found {found}")
    if description["spec"] != spec_digest:
        raise _unusable(path, f"was made by another spec: expected {spec_digest}, found {description['spec']}")
    return description


def _array(path: Path, sha256: str) -> np.ndarray:
    if not path.exists():
        raise _unusable(path, "is not there")
    found = files.file_digest(path)
    if found != sha256:
        raise _unusable(path, f"was changed: expected SHA-256 {sha256}, found {found}")
    array: np.ndarray = np.load(path, mmap_mode="r")
    return array


def _unusable(path: Path, why: str) -> UserError:
    return UserError(
        f"{path} {why}. Delete the folder {path.parent} so that it is made again "
        "(if it is gone already, the same command makes it)."
    )


def split(count: int, validation: int, seed: int, by: str = "permutation") -> tuple[np.ndarray, np.ndarray]:
    """Return which of `count` examples train, and which `validation` ones are held out; both in ascending order.

    The one definition of a split: the end of a permutation is held out, or the first or the last of all. The permutation
    comes from RandomState, which numpy has frozen, so that neither numpy's version nor the machine changes who is held out.
    """
    order = np.arange(count)
    if by == "permutation":
        order = np.random.RandomState(np.random.MT19937(seed)).permutation(count).astype(np.int64)
    if by == "first":
        order = np.roll(order, -validation)
    return np.sort(order[: count - validation]), np.sort(order[count - validation :])


def split_of(data: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the split that a run's spec says of its data: which examples train, and which are held out."""
    return split(data["train"], data["validation"], data["split_seed"], data.get("by", "permutation"))
