"""The cost of a job, counted from its spec: arithmetic and memory. No network is built for it, so the plan stays light.

A family of models names its layers, or has a table that its networks were counted for; tests hold the counts against those
of the real networks.
"""

import functools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from dpvision.data.held import are_held
from dpvision.files import digest, read_json
from dpvision.models.found import FAMILIES
from dpvision.models.options import Counts, counts_of_layers
from dpvision.plan import specs
from dpvision.plan.renyi import steps_within
from dpvision.plan.specs import Spec
from dpvision.training import optimizers

FORWARD_AND_BACKWARD = 3  # the gradients of inputs and of weights cost one forward pass each
PASSES = {"all": FORWARD_AND_BACKWARD, "norms": 2, "head": 1}  # by what trains: there are gradients of what it needs alone
HESSIAN_PRODUCT = 3 * FORWARD_AND_BACKWARD  # the derivative of a gradient, and the gradient itself
NUMBER = 4  # bytes, of float32
AT_ONCE = 32  # images that a core has in work (privacy/fast.py)
FEATURES_AT_ONCE = 256  # images that pass through the network together (training/features.py)
INDEXED = 256  # bytes of a picture that is in a file: its line in the index, its label
ATTACKED_AT_ONCE = 16  # models, or images of views, of an attack that train side by side (audit/worlds.py)
CANARIES = 392  # canaries of a run in each world (audit/canaries.py)
COPIES = 4  # copies of every layer's output: itself, what normalisation and activation make of it, its gradient
START = 120  # seconds until the first step, on a node that reads everything from a shared disk
STEP = 0.1  # seconds that a step takes beside its arithmetic
UNCOUNTED = Counts(math.inf, 0, 0, 0)  # endless, so that jobs ask for as much as the scale allows, and for its memory alone


def counts_of(run: Spec) -> Counts:
    """Return the counts of a run's network: by its family's `layers`, or from the table beside the family's options."""
    family, data = FAMILIES[run["model"]["family"]], run["data"]
    if hasattr(family, "layers"):
        return counts_of_layers(family.layers(run["model"], data["shape"], data["classes"]))
    return _table(table_of(family)).get(counts_key(run), UNCOUNTED)


def counts_key(run: Spec) -> str:
    """Return what a run's network is called in its family's table; what a search finds is left out of it."""
    planned = specs.as_planned(run)
    open_to_all = specs.with_values(planned, dict.fromkeys(specs.searched_keys(planned)))
    model = {key: value for key, value in open_to_all["model"].items() if value is not None}
    return digest({"model": model, "shape": run["data"]["shape"], "classes": run["data"]["classes"]})


def table_of(family: ModuleType) -> Path:
    """Return the file with the counts of a family without `layers`; models/count.py writes it."""
    return Path(family.__file__ or "").with_name("counts.json")


@functools.cache
def _table(file: Path) -> dict[str, Counts]:
    return {key: Counts(**counts) for key, counts in read_json(file).items()} if file.exists() else {}


def _bytes_of_examples(run: Spec) -> int:
    """Return the size of all examples: in the file, which is mapped, and in use. Those that are not held are read by pieces."""
    data = run["data"]
    if data.get("streamed"):
        return INDEXED * (data["train"] + data["test"])
    of_a_number = 2 + NUMBER if data.get("kind") == "features" else 2
    held = sum(count for count in (data["train"], data["test"]) if are_held(count, data["shape"]))
    return of_a_number * held * math.prod(data["shape"])


@dataclass(frozen=True)
class Cost:
    """The cost of a job, whatever machine it runs on."""

    work: float
    """Multiply-adds; infinite where nobody has counted them."""
    steps: int
    """Number of steps; each takes a while, however small the network."""
    memory: int
    """Bytes for examples, weights, a physical batch."""
    memory_a_core: int = 0
    """Bytes for each core, where cores do the work of a graphics card."""
    devices: int = 1

    @property
    def is_known(self) -> bool:
        """Tell whether the network's multiply-adds have been counted."""
        return self.work < math.inf

    def minutes(self, speed: float) -> float:
        """Return how many whole minutes a job needs; infinitely many where nobody has counted its work."""
        return math.ceil((START + self.steps * STEP + self.work / speed) / 60) if self.is_known else math.inf

    def megabytes(self, cores: int) -> int:
        return math.ceil((self.memory + cores * self.memory_a_core) / 1e6)


def training(run: Spec, physical_batch: int) -> Cost:
    """Count a training: all steps, and after every epoch the held-out and the test examples."""
    if not specs.has_length(run):
        given = run["budget"]
        steps = steps_within(given["epsilon"], given["delta"], specs.sampling_rate(run), given["sigma"])
        run = specs.with_solved_steps(run, steps)
    network, recipe, data = counts_of(run), run["recipe"], run["data"]
    steps, epochs = specs.step_count(run), len(specs.epoch_ends(run))
    views = recipe["augmentation"]["views"] if recipe["augmentation"] else 1
    part = specs.trained_part(run)
    images = steps * recipe["batch"] // specs.simulated(run) * views * PASSES[part]
    images += epochs * (data["validation"] + data["test"])
    memory = 8 * network.parameters * NUMBER  # weights, sums, averages and the optimiser's state
    memory += _bytes_of_examples(run) + physical_batch * views * (math.prod(data["shape"]) + 3 * network.largest) * NUMBER
    # every image's activations and, at most, every example's gradient
    in_work = AT_ONCE * (COPIES * network.outputs + (network.parameters if part == "all" else 0)) * NUMBER
    return Cost(images * network.multiply_adds, steps, memory, in_work, specs.device_count(run))


def record_bytes(run: Spec) -> int:
    """Return the bytes that a run leaves: those of its weights, since all else is small."""
    return counts_of(run).parameters * NUMBER * (2 if run["recipe"]["averaging"] else 1)


def checkpoint_bytes(run: Spec) -> int:
    """Return the bytes of a checkpoint: weights, those of the best epoch, their average, and the optimiser's numbers."""
    recipe = run["recipe"]
    copies = 2 + (1 if recipe["averaging"] else 0) + optimizers.module(recipe["optimizer"]["name"]).COPIES
    return counts_of(run).parameters * NUMBER * copies


def search_worker(study: Spec, physical_batch: int, workers: int) -> Cost:
    """Count a worker's share of the trials, as if none were given up."""
    trial, trials = training(study["run"], physical_batch), -(-study["trials"] // workers)
    return replace(trial, work=trials * trial.work, steps=trials * trial.steps, devices=1)


def network_of_features(spec: Spec) -> Spec:
    """Return the network that features are made by, as a training says its own: what a pass through it costs follows."""
    data = {"shape": spec["preprocessing"]["shape"], "classes": spec["weights"]["classes"]}
    return {"model": spec["weights"]["model"], "data": data, "recipe": {"precision": spec["precision"]}}


def features(spec: Spec) -> Cost:
    """One pass of all images through the network of the weights."""
    shape, network = spec["preprocessing"]["shape"], counts_of(network_of_features(spec))
    examples = spec["train"] + spec["test"]
    memory = FEATURES_AT_ONCE * (math.prod(shape) + 3 * network.largest) * NUMBER + network.parameters * NUMBER
    return Cost(examples * network.multiply_adds, examples // FEATURES_AT_ONCE, memory)


def hessian(analysis: Spec, run: Spec, physical_batch: int) -> Cost:
    """Count power iteration and Hutchinson's estimate as long as they may take, and the spectrum with all its vectors."""
    network = counts_of(run)
    products = 2 * analysis["iterations"] + analysis["lanczos_steps"]
    work = products * analysis["examples"] * HESSIAN_PRODUCT * network.multiply_adds
    memory = (analysis["lanczos_steps"] + 8) * network.parameters * NUMBER
    memory += _bytes_of_examples(run) + physical_batch * 2 * COPIES * network.outputs * NUMBER
    return Cost(work, products, memory)


def activations(analysis: Spec, run: Spec) -> Cost:
    """Count one pass; all outputs of a layer are kept."""
    network = counts_of(run)
    memory = _bytes_of_examples(run) + analysis["examples"] * COPIES * network.outputs * NUMBER
    return Cost(analysis["examples"] * network.multiply_adds, 1, memory)


def attack(spec: Spec) -> Cost:
    """Count the models of both phases, each with all examples and views at every step; of canaries, the steps."""
    run = spec["run"]
    network, examples = counts_of(run), specs.training_count(run) + 1
    longest = specs.step_count(specs.with_values(run, {key: max(values) for key, values in spec["space"].items()}))
    if spec["by"] == "canaries":
        return Cost(0, math.ceil(spec["models"] / CANARIES) * longest, 2 * _bytes_of_examples(run))
    settings = len(spec["targets"]) * math.prod(map(len, spec["space"].values()))
    models = 2 * (spec["models"] + (settings * spec["tried"] if settings > 1 else 0))
    views = run["recipe"]["augmentation"]["views"] if run["recipe"]["augmentation"] else 1
    work = models * longest * examples * views * FORWARD_AND_BACKWARD * network.multiply_adds
    in_work = ATTACKED_AT_ONCE * COPIES * 4 * examples * network.outputs * NUMBER
    return Cost(work, models * longest // ATTACKED_AT_ONCE, _bytes_of_examples(run) + in_work)


def by_class(run: Spec, physical_batch: int) -> Cost:
    """One pass of the test examples."""
    network, test = counts_of(run), run["data"]["test"]
    memory = _bytes_of_examples(run) + physical_batch * (math.prod(run["data"]["shape"]) + 3 * network.largest) * NUMBER
    return Cost(test * network.multiply_adds, 1, memory)
