"""The cost of decoding pictures while a network trains, beside that of its private step.

    python benchmarks/decoding.py    -> results/benchmarks/decoding.json, .md

Pictures of 500 x 375, the most frequent size in ImageNet, are made of the two photographs that scikit-learn carries, each cut
at another place. They become 268 x 268, of which views of 224 x 224 are cropped. Proof and reading count with the decoding;
the files lie in the system's cache. The step is ResNet-50's clipped sum, of one view an image. Seconds are those
of a core, so that other work on the machine changes little; on a graphics card the step's say nothing.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from dpvision.data.streamed import Files, entry, link, sha256
from dpvision.files import write_json, write_text
from dpvision.models import build
from dpvision.models.catalogue import MODELS
from dpvision.privacy.fast import UNTIMED, ClippedSum
from dpvision.provenance import processor
from dpvision.training.machine import device, settle

OUT = Path(__file__).parents[1] / "results" / "benchmarks"
PICTURES, SIZE, QUALITY = 256, (500, 375), 96
NETWORK, SIDE, MARGIN, CLASSES, BATCH = "resnet50", 224, 44, 1000, 4
THREADS = 2
ROUNDS = 3


def pictures(folder: Path) -> Files:
    """Write the pictures and return them as a data set's."""
    photographs = [Image.fromarray(photograph) for photograph in load_sample_images().images]
    index = np.zeros(PICTURES, entry(8))
    random = np.random.default_rng(0)
    (folder / "own").mkdir()
    for number in range(PICTURES):
        photograph = photographs[number % len(photographs)]
        left, top = (int(random.integers(0, 1 + most - side)) for most, side in zip(photograph.size, SIZE, strict=True))
        file = folder / "own" / f"{number}.jpg"
        photograph.crop((left, top, left + SIZE[0], top + SIZE[1])).save(file, quality=QUALITY)
        index[number] = (file.name, file.stat().st_size, sha256(file.read_bytes()))
    link(folder / "pictures", folder / "own")
    return Files(folder / "pictures", index, (3, SIDE, SIDE))


def rate(count: int, work: Callable[[], Any]) -> float:
    """Return how many of `count` things a core does in a second: the median of some rounds, after one that is not counted."""
    work()
    seconds = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return count / statistics.median(seconds)


def decoding(files: Files) -> float:
    cut = np.array_split(np.arange(len(files)), -(-len(files) // 32))
    return rate(len(files), lambda: [batch.shape for batch in files.batches(cut, MARGIN, THREADS)])


def stepping() -> float:
    """Return how many examples a second have their clipped gradients added, in a way that nothing was timed for."""
    torch.manual_seed(0)
    network = build(MODELS[NETWORK].model_dump(), CLASSES, 3).to(device()).train()
    gradients = ClippedSum(network, 1.0, choices=dict(UNTIMED))
    images, labels = torch.randn(BATCH, 3, SIDE, SIDE, device=device()), torch.randint(CLASSES, (BATCH,), device=device())
    return rate(BATCH, lambda: gradients(images, labels).losses.sum().item())


def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        files = pictures(Path(folder))
        size = float(files.index["bytes"].mean())
        decoded = decoding(files)
    return {"machine": processor(), "bytes": size, "decoded": decoded, "step": stepping()}


def text(found: dict[str, Any]) -> str:
    lines = [f"| a second and core of {found['machine']} | pictures |", "| --- | --- |"]
    lines += [f"| looked up, proved and decoded | {found['decoded']:.0f} |"]
    lines += [f"| through a private step of {NETWORK} | {found['step']:.2f} |"]
    return "\n".join([*lines, "", f"A file has {found['bytes'] / 1000:.0f} kB in the mean."]) + "\n"


if __name__ == "__main__":
    settle(THREADS)
    found = measure()
    write_json(OUT / "decoding.json", found)
    write_text(OUT / "decoding.md", text(found))
    print(text(found))
