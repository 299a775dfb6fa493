"""What a private step costs against its plain twin: time and memory of one physical batch, method by method.

    python benchmarks/dp_step.py [full | quick]    -> results/benchmarks/dp_step.json, .md

Every method gets the same weights and the same images. In each round every method has its turn, so that whatever else
the machine does meets all of them, and ratios are taken within a round. Memory is measured apart from time, each method
in a process of its own: what an allocator keeps after one would hide the next one's peak.
"""

import argparse
import functools
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from dpvision import memory
from dpvision.files import write_json, write_text
from dpvision.models import build
from dpvision.models.catalogue import MODELS
from dpvision.privacy.clipping import Clipped, Gradients, OpacusHooks, Plain, Way, clip_factors, losses_of, norms_of, trainable
from dpvision.privacy.fast import ClippedSum
from dpvision.provenance import processor
from dpvision.training.machine import device
from dpvision.training.precision import in_precision

OUT = Path(__file__).parents[1] / "results" / "benchmarks"
CLIP = 1.0
CLASSES, SHAPE = 10, (3, 32, 32)
# Between clipped sums, relative to that of Opacus' hooks; a wrong method is not timed. Where rounding turns the sign of
# a ReLU's input the gradient jumps: in float32 every method is up to 0.4% away from float64 (WRN-16-4, 64 images).
TOLERANCE = 0.02


# --- methods ---


class ChannelsLast(Plain):
    """Plain, with the channels of each pixel beside one another in memory; the network follows its images."""

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        flat = images.reshape(-1, *images.shape[-3:]).to(memory_format=torch.channels_last)
        return super().__call__(flat.unflatten(0, images.shape[:-3]), labels)


class OpacusGhost(Clipped):
    """Opacus' fast gradient clipping, ghost norms where it has them: one backward for the norms, one for the sum.

    The first asks for the images' gradient alone: Opacus' own loop also sums weights' gradients there, and throws them away.
    """

    def __init__(self, network: nn.Module, clip: float) -> None:
        self.module = GradSampleModuleFastGradientClipping(
            network, batch_first=True, loss_reduction="sum", max_grad_norm=clip, use_ghost_clipping=True
        )
        self.parameters = trainable(network)
        self.clip = clip

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        if images.dim() == 5:
            raise NotImplementedError("takes the norm of every view by itself, not of an example's mean over its views")
        images = images.detach().requires_grad_()
        losses = losses_of(self.module, images, labels)
        losses.sum().backward(inputs=[images], retain_graph=True)
        norms = self.module.get_norm_sample()
        weighted = losses @ clip_factors(norms, self.clip, losses.dtype)
        self.module.disable_hooks()
        sums = torch.autograd.grad(weighted, self.parameters)
        self.module.enable_hooks()
        return Gradients(list(sums), losses.detach(), norms)


class WholeModelVmap(Clipped):
    """torch.func's gradient of one example's loss through the whole network, mapped over the examples."""

    def __init__(self, network: nn.Module, clip: float) -> None:
        parameters = {name: p.detach() for name, p in network.named_parameters() if p.requires_grad}

        def loss(parameters: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
            forward: Any = lambda images: functional_call(network, parameters, (images,))  # noqa: E731
            return losses_of(forward, image[None], label[None]).sum()

        self.each = functools.partial(vmap(grad_and_value(loss), (None, 0, 0)), parameters)
        self.clip = clip

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        gradients, losses = self.each(images, labels)
        samples = list(gradients.values())
        norms = norms_of(samples)
        factors = clip_factors(norms, self.clip, samples[0].dtype)
        return Gradients([torch.tensordot(factors, sample, 1) for sample in samples], losses, norms)


METHODS: dict[str, Callable[[nn.Module, float], Way]] = {
    "plain": lambda network, clip: Plain(network),
    "plain, channels last": lambda network, clip: ChannelsLast(network),
    "opacus hooks": OpacusHooks,
    "opacus ghost": OpacusGhost,
    "vmap": WholeModelVmap,
    "ours": ClippedSum,
}
REFERENCES = ("opacus hooks", "opacus ghost", "vmap")

# Ratios of the slow references need fewer rounds than ours.
FULL_ROUNDS = dict.fromkeys(METHODS, 9) | dict.fromkeys(REFERENCES, 5)
QUICK_ROUNDS = dict.fromkeys(METHODS, 5) | {"opacus hooks": 2, "opacus ghost": 1, "vmap": 1}


# --- cases ---


@dataclass(frozen=True)
class Case:
    model: str
    views: int
    batch: int
    precision: str = "float32"

    def __str__(self) -> str:
        return f"{self.model}/{self.views}/{self.batch}/{self.precision}"

    def methods(self) -> list[str]:
        return [method for method in METHODS if self.precision == "float32" or method not in REFERENCES]

    def data(self) -> tuple[Tensor, Tensor]:
        torch.manual_seed(1)
        images = torch.randn(self.batch, *([self.views] if self.views > 1 else []), *SHAPE)
        return images.to(device()), torch.randint(CLASSES, (self.batch,)).to(device())

    def network(self) -> nn.Module:
        torch.manual_seed(0)
        network = build(MODELS[self.model].model_dump(), CLASSES, SHAPE[0]).to(device()).train()
        return in_precision(network, self.precision)


FULL = [
    Case(model, views, batch, precision)
    for model in ("resnet9", "scaleresnet9", "wrn16-4")
    for views, batch in ((1, 64), (1, 128), (16, 8))
    for precision in ("float32", "bfloat16")
]
QUICK = [
    Case("resnet9", 1, 64),
    Case("resnet9", 16, 8),
    Case("resnet9", 1, 64, "bfloat16"),
    Case("scaleresnet9", 1, 64),
    Case("wrn16-4", 1, 64),
]


# --- time ---


def timed(way: Way, images: Tensor, labels: Tensor) -> float:
    _synchronise()
    begun = time.perf_counter()
    way(images, labels)
    _synchronise()
    return time.perf_counter() - begun


def _synchronise() -> None:
    if device().type == "cuda":
        torch.cuda.synchronize()


def seconds(case: Case, rounds: dict[str, int]) -> tuple[dict[str, list[float]], dict[str, str], Any]:
    """Each method's time in its rounds, which are the first ones; why a method has none; our choices."""
    images, labels = case.data()
    ways: dict[str, Any] = {}
    notes: dict[str, str] = {}
    expected: list[Tensor] = []
    for method in case.methods():
        try:
            way = METHODS[method](case.network(), CLIP)
            found = way(images, labels)
        except NotImplementedError as error:
            notes[method] = str(error)
            continue
        if method == "ours":
            found = way(images, labels)  # the first call was for its choices
        if method == "opacus hooks":
            expected = found.sums
        if expected and found.norms is not None and (apart := distance(found.sums, expected)) > TOLERANCE:
            notes[method] = f"wrong: its clipped sum is {apart:.1%} away from that of Opacus' hooks"
        else:
            ways[method] = way
    times: dict[str, list[float]] = {method: [] for method in ways}
    for n in range(max(rounds.values())):
        for method, way in ways.items():
            if n < rounds[method]:
                times[method].append(timed(way, images, labels))
    return times, notes, ways["ours"].choices if "ours" in ways else None


def distance(sums: list[Tensor], expected: list[Tensor]) -> float:
    """Of all parameters together, relative to the expected sum."""
    there, here = (torch.cat([part.flatten().double() for part in parts]) for parts in (expected, sums))
    return float((here - there).norm() / there.norm())


# --- memory ---


def peak_of(call: Callable[[], object]) -> float | None:
    """MB that a call needs above what there is before it, at its highest; none where the system does not tell."""
    if device().type == "cpu" and not memory.RESET.exists():
        return None
    with memory.peak_mb(device()) as before:
        pass
    with memory.peak_mb(device()) as highest:
        call()
    return highest[0] - before[0]


def peak_mb(case: Case, method: str, choices: Any) -> float | None:
    """Ours with the choices that were timed. Two examples go first, for what PyTorch loads when first used."""
    images, labels = case.data()
    way = ClippedSum(case.network(), CLIP, choices=choices) if method == "ours" else METHODS[method](case.network(), CLIP)
    way(images[:2], labels[:2])
    return peak_of(lambda: way(images, labels))


def in_a_process_of_its_own(function: Callable[..., Any], *arguments: Any) -> Any:
    """Forked from a server that has imported what takes long and computed nothing, so that it starts quickly."""
    os.environ["MALLOC_MMAP_THRESHOLD_"] = "65536"  # there, not here: what is freed goes back to the system at once
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["opacus.grad_sample", "dpvision.models.catalogue", "dpvision.privacy.fast"])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


# --- rows ---


def rows_of(
    case: Case, times: dict[str, list[float]], peaks: dict[str, float | None], notes: dict[str, str]
) -> list[dict[str, Any]]:
    """One row a method. Ratios are medians over the rounds that both sides took part in."""
    baseline = [min(pair) for pair in zip(times["plain"], times["plain, channels last"], strict=True)]
    hooks = times.get("opacus hooks", [])
    images = case.views * case.batch
    rows = []
    for method in case.methods():
        mine = times.get(method, [])
        peak = peaks.get(method)
        rows.append(
            {
                "model": MODELS[case.model].label,
                "views": case.views,
                "batch": case.batch,
                "precision": case.precision,
                "method": method,
                "ms_per_image": round(1000 * statistics.median(mine) / images, 4) if mine else None,
                "ms_per_image_best": round(1000 * min(mine) / images, 4) if mine else None,
                "ratio_to_plain": _median_ratio(mine, baseline),
                "ratio_to_hooks": _median_ratio(hooks, mine),
                "peak_mb": None if peak is None else round(peak, 1),
                "note": notes.get(method),
            }
        )
    return rows


def _median_ratio(above: list[float], below: list[float]) -> float | None:
    ratios = [a / b for a, b in zip(above, below, strict=False)]  # the shorter one took part in the first rounds
    return round(statistics.median(ratios), 3) if ratios else None


def machine() -> dict[str, Any]:
    name = torch.cuda.get_device_name() if device().type == "cuda" else processor()
    return {"device": name, "threads": torch.get_num_threads(), "torch": torch.__version__}


def table(result: dict[str, Any]) -> str:
    """Markdown."""
    rows, where = result["rows"], result["machine"]
    fewer = ", ".join(f"{method}: {n}" for method, n in result["reference_rounds"].items())
    caption = (
        f"**What a private step costs against its plain twin.** One call of each method on one physical batch of B examples "
        f"with K views each, images of {' x '.join(map(str, SHAPE))}, {CLASSES} classes: the sum of per-example gradients "
        f"clipped to {CLIP:g} (plain: the gradient of the summed loss, not private). Time: median of {result['rounds']} "
        f"rounds ({fewer}), over B x K. In a round every method has its turn; ratios are medians of the "
        "ratios within a round. Ratio to plain: to the faster one of that round's two plain calls (PyTorch's, images "
        "contiguous or channels last) with the same model, K x B and precision. Peak: memory above the state before the "
        f"call, measured once, in a process of its own. {where['device']}, {where['threads']} threads, torch {where['torch']}."
    )
    header = ["model", "K x B", "precision", "method", "ms an image", "ratio to plain", "times faster than hooks", "peak MB"]
    keys = {"ms_per_image": ".3f", "ratio_to_plain": ".2f", "ratio_to_hooks": ".2f", "peak_mb": ".0f"}
    lines = [header, ["---"] * 4 + ["---:"] * 4]
    for row in rows:
        numbers = ["–" if row[key] is None else format(row[key], form) for key, form in keys.items()]
        lines.append([row["model"], f"{row['views']} x {row['batch']}", row["precision"], row["method"], *numbers])
    notes = [
        f"{row['model']}, {row['views']} x {row['batch']}, {row['method']}: {row['note']}.\n" for row in rows if row["note"]
    ]
    return "\n".join([caption, "", *("| " + " | ".join(line) + " |" for line in lines), "", *notes])


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of a private step, beside its plain twin.")
    parser.add_argument("scope", nargs="?", choices=["full", "quick"], default="full")
    quick = parser.parse_args().scope == "quick"
    cases, rounds = (QUICK, QUICK_ROUNDS) if quick else (FULL, FULL_ROUNDS)
    rows, choices = [], {}
    for n, case in enumerate(cases):
        print(f"{n + 1} of {len(cases)}: {case}", file=sys.stderr, flush=True)
        times, notes, chosen = seconds(case, rounds)
        peaks = {method: in_a_process_of_its_own(peak_mb, case, method, chosen) for method in times}
        rows += rows_of(case, times, peaks, notes)
        choices[str(case)] = chosen
    result = {
        "rows": rows,
        "machine": machine(),
        "rounds": rounds["ours"],
        "reference_rounds": {method: rounds[method] for method in REFERENCES},
        "quick": quick,
        "choices": choices,
    }
    write_json(OUT / "dp_step.json", result)
    write_text(OUT / "dp_step.md", table(result))
    print(table(result))


if __name__ == "__main__":
    main()
