"""Preparation of raw files: the arrays that everything else reads."""

import importlib.metadata
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpvision import files
from dpvision.data import datasets
from dpvision.data.streamed import PICTURES, link
from dpvision.data.tree import Tree
from dpvision.errors import UserError
from dpvision.provenance import Origin

if TYPE_CHECKING:
    from dpvision.data.pictures import Pictures

    Contents = datasets.Arrays | Pictures | Tree

log = logging.getLogger(__name__)

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
KINDS = {"md5": "MD5", "sha256": "SHA-256"}


def prepare(spec: dict[str, Any], raw: Path, folder: Path, threads: int = 1) -> None:
    """Write an .npy file for each of ARRAYS, dataset.json, which describes and proves them, and provenance.json.

    Of data that is streamed, the images' files are indexes of pictures, which lie behind the link PICTURES. Of private data,
    all have rights for their owner alone.
    """
    with files.rights(folder, spec.get("private", False)):
        _prepare(spec, raw, folder, threads)


def _prepare(spec: dict[str, Any], raw: Path, folder: Path, threads: int) -> None:
    origin = Origin(f"dpvision.data.prepare dpvision.data.datasets.{spec.get('reader', spec['name'])}")
    _check_raw(spec, raw)
    contents = datasets.read(spec, raw)
    _check_contents(spec, contents)
    streamed = contents if isinstance(contents, Tree) else None
    if streamed:
        streamed.look_through(spec["name"], folder, threads)
        link(folder / PICTURES, Path(os.path.relpath(raw.absolute() / PICTURES, folder.absolute())))
    for name in ARRAYS:
        with files.replacing(folder / f"{name}.npy") as beside:
            contents.save(name, beside)
    description = _description(spec, contents, raw, folder)
    files.write_json(folder / "dataset.json", description | {"digest": files.digest(description)})
    files.write_json(
        folder / "provenance.json", origin.provenance(spec, pillow=importlib.metadata.version("pillow"))
    )  # it decodes
    for index in streamed.indices.values() if streamed else ():
        index.forget()
    log.info("%s: %d training and %d test examples in %s", spec["name"], spec["train"], spec["test"], folder)


def _check_raw(spec: dict[str, Any], raw: Path) -> None:
    again = f"Delete {raw / 'files.json'} so that the download runs again: it keeps what is right."
    proofs = [(name, "md5", md5) for name, md5 in spec["files"].items()]
    if unpacked := files.read_json(raw / "files.json")["files"].get(datasets.UNPACKED):
        proofs = [(datasets.UNPACKED, "sha256", unpacked["sha256"])]
    for name, kind, expected in proofs:
        if not (raw / name).exists():
            raise UserError(f"{spec['name']}: the raw file {raw / name} is not there. {again}")
        found = files.file_digest(raw / name, kind)
        if found != expected:
            changed = f"was changed: expected {KINDS[kind]} {expected}, found {found}"
            raise UserError(f"{spec['name']}: {raw / name} {changed}. {again}")


def _check_contents(spec: dict[str, Any], contents: "Contents") -> None:
    """Raise where config/datasets.yaml does not fit the raw files: these are right by now, but for a folder of the user's."""
    right = "Bring that folder to it, or put that right there." if spec.get("streamed") else "Put that right there."
    labels = np.concatenate([contents.train_labels, contents.test_labels])
    found = [
        ("train", len(contents.train_labels)),
        ("test", len(contents.test_labels)),
        ("shape", contents.shape),
        ("classes", len(np.unique(labels))),
        ("classes", len(contents.class_names)),
    ]
    for key, value in found:
        if value != spec[key]:
            raise UserError(
                f"{spec['name']}: config/datasets.yaml says {key}: {spec[key]}, the raw files hold {value}. {right}"
            )


def _description(spec: dict[str, Any], contents: "Contents", raw: Path, folder: Path) -> dict[str, Any]:
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
        "class_names": contents.class_names,
        "images_per_class": {
            "train": np.bincount(contents.train_labels, minlength=spec["classes"]).tolist(),
            "test": np.bincount(contents.test_labels, minlength=spec["classes"]).tolist(),
        },
        **_duplicate_counts(contents),
        "sha256": {f"{name}.npy": files.file_digest(folder / f"{name}.npy") for name in ARRAYS},
    }


def _duplicate_counts(contents: "Contents") -> dict[str, Any]:
    """Return how many pictures there are more than once, where the reader looks for such; their names are in no record."""
    duplicates: dict[str, list[list[str]]] = getattr(contents, "duplicates", {})
    counts = {where: len(groups) for where, groups in duplicates.items()}
    for where, count in counts.items():
        log.warning("%d pictures are there twice or more: %s", count, "in both splits" if where == "across" else where)
    return {"duplicates": counts} if counts else {}
