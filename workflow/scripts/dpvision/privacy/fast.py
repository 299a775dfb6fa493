"""The clipped sum at nearly the price of the plain one.

One forward and one backward pass under a tape (`tape.py`) leave, for every use of a weight, each example's squared
norm and a way to the weighted sum (`contributions.py`). Squared norms add up over the weights, factors follow from
norms, sums from factors: there is no second pass, and gradients are kept in memory only where that is quickest.

How each layer does it (`convolution.py`), how images lie in memory, how many pass through the network at once: all
this is decided by timing, once, on the first batch. `choices` says what was decided, and given again makes a run
repeatable bit for bit. On a CPU every core works on examples of its own.

First of all a few made-up examples are worked out by PyTorch's own gradient of one loss at a time, too (`check.py`): what
the tape missed, or a network that mixes its examples, does not pass.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dpvision.memory import peak_mb
from dpvision.privacy.candidates import candidates
from dpvision.privacy.check import NOT_UNDERSTOOD, check
from dpvision.privacy.clipping import (
    Clipped,
    Gradients,
    Loss,
    NotOnePerExample,
    clip_factors,
    each_cross_entropy,
    flat,
    losses_of_rows,
    trainable,
)
from dpvision.privacy.contributions import Contribution, Deferred, Rooms, Vectors, Ways, Weight, keep
from dpvision.privacy.rules import Refused
from dpvision.privacy.tape import Expansion, Tape

log = logging.getLogger(__name__)

Choices = dict[str, Any]
Kinds = dict[str, str]  # of layers: all that the times of their ways depend on
Times = dict[str, dict[str, float]]  # in seconds, of each way of each layer

FORMATS = {"contiguous": torch.contiguous_format, "channels last": torch.channels_last}
CLEARLY = 0.9  # of the time of what was quickest so far
HOPELESS = 3  # times as slow as the quickest, in its first call: not timed again
ENOUGH = 0.2  # seconds for the timing of one choice: a chance that shorter ones give to noise
SHORT = 0.002  # seconds for one way of one layer: below, noise is louder, and five times are taken
PASSES = 2  # over the layers, in which every way has a turn
UNTIMED: Choices = {"workers": 1, "images": 64, "memory_format": "contiguous", "mish": "torch", "layers": {}}


class ClippedSum(Clipped):
    """The sum of a batch's clipped per-example gradients, of any network and any loss that is one number an example.

    The network stays as it is: no wrapper, no hooks. Inputs come as [examples, ...], or as [examples, views, ...] with
    K `views` of each, whose losses are averaged; labels are whatever the loss takes, the examples first.

    `choices`, of an earlier one for the same network, are taken instead of timing, and so is what `earlier` returns for
    a network's kinds of layers; `memory_mb` limits what is tried.
    """

    def __init__(
        self,
        network: nn.Module,
        clip: float,
        *,
        loss: Loss = each_cross_entropy,
        views: int | None = None,
        choices: Choices | None = None,
        memory_mb: float = math.inf,
        earlier: Callable[[Kinds], Choices] | None = None,
    ) -> None:
        if not 0 < clip < math.inf:
            raise ValueError(f"gradients are clipped to a positive, finite norm, not to {clip}")
        self.network, self.clip, self.loss, self.views = network, clip, loss, views
        self.memory_mb, self.earlier = memory_mb, earlier
        self.parameters = trainable(network)
        self.choices: Choices = choices or {}
        self.checked, self.expanding = set[Any](), set[Expansion]()
        self.in_turn, self.kinds = False, Kinds()  # as the check says
        self.workers: list[Worker] = []

    def __call__(self, images: Tensor, labels: Tensor) -> Gradients:
        if len(images) != len(labels):
            raise ValueError(f"there are {len(images)} inputs and {len(labels)} labels: {self._needed_shapes()}")
        if not len(labels):
            return self._nothing(images)
        if (state := self._state()) not in self.checked:
            self.check(images, labels)
            self.checked.add(state)
        if not self.choices:
            self.choices = (self.earlier(self.kinds) if self.earlier else {}) or self.timed(images, labels)
            log.info("clipped gradients by %s", self.choices)
        return self.run(images, labels, self.clip, self.choices)

    def run(self, images: Tensor, labels: Tensor, clip: float, choices: Choices) -> Gradients:
        """Clip in parts, shared out among the workers; add the sums up in one order."""
        if self.in_turn:
            choices = {**choices, "workers": 1}
        images, views = flat(images.detach(), self.views)
        if images.dim() == 4:
            images = images.to(memory_format=FORMATS[choices["memory_format"]])
        while len(self.workers) < choices["workers"]:
            self.workers.append(Worker(self, self.expanding))
        shares = shares_of(images, labels, views, choices)
        precision = precision_of(images.device)  # of this thread, for all
        tasks = [partial(w.run, share, clip, choices, precision) for w, share in zip(self.workers, shares, strict=False)]
        return _added(in_threads(tasks, choices["workers"]))

    def _state(self) -> Any:
        """Return what a check holds for: modes and precision of the network, whose parameters are those of the beginning."""
        there = {id(p) for p in self.network.parameters()}
        if not all(id(p) in there for p in self.parameters):
            raise Refused("a parameter of the network was replaced by another; make another ClippedSum")
        return tuple(p.dtype for p in self.parameters), tuple(module.training for module in self.network.modules())

    def check(self, images: Tensor, labels: Tensor) -> None:
        """Compare a few made-up examples with PyTorch's own gradients, of the network as it is."""
        try:
            self.in_turn, self.kinds, self.expanding = check(self, images, labels)
        except NotOnePerExample as error:
            raise ValueError(
                f"{error}. They were made up, like your {len(labels)}, to try the loss before the first step"
            ) from None

    def _needed_shapes(self) -> str:
        """Say in which shapes inputs and labels come."""
        inputs = "[examples, ...]" if self.views in (None, 1) else f"[examples, {self.views} views, ...]"
        return f"inputs must be {inputs}, with one label per example"

    def unclipped(self, rows: Tensor, labels: Tensor, expanding: set[Expansion] | None) -> "tuple[Gradients, Worker]":
        """Return what a worker of its own makes of examples whose gradients are all shorter than C, and that worker."""
        worker = Worker(self, expanding)
        return worker.run([(rows, labels)], torch.finfo(torch.float32).max, UNTIMED, precision_of(rows.device)), worker

    def timed(self, images: Tensor, labels: Tensor) -> Choices:
        """Return the quickest choices by time an image, found one after the other."""
        with torch.random.fork_rng([images.device] if images.is_cuda else []):  # as if they had been given
            return self._timed(images, labels)

    def _timed(self, images: Tensor, labels: Tensor) -> Choices:
        worth = candidates(images.device)
        if self.in_turn:
            worth = replace(worth, workers=(1,))
        usual = {**UNTIMED, "workers": worth.workers[0], "images": worth.images[0], "mish": worth.mish[0]}
        cut = partial(self._part, images, labels)
        best, cost = usual, Cost(math.inf, 0, 0)
        for memory_format in worth.memory_formats:
            tried = self._with_layers({**usual, "memory_format": memory_format}, *cut(usual))
            found = self._cost(tried, *cut(tried))
            if found.seconds < CLEARLY * cost.seconds:
                best, cost = tried, found
        timed_at, share = best["images"], math.ceil(len(labels) * self._views(images) / best["workers"])
        for before, size in pairwise(min(size, share) for size in worth.images):
            if size == before or cost.base_mb + cost.growth_mb * size / before > self.memory_mb:
                break  # this size is no larger, or would not fit
            tried = {**best, "images": size}
            found = self._cost(tried, *cut(tried))
            if found.seconds >= cost.seconds:
                break
            best, cost = tried, found
        changes = [{"workers": workers, "images": best["images"] * best["workers"]} for workers in worth.workers[1:]]
        has_mish = self.workers[0].replaced
        changes += [{"mish": mish} for mish in worth.mish[1:]] if has_mish else []
        for change in changes:
            tried = {**best, **change}
            found = self._cost(tried, *cut(tried))
            if found.seconds < CLEARLY * cost.seconds:
                best, cost = tried, found
        if best["images"] > timed_at:
            best = self._with_layers({**best, "layers": {}}, *cut(best))
        if not has_mish:
            del best["mish"]
        return best

    def _views(self, images: Tensor) -> int:
        return flat(images, self.views)[1]

    def _part(self, images: Tensor, labels: Tensor, choices: Choices) -> tuple[Tensor, Tensor]:
        """Return as many examples as all workers have at once."""
        count = min(len(labels), choices["workers"] * max(1, choices["images"] // self._views(images)))
        return images[:count], labels[:count]

    def _with_layers(self, choices: Choices, images: Tensor, labels: Tensor) -> Choices:
        """Time the ways of each layer on one worker's part."""
        few, alone = math.ceil(len(labels) / choices["workers"]), {**choices, "workers": 1}
        watch = Stopwatch()
        worker = Worker(self, self.expanding, watch)
        self.workers = [worker]
        task = partial(self.run, images[:few], labels[:few], self.clip, alone)
        for _ in range(PASSES):
            in_threads([task], choices["workers"])
            watch.next_pass()
        self.workers = []
        return {**choices, "layers": watch.quickest(worker.kinds)}

    def _cost(self, choices: Choices, images: Tensor, labels: Tensor) -> "Cost":
        with peak_mb(images.device) as before:
            pass
        with peak_mb(images.device) as peak:
            self.run(images, labels, self.clip, choices)
        times = [_seconds(lambda: self.run(images, labels, self.clip, choices)) for _ in range(2)]
        while sum(times) < ENOUGH:
            times.append(_seconds(lambda: self.run(images, labels, self.clip, choices)))
        return Cost(min(times) / (len(labels) * self._views(images)), before[0], peak[0] - before[0])

    def _nothing(self, images: Tensor) -> Gradients:
        none = images.new_zeros(0)
        return Gradients([torch.zeros_like(p) for p in self.parameters], none, none.double())


class Cost(NamedTuple):
    """The cost of a choice: the seconds an image, the memory there was before, and by how much it grew at the highest."""

    seconds: float
    base_mb: float
    growth_mb: float


class Worker:
    """A worker clips part after part, and keeps the memory that it borrowed. With a stopwatch it times the ways of layers."""

    def __init__(self, way: ClippedSum, expanding: set[Expansion] | None, watch: "Stopwatch | None" = None) -> None:
        self.network, self.parameters, self.loss, self.watch = way.network, way.parameters, way.loss, watch
        self.expanding = expanding  # as the tape takes it
        self.names = {id(p): name for name, p in way.network.named_parameters()}
        self.kinds: Kinds = {}  # of layers whose way is not chosen yet
        self.rooms = Rooms()
        self.rough, self.replaced, self.used, self.expanded = False, False, set[int](), set[Expansion]()

    def run(
        self, parts: Iterable[tuple[Tensor, Tensor]], clip: float, choices: Choices, precision: tuple[str, torch.dtype, bool]
    ) -> Gradients:
        """Clip the parts outside autocast, which is for network and loss: gradients are normed and summed as they come."""
        self.precision = precision
        with torch.autocast(precision[0], enabled=False):
            return self._run(parts, clip, choices)

    def _run(self, parts: Iterable[tuple[Tensor, Tensor]], clip: float, choices: Choices) -> Gradients:
        self.weights = {id(p): Weight(p) for p in self.parameters}  # as they are now
        self.totals: dict[int, tuple[Weight, Tensor]] = {}  # over the parts, by weight
        losses, norms = zip(*[self.part(*part, clip, choices) for part in parts], strict=True)
        sums: dict[int, Tensor] = {}
        for weight, total in self.totals.values():
            for p, pulled in zip(weight.parameters, weight.pull(total), strict=True):
                sums[id(p)] = sums[id(p)] + pulled if id(p) in sums else pulled
        found = [sums[id(p)] if id(p) in sums else torch.zeros_like(p) for p in self.parameters]
        return Gradients(found, torch.cat(losses), torch.cat(norms))

    def part(self, images: Tensor, labels: Tensor, clip: float, choices: Choices) -> tuple[Tensor, Tensor]:
        """Return losses and norms; the sums go to the totals."""
        self.layers = choices["layers"]
        self.rooms.next_part()
        views, last = len(images) // len(labels), choices["memory_format"] == "channels last"
        quick = choices.get("mish") == "pieces"
        tape = Tape(self.names, self.weights, len(labels), self.choose, self.rooms, quick, last, self.expanding)
        with torch.autocast(*self.precision), tape, torch.enable_grad():
            losses = losses_of_rows(self.network, tape.watch(images), labels, views, self.loss)
        if missed := {id(p) for p in leaves_of(losses)} & {id(p) for p in self.parameters}:  # past the tape
            first = next(p for p in self.parameters if id(p) in missed)
            raise Refused(f"{self.names[id(first)]}: {NOT_UNDERSTOOD}")
        losses.sum().backward(inputs=[tape.start])  # and into nothing else: what was unfrozen since is not clipped
        self.rough, self.used, self.replaced, self.expanded = tape.rough, set(tape.uses), tape.replaced, tape.expanded
        contributions = list(_merge_shared_weights(tape))
        vectors = [Vectors(tape.vectors)] if tape.vectors else []
        losses = losses.detach()
        squares = [c.squares for c in (*contributions, *vectors)]
        norms = torch.stack(squares).sum(0).sqrt() if squares else losses.new_zeros(len(losses), dtype=torch.float64)
        finite = norms.isfinite()
        if not finite.all():  # contributes nothing; times 0 it would still be NaN
            if finite.any():
                self.part(images.unflatten(0, (-1, views))[finite].flatten(0, 1), labels[finite], clip, choices)
            return losses, norms
        factors = clip_factors(norms, clip, self.parameters[0].dtype)
        totals = [(c.weight, c.total(factors)) for c in contributions]
        for weight, total in (*totals, *(total for v in vectors for total in v.totals(factors))):
            so_far = self.totals.get(id(weight))
            self.totals[id(weight)] = (weight, total if so_far is None else so_far[1].add_(total))
        return losses, norms

    def choose(self, key: str, ways: Ways, kind: Callable[[], str], worth: Callable[[Ways], Ways]) -> Contribution:
        if key in self.layers:
            name = self.layers[key]
        else:
            self.kinds[key], ways = kind(), worth(ways)
            name = self.watch.note(self.kinds[key], ways) if self.watch else next(iter(ways))
        if name not in ways:
            raise ValueError(f"{key}: no way called {name!r} fits it; there are {', '.join(ways)}")
        return ways[name]()


def leaves_of(t: Tensor) -> Iterable[Tensor]:
    """All tensors into which a backward pass from here would add gradients."""
    ahead, seen = [t.grad_fn], set[Any]()
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        ahead += [below for below, _ in node.next_functions]


def precision_of(device: torch.device) -> tuple[str, torch.dtype, bool]:
    """Return what `torch.autocast` takes to be as it is in this thread."""
    return device.type, torch.get_autocast_dtype(device.type), torch.is_autocast_enabled(device.type)


def _merge_shared_weights(tape: Tape) -> Iterable[Contribution]:
    """Yield one contribution a weight that is used once; what several uses add to a parameter is added up for every example."""
    samples: dict[int, tuple[Tensor, Tensor]] = {}
    for contribution in tape.contributions:
        if tape.alone(contribution.weight):
            yield contribution
            continue
        assert not isinstance(contribution, Deferred)
        for p, more in zip(contribution.weight.parameters, contribution.weight.pull_each(contribution.samples), strict=True):
            samples[id(p)] = (p, samples[id(p)][1] + more if id(p) in samples else more)
    for p, sample in samples.values():
        yield keep(tape.weights[id(p)], sample)


class Stopwatch:
    """The times of the ways of layers, by the kind of layer."""

    def __init__(self) -> None:
        self.times: Times = {}
        self.done = set[str]()  # in this pass

    def note(self, kind: str, ways: Ways) -> str:
        """Time each way's norms and sum, once a pass for each kind; say which is the quickest so far."""
        times = self.times.setdefault(kind, {})
        if len(ways) == 1:
            times.update(dict.fromkeys(ways, 0.0))  # there is nothing to choose
        elif kind not in self.done:
            self.done.add(kind)
            for name, way in ways.items():
                if times and times.get(name, 0) > HOPELESS * min(times.values()):
                    continue

                def whole(way: Callable[[], Contribution] = way) -> None:
                    found = way()
                    found.total(torch.ones_like(found.squares, dtype=found.weight.value.dtype))

                seconds = _seconds(whole)  # a first call also makes ready what it calls
                if seconds < SHORT:
                    seconds = min(_seconds(whole) for _ in range(5))
                times[name] = min(seconds, times.get(name, math.inf))
        return quickest(times)

    def next_pass(self) -> None:
        self.done.clear()

    def quickest(self, kinds: Kinds) -> dict[str, str]:
        """Return the quickest way of each layer."""
        return {layer: quickest(self.times[kind]) for layer, kind in kinds.items()}


def quickest(times: dict[str, float]) -> str:
    """Return the quickest; what is ahead by little stays behind: timings are noisy, and the first asks for least memory."""
    name, best = next(iter(times.items()))
    for candidate, seconds in times.items():
        if seconds < CLEARLY * best:
            name, best = candidate, seconds
    return name


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def shares_of(rows: Tensor, labels: Tensor, views: int, choices: Choices) -> list[list[tuple[Tensor, Tensor]]]:
    """Cut a batch into parts, and share these out among the workers."""
    count, workers = len(labels), choices["workers"]
    parts = math.ceil(count / max(1, choices["images"] // views))
    parts = min(count, math.ceil(parts / workers) * workers)
    bounds = [i * count // parts for i in range(parts + 1)]
    cut = [(rows[a * views : b * views], labels[a:b]) for a, b in pairwise(bounds)]
    shares = [cut[i * parts // workers : (i + 1) * parts // workers] for i in range(workers)]
    return [share for share in shares if share]


def in_threads(tasks: Sequence[Callable[[], Any]], workers: int) -> list[Any]:
    """Do the tasks, each on one core where there are several workers, else on all cores."""
    return [task() for task in tasks] if workers == 1 else list(_pool(len(tasks)).map(_on_one_core, tasks))


def _added(parts: list[Gradients]) -> Gradients:
    sums = parts[0].sums
    for part in parts[1:]:
        torch._foreach_add_(sums, part.sums)
    norms = torch.cat([part.norms for part in parts if part.norms is not None])
    return Gradients(sums, torch.cat([part.losses for part in parts]), norms)


@lru_cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers)


def _on_one_core(work: Callable[[], Any]) -> Any:
    torch.get_num_threads()  # sets the thread up; only then does it keep what it is told
    torch.set_num_threads(1)
    return work()
