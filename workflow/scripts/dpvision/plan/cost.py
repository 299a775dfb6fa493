"""What a job costs, counted from its spec: arithmetic and memory. No network is built for it, so the plan stays light.

A family of models is a function that names its layers; tests hold the counts against those of the real networks.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from dpvision.plan import specs
from dpvision.plan.specs import Spec
from dpvision.training import optimizers

FORWARD_AND_BACKWARD = 3  # the gradients of inputs and of weights cost one forward pass each
HESSIAN_PRODUCT = 3 * FORWARD_AND_BACKWARD  # the derivative of a gradient, and the gradient itself
NUMBER = 4  # bytes, of float32
AT_ONCE = 32  # images that a core has in work (privacy/fast.py)
COPIES = 4  # of every layer's output: itself, what normalisation and activation make of it, its gradient
START = 120  # seconds until the first step, on a node that reads everything from a shared disk
STEP = 0.1  # seconds that a step takes beside its arithmetic


@dataclass(frozen=True)
class Layer:
    """A convolution, or a linear layer, which is one at a single position."""

    inputs: int
    outputs: int
    kernel: int
    positions: int

    @property
    def weights(self) -> int:
        return self.inputs * self.outputs * self.kernel**2


def _resnet9(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    channels, height, width = shape
    c64, c128, c256 = (round(c * model["width"]) for c in (64, 128, 256))
    inputs = channels
    for outputs, halvings in [(c64, 0), (c128, 0), (c128, 1), (c128, 1), (c256, 1), (c256, 2), (c256, 3), (c256, 3)]:
        yield Layer(inputs, outputs, 3, (height >> halvings) * (width >> halvings))
        inputs = outputs
    yield Layer(4 * c256, classes, 1, 1)


def _resnet50(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    channels, height, width = shape
    inputs = round(64 * model["width"])
    yield Layer(channels, inputs, 7, -(-height // 2) * -(-width // 2))
    c, before = inputs, -(-height // 4) * -(-width // 4)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        positions = -(-height // 2 ** (stage + 2)) * -(-width // 2 ** (stage + 2))
        for block in range(blocks):
            if block == 0:
                yield Layer(inputs, 4 * c, 1, positions)
            yield Layer(inputs, c, 1, positions if block else before)
            yield Layer(c, c, 3, positions)
            yield Layer(c, 4 * c, 1, positions)
            inputs = 4 * c
        c, before = 2 * c, positions
    yield Layer(inputs, classes, 1, 1)


def _wrn(model: dict[str, Any], shape: list[int], classes: int) -> Iterator[Layer]:
    channels, height, width = shape
    yield Layer(channels, 16, 3, height * width)
    inputs = 16
    for stage in range(3):
        outputs = 2**stage * 16 * model["width"]
        positions = -(-height // 2**stage) * -(-width // 2**stage)
        for block in range((model["depth"] - 4) // 6):
            if block == 0:
                yield Layer(inputs, outputs, 1, positions)
            yield Layer(inputs, outputs, 3, positions)
            yield Layer(outputs, outputs, 3, positions)
            inputs = outputs
    yield Layer(inputs, classes, 1, 1)


FAMILIES: dict[str, Callable[[dict[str, Any], list[int], int], Iterator[Layer]]] = {
    "resnet9": _resnet9,
    "resnet50": _resnet50,
    "wrn": _wrn,
}


class Network:
    """Counts of a run's network."""

    def __init__(self, run: Spec) -> None:
        data = run["data"]
        layers = list(FAMILIES[run["model"]["family"]](run["model"], data["shape"], data["classes"]))
        self.multiply_adds = sum(layer.weights * layer.positions for layer in layers)
        self.parameters = sum(layer.weights for layer in layers)
        self.outputs = sum(layer.outputs * layer.positions for layer in layers)
        self.largest = max(layer.outputs * layer.positions for layer in layers)
        self.pixels = math.prod(data["shape"])
        self.examples = 2 * (data["train"] + data["test"]) * self.pixels  # bytes: in the file, which is mapped, and in use


@dataclass(frozen=True)
class Cost:
    """Of a job, whatever it runs on."""

    work: float
    """In multiply-adds."""
    steps: int
    """Each takes a while, however small the network."""
    memory: int
    """In bytes: examples, weights, a physical batch."""
    memory_a_core: int = 0
    """In bytes, where cores do the work of a graphics card."""
    devices: int = 1

    def minutes(self, speed: float) -> int:
        return math.ceil((START + self.steps * STEP + self.work / speed) / 60)

    def megabytes(self, cores: int) -> int:
        return math.ceil((self.memory + cores * self.memory_a_core) / 1e6)


def training(run: Spec, physical_batch: int) -> Cost:
    """All steps, and after every epoch the held-out and the test examples."""
    network, recipe, data = Network(run), run["recipe"], run["data"]
    steps, epochs = specs.step_count(run), len(specs.epoch_ends(run))
    views = recipe["augmentation"]["views"] if recipe["augmentation"] else 1
    images = steps * recipe["batch"] // specs.simulated(run) * views * FORWARD_AND_BACKWARD
    images += epochs * (data["validation"] + data["test"])
    memory = 8 * network.parameters * NUMBER  # weights, sums, averages and the optimiser's state
    memory += network.examples + physical_batch * views * (network.pixels + 3 * network.largest) * NUMBER
    # every image's activations and, at most, every example's gradient
    in_work = AT_ONCE * (COPIES * network.outputs + network.parameters) * NUMBER
    return Cost(images * network.multiply_adds, steps, memory, in_work, specs.device_count(run))


def record_bytes(run: Spec) -> int:
    """What a run leaves: its weights; all else is small."""
    return Network(run).parameters * NUMBER * (2 if run["recipe"]["averaging"] else 1)


def checkpoint_bytes(run: Spec) -> int:
    """While it is unfinished: weights, those of the best epoch, their average, and what the optimiser keeps for each."""
    recipe = run["recipe"]
    copies = 2 + (1 if recipe["averaging"] else 0) + optimizers.module(recipe["optimizer"]["name"]).COPIES
    return Network(run).parameters * NUMBER * copies


def search_worker(study: Spec, physical_batch: int, workers: int) -> Cost:
    """A worker's share of the trials, were none given up."""
    trial, trials = training(study["run"], physical_batch), -(-study["trials"] // workers)
    return replace(trial, work=trials * trial.work, steps=trials * trial.steps, devices=1)


def curvature(hessian: Spec, run: Spec, physical_batch: int) -> Cost:
    """Power iteration and Hutchinson's estimate as long as they may take, and the spectrum with all its vectors."""
    network = Network(run)
    products = 2 * hessian["iterations"] + hessian["lanczos_steps"]
    work = products * hessian["examples"] * HESSIAN_PRODUCT * network.multiply_adds
    memory = (hessian["lanczos_steps"] + 8) * network.parameters * NUMBER
    memory += network.examples + physical_batch * 2 * COPIES * network.outputs * NUMBER
    return Cost(work, products, memory)


def activations(analysis: Spec, run: Spec) -> Cost:
    """One pass; all outputs of a layer are kept."""
    network = Network(run)
    memory = network.examples + analysis["examples"] * COPIES * network.outputs * NUMBER
    return Cost(analysis["examples"] * network.multiply_adds, 1, memory)
