"""The cost of a private step against its plain twin: time and memory of one physical batch, method by method.

    python benchmarks/dp_step.py [full | quick]      -> results/benchmarks/dp_step.json, .md, .svg
    python benchmarks/dp_step.py only NAME …         -> the same of the full cases of these networks (networks.py)
    OMP_NUM_THREADS=1 … --processor-time             -> the same on a machine with other work: what one thread itself took
    python benchmarks/dp_step.py columns FILE.json …  -> a table with a column for each of these results

Every method gets the same weights and the same images. In each round every method has its turn, so that whatever else
the machine does meets all of them, and ratios are taken within a round. Memory is measured apart from time, each method
in a process of its own: what an allocator keeps after one would hide the next one's peak.
"""

import argparse
import contextlib
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

import matplotlib.pyplot as plt
import torch
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.overrides import TorchFunctionMode

from dpvision import memory
from dpvision.files import read_json, write_json, write_text
from dpvision.privacy.clipping import (
    Clipped,
    Gradients,
    OpacusHooks,
    Plain,
    Way,
    clip_factors,
    each_cross_entropy,
    flat,
    losses_of,
    losses_of_rows,
    norms_of,
    trainable,
)
from dpvision.privacy.fast import FORMATS, Choices, ClippedSum, in_threads, shares_of
from dpvision.privacy.mish import Mish, replaceable
from dpvision.provenance import processor
from dpvision.training.machine import device
from dpvision.training.precision import in_precision
from networks import CLASSES, NETWORKS

Clock = Callable[[], float]
OUT = Path(__file__).parents[1] / "results" / "benchmarks"
CLIP = 1.0
ALL_THREADS = torch.get_num_threads()
# Between clipped sums, relative to that of Opacus' hooks; a wrong method is not timed. Where rounding turns the sign of
# a ReLU's input the gradient jumps: in float32 every method is up to 0.4% away from float64 (WRN-16-4, 64 images).
TOLERANCE = 0.02


# --- methods ---


class ChannelsLast(Plain):
    """Plain with channels last: each pixel's channels beside one another in memory; the network follows its images."""

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        flat = images.reshape(-1, *images.shape[-3:]).to(memory_format=torch.channels_last)
        return super().__call__(flat.unflatten(0, images.shape[:-3]), labels)


class OpacusGhost(Clipped):
    """The fast gradient clipping of Opacus, ghost norms where it has them: one backward for the norms, one for the sum.

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
    """The gradient of one example's loss through the whole network by torch.func, mapped over the examples."""

    def __init__(self, network: nn.Module, clip: float) -> None:
        parameters = {name: p.detach() for name, p in network.named_parameters() if p.requires_grad}

        def loss(parameters: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
            forward: Any = lambda images: functional_call(network, parameters, (images,))  # noqa: E731
            rows, views = flat(image[None])
            return losses_of_rows(forward, rows, label[None], views, each_cross_entropy).sum()

        self.each = functools.partial(vmap(grad_and_value(loss), (None, 0, 0)), parameters)
        self.clip = clip

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        gradients, losses = self.each(images, labels)
        samples = list(gradients.values())
        norms = norms_of(samples)
        factors = clip_factors(norms, self.clip, samples[0].dtype)
        return Gradients([torch.tensordot(factors, sample, 1) for sample in samples], losses, norms)


class OurPlain(Plain):
    """The plain sum with this engine's tricks and nothing clipped: its parts, workers, memory format and Mish."""

    def __init__(self, network: nn.Module, choices: Choices) -> None:
        super().__init__(network)
        self.choices = choices

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        rows, views = flat(images)
        if rows.dim() == 4:
            rows = rows.to(memory_format=FORMATS[self.choices["memory_format"]])
        tasks = [functools.partial(self._share, share, views) for share in shares_of(rows, labels, views, self.choices)]
        sums, *others = in_threads(tasks, self.choices["workers"])
        for other in others:
            torch._foreach_add_(sums, other)
        return Gradients(sums, rows.new_zeros(0), None)

    def _share(self, share: list[tuple[Tensor, Tensor]], views: int) -> list[Tensor]:
        sums: list[Tensor] = []
        for rows, labels in share:
            with torch.enable_grad(), QuickMish() if self.choices.get("mish") == "pieces" else contextlib.nullcontext():
                loss = losses_of_rows(self.network, rows, labels, views, each_cross_entropy).sum()
            found = list(torch.autograd.grad(loss, self.parameters))
            sums = list(torch._foreach_add(sums, found)) if sums else found
        return sums


class QuickMish(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return Mish.apply(args[0]) if replaceable(func, args, kwargs or {}) else func(*args, **(kwargs or {}))


METHODS: dict[str, Callable[[nn.Module, float], Way]] = {
    "plain": lambda network, clip: Plain(network),
    "plain, channels last": lambda network, clip: ChannelsLast(network),
    "opacus hooks": OpacusHooks,
    "opacus ghost": OpacusGhost,
    "vmap": WholeModelVmap,
    "ours": ClippedSum,
}
OURS, OUR_PLAIN = "ours", "plain, our tricks"  # the latter takes the choices of the former
PLAIN = ("plain", "plain, channels last")
REFERENCES = ("opacus hooks", "opacus ghost", "vmap")

# Ratios of the slow references need fewer rounds than ours.
SELDOM = ("opacus ghost", "vmap")  # as slow as hooks: measured once a network of the first kinds
FULL_ROUNDS = dict.fromkeys([*METHODS, OUR_PLAIN], 5) | dict.fromkeys(REFERENCES, 2)
QUICK_ROUNDS = dict.fromkeys([*METHODS, OUR_PLAIN], 5) | {"opacus hooks": 2, "opacus ghost": 1, "vmap": 1}
SHORT = 0.05  # seconds: what is quicker is done several times in its turn


# --- cases ---


@dataclass(frozen=True)
class Case:
    name: str  # of a network
    views: int
    batch: int
    precision: str = "float32"

    def __str__(self) -> str:
        return f"{self.name}/{self.views}/{self.batch}/{self.precision}"

    def methods(self) -> list[str]:
        """Return the methods that make sense: channels last of pictures, references in float32."""
        out = set() if len(NETWORKS[self.name].shape) == 3 else {"plain, channels last"}
        out |= set() if self.precision == "float32" else set(REFERENCES)
        out |= set() if (self.name, self.views, self.batch) in (("resnet9", 1, 64), ("wrn16-4", 1, 64)) else set(SELDOM)
        return [method for method in METHODS if method not in out]

    def data(self) -> tuple[Tensor, Tensor]:
        torch.manual_seed(1)
        images = torch.randn(self.batch, *([self.views] if self.views > 1 else []), *NETWORKS[self.name].shape)
        return images.to(device()), torch.randint(CLASSES, (self.batch,)).to(device())

    def network(self) -> nn.Module:
        torch.manual_seed(0)
        return in_precision(NETWORKS[self.name].build().to(device()).train(), self.precision)


FULL = [
    *(Case("resnet9", *size) for size in ((1, 64), (1, 128), (16, 8))),
    *(Case("scaleresnet9", *size) for size in ((1, 64), (1, 128))),
    *(Case("wrn16-4", *size) for size in ((1, 64), (16, 8))),
    *(Case(name, 1, 64, "bfloat16") for name in ("resnet9", "wrn16-4")),
    Case("wrn40-4", 1, 16),
    Case("wrn40-4", 1, 16, "bfloat16"),
    Case("smoothnet", 1, 32),
    Case("resnet18", 1, 64),
    Case("resnet34", 1, 64),
    Case("densenet121", 1, 32),
    Case("efficientnet_b0", 1, 64),
    Case("resnet50", 1, 8),
    Case("wrn28-10", 1, 8),
    Case("nf_resnet50", 1, 4),
    Case("demo resnet9", 1, 128),
    Case("demo wrn", 1, 128),
    Case("lenet", 1, 64),
    Case("transformer", 1, 64),
    Case("head", 1, 50_000),
]
QUICK = [
    Case("resnet9", 1, 64),
    Case("wrn16-4", 1, 64),
    Case("resnet18", 1, 64),
    Case("demo resnet9", 1, 128),
    Case("transformer", 1, 64),
]


# --- time ---


def timed(way: Way, images: Tensor, labels: Tensor, clock: Clock = time.perf_counter) -> float:
    """Return the seconds of one call; the mean over several where it is short."""
    calls, begun = 0, clock()
    while True:
        _synchronise()
        way(images, labels)
        _synchronise()
        calls += 1
        if (passed := clock() - begun) > SHORT:
            return passed / calls


def _synchronise() -> None:
    if device().type == "cuda":
        torch.cuda.synchronize()


@dataclass
class Measured:
    """The times of a case: of each method in its rounds, which are the first ones; why a method has none."""

    times: dict[str, list[float]]
    notes: dict[str, str]
    choices: Choices
    deciding: float  # seconds of our first call


def measure(case: Case, rounds: dict[str, int], clock: Clock = time.perf_counter) -> Measured:
    images, labels = case.data()
    ways: dict[str, Any] = {}
    measured = Measured({}, {}, {}, 0.0)
    expected: list[Tensor] = []
    for method in case.methods():
        try:
            way: Any = METHODS[method](case.network(), CLIP)
            begun = clock()
            found = way(images, labels)
        except (NotImplementedError, RuntimeError, ValueError, AttributeError) as error:  # errors of other libraries' methods
            if method not in REFERENCES:
                raise
            measured.notes[method] = str(error).strip().splitlines()[0]
            continue
        if method == OURS:
            measured.deciding, measured.choices = clock() - begun, way.choices
            found = way(images, labels)  # the first call was for its choices
            ways[OUR_PLAIN] = OurPlain(case.network(), way.choices)
        if method == "opacus hooks":
            expected = found.sums
        if expected and found.norms is not None and (apart := distance(found.sums, expected)) > TOLERANCE:
            measured.notes[method] = f"wrong: its clipped sum is {apart:.1%} away from that of Opacus' hooks"
        else:
            ways[method] = way
    measured.times = {method: [] for method in ways}
    for n in range(max(rounds.values())):
        for method, way in ways.items():
            if n < rounds[method]:
                measured.times[method].append(timed(way, images, labels, clock))
    return measured


def distance(sums: list[Tensor], expected: list[Tensor]) -> float:
    """Return how far two sums are apart, over all parameters together, relative to the expected one."""
    there, here = (torch.cat([part.flatten().double() for part in parts]) for parts in (expected, sums))
    return float((here - there).norm() / there.norm())


# --- memory ---


def peak_of(call: Callable[[], object]) -> float | None:
    """Return the MB that a call needs above what there is before it, at its highest; none where the system does not tell."""
    if device().type == "cpu" and not memory.RESET.exists():
        return None
    with memory.peak_mb(device()) as before:
        pass
    with memory.peak_mb(device()) as highest:
        call()
    return highest[0] - before[0]


def peak_mb(case: Case, method: str, choices: Any) -> float | None:
    """Return a method's peak, ours with the choices that were timed. Two examples go first, for what PyTorch loads then."""
    images, labels = case.data()
    settle_threads(case)
    if method in (OURS, OUR_PLAIN):
        network = case.network()
        way: Way = ClippedSum(network, CLIP, choices=choices) if method == OURS else OurPlain(network, choices)
    else:
        way = METHODS[method](case.network(), CLIP)
    way(images[:2], labels[:2])
    return peak_of(lambda: way(images, labels))


def in_a_process_of_its_own(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a fork of a server that has imported what takes long and computed nothing: it starts quickly."""
    os.environ["MALLOC_MMAP_THRESHOLD_"] = "65536"  # there, not here: what is freed goes back to the system at once
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["opacus.grad_sample", "dpvision.models.catalogue", "dpvision.privacy.fast"])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


# --- rows ---


def rows_of(case: Case, measured: Measured, peaks: dict[str, float | None]) -> list[dict[str, Any]]:
    """Return one row a method. Ratios are medians over the rounds that both sides took part in."""
    times = measured.times
    baseline = [min(together) for together in zip(*(times[m] for m in PLAIN if m in times), strict=True)]
    quickest = [min(pair) for pair in zip(baseline, times.get(OUR_PLAIN, baseline), strict=False)]
    plain_peaks = [peak for method in PLAIN if (peak := peaks.get(method))]
    hooks = times.get("opacus hooks", [])
    images = case.views * case.batch
    rows = []
    for method in [*case.methods(), OUR_PLAIN]:
        mine = times.get(method, [])
        peak = peaks.get(method)
        rows.append(
            {
                "network": NETWORKS[case.name].label,
                "shape": list(NETWORKS[case.name].shape),
                "threads": NETWORKS[case.name].threads,
                "views": case.views,
                "batch": case.batch,
                "precision": case.precision,
                "method": method,
                "ms_per_image": round(1000 * statistics.median(mine) / images, 5) if mine else None,
                "ms_per_image_best": round(1000 * min(mine) / images, 5) if mine else None,
                "ratio_to_plain": _median_ratio(mine, baseline),
                "ratio_to_quickest_plain": _median_ratio(mine, quickest),
                "ratio_to_hooks": _median_ratio(hooks, mine),
                "peak_mb": None if peak is None else round(peak, 1),
                "ratio_of_peaks": round(peak / min(plain_peaks), 2) if peak and plain_peaks else None,
                "deciding_seconds": round(measured.deciding, 2) if method == OURS else None,
                "deciding_plain_steps": round(measured.deciding / statistics.median(baseline), 1) if method == OURS else None,
                "note": measured.notes.get(method),
            }
        )
    return rows


def _median_ratio(above: list[float], below: list[float]) -> float | None:
    ratios = [a / b for a, b in zip(above, below, strict=False)]  # the shorter one took part in the first rounds
    return round(statistics.median(ratios), 3) if ratios else None


def machine() -> dict[str, Any]:
    name = torch.cuda.get_device_name() if device().type == "cuda" else processor()
    return {"device": name, "threads": ALL_THREADS, "torch": torch.__version__}


def name_of(row: dict[str, Any]) -> str:
    size = " x ".join(map(str, row["shape"]))
    alone = ", one thread" if row["threads"] == 1 else ""
    return f"{row['network']}, {size}, {row['views']} x {row['batch']}, {row['precision']}{alone}"


def table(result: dict[str, Any]) -> str:
    """Return the results in Markdown: what our step costs in each case, then every method's row."""
    rows, where = result["rows"], result["machine"]
    fewer = ", ".join(f"{method}: {n}" for method, n in result["reference_rounds"].items())
    caption = (
        "**What a private step costs against its plain twin.** One call of each method on one physical batch of B examples "
        f"with K views each, {CLASSES} classes: the sum of per-example gradients "
        f"clipped to {CLIP:g} (plain: the gradient of the summed loss, not private). Time: median of {result['rounds']} "
        f"rounds ({fewer}), over K x B. In a round every method has its turn; ratios are medians of the "
        "ratios within a round. Ratio to plain: to the faster one of that round's plain calls of PyTorch, images "
        "contiguous or channels last. Clipping alone: to the quickest plain call, this engine's tricks included. Peak: memory "
        "above the state before the call, measured once, in a process of its own, beside plain's least. Deciding: our first "
        f"call, in seconds and in plain steps. {where['device']}, {where['threads']} threads, torch {where['torch']}."
    )
    ours = [row for row in rows if row["method"] == OURS]
    hooks = {name_of(row): row["ratio_to_plain"] for row in rows if row["method"] == "opacus hooks"}
    head = ["network, input, K x B", "ratio to plain", "clipping alone", "Opacus' hooks", "peak to plain's", "deciding"]
    lines = [head, ["---"] + ["---:"] * 5]
    for row in ours:
        deciding = f"{row['deciding_seconds']:.1f} s, {row['deciding_plain_steps']:.0f} steps"
        numbers = (row["ratio_to_plain"], row["ratio_to_quickest_plain"], hooks.get(name_of(row)), row["ratio_of_peaks"])
        lines.append([name_of(row), *(_number(n, ".2f") for n in numbers), deciding])
    every = [["network, input, K x B", "method", "ms an image", "ratio to plain", "times faster than hooks", "peak MB"]]
    every.append(["---"] * 2 + ["---:"] * 4)
    for row in rows:
        forms = {"ms_per_image": ".4g", "ratio_to_plain": ".2f", "ratio_to_hooks": ".2f", "peak_mb": ".0f"}
        every.append([name_of(row), row["method"], *(_number(row[key], form) for key, form in forms.items())])
    notes = [f"{name_of(row)}, {row['method']}: {row['note']}.\n" for row in rows if row["note"]]
    return "\n".join([caption, "", *_markdown(lines), "", *_markdown(every), "", *notes])


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _markdown(lines: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in lines]


def columns(files: list[Path]) -> str:
    """Return the ratios of several machines side by side, in Markdown."""
    results = [read_json(file) for file in files]
    found = [{name_of(row): row["ratio_to_plain"] for row in r["rows"] if row["method"] == OURS} for r in results]
    machines = [f"{r['machine']['device']}, torch {r['machine']['torch']}" for r in results]
    names = dict.fromkeys(name for ratios in found for name in ratios)
    lines = [["ratio to plain", *machines], ["---"] + ["---:"] * len(results)]
    lines += [[name, *(_number(ratios.get(name), ".2f") for ratios in found)] for name in names]
    return "\n".join(_markdown(lines))


def picture(result: dict[str, Any], file: Path) -> None:
    """Draw the ratios by network: ours, and Opacus' hooks where they did not refuse."""
    labels = [name_of(row) for row in result["rows"] if row["method"] == OURS]
    figure, axes = plt.subplots(figsize=(9, 0.36 * len(labels) + 1.2))
    for shift, (method, shade) in enumerate([(OURS, "0.2"), ("opacus hooks", "0.75")]):
        ratios = {name_of(row): row["ratio_to_plain"] for row in result["rows"] if row["method"] == method}
        places = [i + 0.4 * shift for i, label in enumerate(labels) if ratios.get(label)]
        bars = axes.barh(places, [ratios[label] for label in labels if ratios.get(label)], 0.38, color=shade, label=method)
        axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=7)
    axes.set_yticks([i + 0.2 for i in range(len(labels))], labels, fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log", base=2)
    axes.set_xticks([0.5, 1, 2, 4, 8, 16, 32], ["0.5", "1", "2", "4", "8", "16", "32"])
    axes.set_xlim(0.5, 40)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("time of a private step over that of the faster plain step")
    axes.legend(frameon=False)
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def settle_threads(case: Case) -> None:
    torch.set_num_threads(NETWORKS[case.name].threads or ALL_THREADS)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of a private step, beside its plain twin.")
    parser.add_argument("scope", nargs="?", choices=["full", "quick", "only", "columns"], default="full")
    parser.add_argument("--processor-time", action="store_true", help="beside other work; wants OMP_NUM_THREADS=1")
    parser.add_argument("of", nargs="*", help="the names of networks for only, the files for columns")
    asked = parser.parse_args()
    if asked.scope == "columns":
        print(columns([Path(file) for file in asked.of]))
        return
    quick = asked.scope == "quick"
    cases, rounds = (QUICK, QUICK_ROUNDS) if quick else (FULL, FULL_ROUNDS)
    if asked.scope == "only":
        cases = [case for case in FULL if case.name in asked.of]
    clock = time.process_time if asked.processor_time else time.perf_counter
    rows, choices = [], {}
    for n, case in enumerate(cases):
        print(f"{n + 1} of {len(cases)}: {case}", file=sys.stderr, flush=True)
        settle_threads(case)
        measured = measure(case, rounds, clock)
        peaks = {method: in_a_process_of_its_own(peak_mb, case, method, measured.choices) for method in measured.times}
        rows += rows_of(case, measured, peaks)
        choices[str(case)] = measured.choices
    result = {
        "rows": rows,
        "machine": machine(),
        "rounds": rounds[OURS],
        "reference_rounds": {method: rounds[method] for method in REFERENCES},
        "quick": quick,
        "choices": choices,
    }
    write_json(OUT / "dp_step.json", result)
    write_text(OUT / "dp_step.md", table(result))
    picture(result, OUT / "dp_step.svg")
    print(table(result))


if __name__ == "__main__":
    main()
