"""The cost of a product of the Hessian with a vector: PyHessian's, ours with kept graphs, ours with graphs built anew.

    python benchmarks/hessian.py    -> results/benchmarks/hessian.json, .md

ResNet-9, 256 images in four physical batches of 64. In each round every way has its turn, so that the
machine does meets all of them, and ratios are taken within a round. Memory is measured apart from time, each way in a
process of its own: what an allocator keeps after one would hide the next one's peak.
"""

import functools
import math
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from pyhessian import hessian as PyHessian
from torch import Tensor, nn
from torch.nn import functional

from dpvision.curvature.product import Batch, Hessian, flat
from dpvision.files import write_json, write_text
from dpvision.memory import peak_mb
from dpvision.models import build
from dpvision.models.catalogue import MODELS
from dpvision.provenance import processor
from dpvision.training.machine import device, settle

OUT = Path(__file__).parents[1] / "results" / "benchmarks"
NETWORK = "resnet9"
IMAGES, BATCH, SHAPE, CLASSES = 256, 64, (3, 32, 32), 10
ROUNDS = 5
THREADS = 2
TOLERANCE = 1e-4  # between products in float32, relative to the largest entry; a wrong way is not timed

Way = Callable[[], Tensor]
PYHESSIAN, KEPT, ANEW = "PyHessian", "ours, graphs kept", "ours, graphs built anew"
WAYS = ("gradient", "two gradients", PYHESSIAN, KEPT, ANEW)


def setting() -> tuple[nn.Module, list[Batch], Tensor]:
    """Return the network, the batches and the vector, the same at every call."""
    torch.manual_seed(0)
    network = build(MODELS[NETWORK].model_dump(), CLASSES, SHAPE[0]).to(device()).eval()
    images, labels = torch.randn(IMAGES, *SHAPE).to(device()), torch.randint(CLASSES, (IMAGES,)).to(device())
    vector = torch.randn(sum(parameter.numel() for parameter in network.parameters())).to(device())
    return network, list(zip(images.split(BATCH), labels.split(BATCH), strict=True)), vector / vector.norm()


def way_of(what: str, network: nn.Module, batches: list[Batch], vector: Tensor) -> Way:
    """Return a function that computes it, for the mean loss over the batches."""
    if what in (KEPT, ANEW):
        return functools.partial(Hessian(network, batches, math.inf if what == KEPT else 0), vector)
    if what == PYHESSIAN:
        return pyhessian(network, batches, vector)
    return lambda: [gradient(network, batches) for _ in range(2 if what == "two gradients" else 1)][-1]


def gradient(network: nn.Module, batches: list[Batch]) -> Any:
    total = 0.0
    for images, labels in batches:
        loss = functional.cross_entropy(network(images), labels, reduction="sum")
        total = total + flat(torch.autograd.grad(loss, list(network.parameters())))
    return total / IMAGES


def pyhessian(network: nn.Module, batches: list[Batch], vector: Tensor) -> Way:
    theirs = PyHessian(network, nn.CrossEntropyLoss(), dataloader=batches, cuda=False)
    theirs.device = device()
    sizes = [parameter.numel() for parameter in theirs.params]
    pieces = [piece.view_as(like) for piece, like in zip(vector.split(sizes), theirs.params, strict=True)]

    def product() -> Tensor:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Using backward.. with create_graph=True")
            return flat(theirs.dataloader_hv_product(pieces)[1])

    return product


def seconds() -> dict[str, list[float]]:
    """Return the time of each way in every round, after one that is not counted, in which graphs are kept."""
    given = setting()
    ways = {what: way_of(what, *given) for what in WAYS}
    expected = ways[PYHESSIAN]()
    for what in (KEPT, ANEW):
        apart = float((ways[what]() - expected).abs().max() / expected.abs().max())
        if not apart <= TOLERANCE:
            raise SystemExit(f"{what}: the product is {apart:.1e} away from PyHessian's.")
    times: dict[str, list[float]] = {what: [] for what in WAYS}
    for _ in range(ROUNDS):
        for what, way in ways.items():
            times[what].append(timed(way))
    return times


def timed(way: Way) -> float:
    begun = time.perf_counter()
    float(way().sum())  # this waits for a graphics card
    return time.perf_counter() - begun


def peak(what: str) -> float:
    """Return the MB that two calls take above what there is before them, at their highest."""
    settle(THREADS)
    network, batches, vector = setting()
    way_of(what, network, [(images[:2], labels[:2]) for images, labels in batches], vector)()  # what PyTorch loads
    way = way_of(what, network, batches, vector)
    with peak_mb(device()) as before:
        pass
    peaks = []
    for _ in range(2):
        with peak_mb(device()) as highest:
            way()
        peaks += highest
    return max(peaks) - before[0]


def in_a_process_of_its_own(function: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def rows_of(times: dict[str, list[float]], peaks: dict[str, float]) -> list[dict[str, Any]]:
    """Return one row a way; ratios are medians over the rounds."""

    def ratio(what: str, to: str) -> float:
        return round(statistics.median(a / b for a, b in zip(times[what], times[to], strict=True)), 3)

    return [
        {
            "what": what,
            "seconds": round(statistics.median(times[what]), 3),
            "ratio_to_pyhessian": ratio(what, PYHESSIAN),
            "ratio_to_two_gradients": ratio(what, "two gradients"),
            "peak_mb": round(peaks[what]),
        }
        for what in WAYS
    ]


def table(rows: list[dict[str, Any]], where: dict[str, Any]) -> str:
    """Return the results in Markdown."""
    caption = (
        f"**What a product of the Hessian with a vector costs.** {MODELS[NETWORK].label}, {IMAGES} images of "
        f"{' x '.join(map(str, SHAPE))} in physical batches of {BATCH}, float32. Median of {ROUNDS} rounds; ratios are medians "
        "of the ratios within a round. Peak: memory above the state before, of two calls, in a process of its own. "
        f"{where['device']}, {where['threads']} threads, torch {where['torch']}."
    )
    header = ["", "seconds", "ratio to PyHessian's", "ratio to two gradients", "peak MB"]
    lines = [header, ["---", *["---:"] * 4]]
    for row in rows:
        ratios = (f"{row[key]:.2f}" for key in ("seconds", "ratio_to_pyhessian", "ratio_to_two_gradients"))
        lines.append([row["what"], *ratios, str(row["peak_mb"])])
    return "\n".join([caption, "", *("| " + " | ".join(line) + " |" for line in lines), ""])


def main() -> None:
    settle(THREADS)
    name = torch.cuda.get_device_name() if device().type == "cuda" else processor()
    where = {"device": name, "threads": THREADS, "torch": torch.__version__}
    rows = rows_of(seconds(), {what: in_a_process_of_its_own(peak, what) for what in WAYS})
    write_json(OUT / "hessian.json", {"rows": rows, "machine": where, "rounds": ROUNDS})
    write_text(OUT / "hessian.md", table(rows, where))
    print(table(rows, where))


if __name__ == "__main__":
    main()
