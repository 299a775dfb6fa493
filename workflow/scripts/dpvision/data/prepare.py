"""Raw files into the arrays that everything else reads."""

import logging
from pathlib import Path
from typing import Any

import numpy as np

from dpvision import files
from dpvision.data import datasets
from dpvision.errors import UserError
from dpvision.provenance import Origin

log = logging.getLogger(__name__)

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


def prepare(spec: dict[str, Any], raw: Path, folder: Path) -> None:
    """Writes an .npy file for each of ARRAYS, dataset.json, which describes and proves them, and provenance.json."""
    origin = Origin(f"dpvision.data.prepare dpvision.data.datasets.{spec['name']}")
    _check_raw(spec, raw)
    arrays = datasets.read(spec["name"], raw)
    _check_arrays(spec, arrays)
    for name in ARRAYS:
        with files.replacing(folder / f"{name}.npy") as beside:
            np.save(beside, getattr(arrays, name))
    description = _description(spec, arrays, raw, folder)
    files.write_json(folder / "dataset.json", description | {"digest": files.digest(description)})
    files.write_json(folder / "provenance.json", origin.provenance(spec))
    log.info("%s: %d training and %d test examples in %s", spec["name"], spec["train"], spec["test"], folder)


def _check_raw(spec: dict[str, Any], raw: Path) -> None:
    again = f"Delete {raw / 'files.json'} so that the download runs again: it keeps what is right."
    for name, md5 in spec["files"].items():
        if not (raw / name).exists():
            raise UserError(f"{spec['name']}: the raw file {raw / name} is not there. {again}")
        found = files.file_digest(raw / name, "md5")
        if found != md5:
            raise UserError(f"{spec['name']}: {raw / name} was changed: expected MD5 {md5}, found {found}. {again}")


def _check_arrays(spec: dict[str, Any], arrays: datasets.Arrays) -> None:
    """The raw files are right by now, so what does not fit is the entry in config/datasets.yaml."""
    labels = np.concatenate([arrays.train_labels, arrays.test_labels])
    found = [
        ("train", len(arrays.train_images)),
        ("test", len(arrays.test_images)),
        ("shape", list(arrays.train_images.shape[1:])),
        ("classes", len(np.unique(labels))),
        ("classes", len(arrays.class_names)),
    ]
    for key, value in found:
        if value != spec[key]:
            raise UserError(
                f"{spec['name']}: config/datasets.yaml says {key}: {spec[key]}, the raw files hold {value}. "
                f"Put that right there."
            )


def _description(spec: dict[str, Any], arrays: datasets.Arrays, raw: Path, folder: Path) -> dict[str, Any]:
    about = files.read_json(raw / "files.json")
    return {
        "name": spec["name"],
        "title": about["title"],
        "licence": about["licence"],
        "source": about["source"],
        "spec": files.digest(spec),
        "shape": spec["shape"],
        "train": spec["train"],
        "test": spec["test"],
        "classes": spec["classes"],
        "class_names": arrays.class_names,
        "images_per_class": {
            "train": np.bincount(arrays.train_labels, minlength=spec["classes"]).tolist(),
            "test": np.bincount(arrays.test_labels, minlength=spec["classes"]).tolist(),
        },
        "sha256": {f"{name}.npy": files.file_digest(folder / f"{name}.npy") for name in ARRAYS},
    }
