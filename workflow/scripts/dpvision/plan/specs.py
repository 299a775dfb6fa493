"""Specs: complete, canonical descriptions of one piece of work each, and the names of their folders.

A spec is a plain JSON value and holds what decides the result, nothing else: no labels, no resources, no
paths. The digest in its name makes the name change with it, so nothing stale can be taken for fresh.
"""

from __future__ import annotations

import functools
import json
import math
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpvision.errors import UserError
from dpvision.files import canonical_json, digest

if TYPE_CHECKING:  # alone: what a job imports from here does not depend on the configuration's descriptions
    from dpvision.config.attacks import Attack
    from dpvision.config.base import Strict
    from dpvision.config.cells import PaperProtocol, Split
    from dpvision.config.datasets import Dataset
    from dpvision.config.papers import Search
    from dpvision.config.recipes import Recipe
    from dpvision.config.weights import Features, Weights
    from dpvision.models.options import Network

Spec = dict[str, Any]

# What a run leaves in its folder, one format each (written by training/record.py).
RECORD = ("spec.json", "metrics.json", "history.csv", "ledger.json", "weights.safetensors", "provenance.json")


def canonical(spec: Spec) -> Spec:
    """Return the spec with its keys in one order, whatever theirs in the configuration: Snakemake compares specs as text."""
    return json.loads(canonical_json(spec))


def source_spec(dataset: Dataset) -> Spec:
    """Describe the download of a data set."""
    return canonical(dataset.model_dump(include={"title", "licence", "sources", "files"}) | _reader(dataset))


def _reader(dataset: Dataset) -> Spec:
    """Return who reads a data set, where it is not the file of its own name, and what is true of how it is kept and drawn."""
    kept = {key: True for key in ("streamed", "test_by_class", "private") if getattr(dataset, key)}
    return ({"reader": dataset.reader} if dataset.reader else {}) | kept


def data_spec(name: str, dataset: Dataset) -> Spec:
    """Describe the preparation of a data set."""
    kept = dataset.model_dump(include={"files", "classes", "shape", "train", "test"})
    return canonical({"kind": "data", "name": name, **kept, **_reader(dataset)})


def weights_source(weights: Weights) -> Spec:
    """Describe where weights are fetched from."""
    return canonical(weights.model_dump(include={"title", "licence", "sources", "mean", "std"}))


def weights_spec(name: str, weights: Weights) -> Spec:
    """Describe a file of weights, and the network that they are of."""
    model = {**weights.model.as_spec({"label"}), "slug": weights.model.slug()}
    return canonical({"kind": "weights", "name": name, "sha256": weights.sha256, "model": model, "classes": weights.classes})


def features_spec(name: str, features: Features, of: Spec, weights: Spec, channels: int, constants: Spec) -> Spec:
    """Describe the features of the images of a prepared data set, `of`, by weights that say their network, too.

    `channels`: those that the network takes. Where images are in grey, each of them is the one there is.
    """
    preprocessing = {"shape": [channels, features.size, features.size], "resize": "bilinear", **constants}
    made = {"kind": "features", "name": name, "of": data_name(of), "weights": weights, "preprocessing": preprocessing}
    made |= {key: of[key] for key in ("classes", "train", "test")}
    made |= features.model_dump(include={"shape", "scale", "precision"})
    return canonical(made | {"layer": features.layer or "the head's input", "kept": "float16"})


def data_key(run: Spec) -> tuple[str, str]:
    """Return the stage and the name of the data that a run trains on: images, or features."""
    return run["data"]["kind"], run["data"]["prepared"]


class Start(NamedTuple):
    """The weights that a run begins with, as its spec says it, and the channels and the constants of their images."""

    spec: Spec
    channels: int
    constants: Spec
    """Mean and standard deviation by which their images were normalised."""


def start_from_weights(spec: Spec, weights: Weights) -> Start:
    """Describe a start with a file of weights."""
    said = {key: spec[key] for key in ("sha256", "model", "classes")} | {"name": data_name(spec)}
    return Start({"weights": said}, len(weights.mean), weights.model_dump(include={"mean", "std"}))


def start_from_run(run: Spec, take: str) -> Start:
    """Describe a start with the weights of another run, at its last step or averaged."""
    data = run["data"]
    return Start({"run": run_name(run), "take": take}, data["shape"][0], {key: data[key] for key in ("mean", "std")})


def weights_key(weights: Spec) -> tuple[str, str]:
    """Return the stage and the name of the work that leaves weights: another run, or whoever fetches their file."""
    return ("train", weights["run"]) if "run" in weights else ("weights", weights["name"])


def start_key(run: Spec) -> list[tuple[str, str]]:
    """Return the stage and the name of what a run begins with; nothing where its network's family says it."""
    return [weights_key(start.get("weights", start))] if (start := run.get("start")) else []


def run_spec(
    data: Spec,
    dataset: Dataset,
    split: Split,
    model: Network,
    recipe: Recipe,
    budget: Spec | None,
    train: str = "all",
    start: Start | None = None,
) -> Spec:
    """Describe one training; its seed is still to be named (`seeded`)."""
    constants = dataset.model_dump(include={"split_seed", "mean", "std"}) | (start.constants if start else {})
    unsaid = {key for key in ("steps", "epochs") if getattr(recipe, key) is None}
    said = recipe.as_spec(unsaid) | {"batch": batch_of(recipe, dataset.train - split.validation)}
    run = {
        "kind": "run",
        "data": {**data, **constants, **split.as_spec(), "prepared": data_name(data)},
        "model": {**model.as_spec({"label"}), "slug": model.slug()},
        "recipe": said,
        "budget": budget,
        **({"train": train} if train != "all" else {}),
        **({"start": start.spec} if start else {}),
    }
    return canonical(run)


def batch_of(recipe: Recipe, count: int) -> int:
    """Return the expected batch of a recipe where there are so many training examples."""
    return count if recipe.batch == "all" else recipe.batch


def trained_part(run: Spec) -> str:
    """Return what of the network trains: head, norms, all."""
    return str(run.get("train", "all"))


def budget_spec(epsilon: float | str | None, delta: float, sigma: float | None = None) -> Spec | None:
    """Return the given parts of a budget: what is solved is in no spec."""
    if epsilon is None:
        return None
    given = {"epsilon": None if epsilon == "solve" else epsilon, "sigma": sigma}
    return {"delta": delta, "accountant": "rdp"} | {key: value for key, value in given.items() if value is not None}


def with_authors_protocol(run: Spec, protocol: PaperProtocol, level: int) -> Spec:
    """Return a run of the protocol `clean` in the protocol `paper`; `level` is the place of its ε among the cells'."""
    count, recipe = run["data"]["train"], run["recipe"]
    batches = math.ceil(count / recipe["batch"])
    drawn = _expected_physical_batches(count, batches, protocol.physical_batch)
    steps = int(recipe["epochs"] * int(count / protocol.physical_batch) / drawn)
    how = {"name": "paper", "batches": batches, "sigma": protocol.sigmas[level], "steps": steps}
    budget = {**run["budget"], "epsilon": protocol.targets[level]}
    return canonical({**run, "data": {**run["data"], "validation": 0}, "budget": budget, "protocol": how})


def _expected_physical_batches(count: int, batches: int, physical_batch: int) -> float:
    """Return how many physical batches a sample is cut into, in expectation; its size is binomial."""
    q = 1 / batches

    def probability(size: int) -> float:
        ways = math.lgamma(count + 1) - math.lgamma(size + 1) - math.lgamma(count - size + 1)
        return math.exp(ways + size * math.log(q) + (count - size) * math.log1p(-q))

    spread = 10 * math.sqrt(count * q * (1 - q))
    sizes = range(max(0, math.floor(count * q - spread)), min(count, math.ceil(count * q + spread)) + 1)
    return sum(probability(size) * math.ceil(size / physical_batch) for size in sizes)


def on_one_device(run: Spec) -> Spec:
    """Return the spec of the same training on one device: equal but for rounding, with the same samples, views and noise."""
    return {**run, "recipe": {key: value for key, value in run["recipe"].items() if key != "gpus"}}


def device_count(run: Spec) -> int:
    return run["recipe"].get("gpus", 1)


def seeded(run: Spec, seed: int) -> Spec:
    return {**run, "seed": seed}


def study_spec(run: Spec, search: Search) -> Spec:
    """Describe a search: `run` is trained with other values at the space's keys, the search's seed, and one device a trial."""
    kept = search.as_spec({"epsilon", "recipe", "split"})
    varied = with_values(seeded(on_one_device(run), search.seed), dict.fromkeys(search.space))
    return canonical({"kind": "study", "run": varied, **kept})


def attack_spec(run: Spec, attack: Attack) -> Spec:
    """Describe an attack on a run, whose seed is the attack's."""
    return canonical({"kind": "attack", "run": run, **attack.as_spec()})


def analysis_spec(stage: str, run_name: str, options: Strict) -> Spec:
    """Return the spec of an analysis of a run's weights, by the name of its stage."""
    return {"kind": stage, "run": run_name, **options.as_spec()}


def data_name(spec: Spec) -> str:
    return f"{spec['name']}-{digest(spec)}"


def run_name(spec: Spec) -> str:
    return f"{_slug(spec)}-seed{spec['seed']}-{digest(spec)}"


def study_name(spec: Spec) -> str:
    varied = "-".join(key.rsplit(".", 1)[-1] for key in sorted(spec["space"]))
    return f"{_slug(spec['run'])}-{varied}-{digest(spec)}"


def attack_name(spec: Spec) -> str:
    """Return the name of an attack: of the run's data, network, ε and seed, with a digest of all."""
    return f"{_slug(spec['run'])}-seed{spec['run']['seed']}-{digest(spec)}"


def analysis_name(spec: Spec) -> str:
    """Return the run's name with one more digest."""
    return f"{spec['run']}-{digest(spec)}"


def _slug(run: Spec) -> str:
    budget = run["budget"] or {}
    levels = [f"{word}{budget[key]:g}" for word, key in (("eps", "epsilon"), ("sigma", "sigma")) if key in budget]
    level = "-".join(levels).replace("+", "") or "nonprivate"
    part = "" if trained_part(run) == "all" else f"-{trained_part(run)}"
    return f"{run['data']['name']}-{run['model']['slug']}{part}-{level}"


def with_values(run: Spec, values: dict[str, Any]) -> Spec:
    """Return a run with other values at dotted keys of any depth: a search's trial."""
    for key, value in values.items():
        run = _with_value(run, key, key.split("."), value)
    return run


def _with_value(here: Any, key: str, path: list[str], value: Any) -> Any:
    """Return a mapping with another value at a path below it; `key` is the whole dotted key, for what is wrong with it."""
    if not path:
        return value
    if not isinstance(here, dict) or (path[1:] and path[0] not in here):
        holder = ".".join(key.split(".")[: -len(path)]) or "the run"
        missing = "is no mapping" if not isinstance(here, dict) else f"has no {path[0]}"
        raise UserError(f"{key}: this key cannot be set: in this run {holder} {missing}; expected is a key of model or recipe")
    return {**here, path[0]: _with_value(here.get(path[0]), key, path[1:], value)}


def value_at(run: Spec, key: str) -> Any:
    """Return the value at a dotted key."""
    return functools.reduce(operator.getitem, key.split("."), run)


def with_findings(run: Spec, studies: dict[str, str], values: dict[str, Any]) -> Spec:
    """Return a run with values in place of what studies are to find, and their names beside; `studies`: by key."""
    return {**with_values(run, values), "found_by": studies} if studies else run


def searched_keys(run: Spec) -> dict[str, str]:
    """Return the dotted keys whose value a study finds, at any depth, each with the study's name."""
    return {key: study for part in ("model", "recipe") for key, study in _searched_below(part, run.get(part))}


def _searched_below(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and "study" in value:
        yield key, value["study"]
    elif isinstance(value, dict):
        for name, below in value.items():
            yield from _searched_below(f"{key}.{name}", below)


def as_planned(run: Spec) -> Spec:
    """Return the spec of a record as it was before findings and solved steps were filled in: its digest names the folder."""
    found = run.get("found_by", {})
    planned = with_values(run, {key: {"study": study} for key, study in found.items()})
    if "solved" in run:
        planned = {**planned, "recipe": {key: value for key, value in planned["recipe"].items() if key != "steps"}}
    return {key: value for key, value in planned.items() if key not in ("found_by", "solved")}


def has_length(run: Spec) -> bool:
    """Tell whether the run says how long to train; else ε and σ decide."""
    return bool({"steps", "epochs"} & run["recipe"].keys())


def with_solved_steps(run: Spec, steps: int) -> Spec:
    """Return a run with the steps that its budget allows filled in."""
    return {**run, "recipe": {**run["recipe"], "steps": steps}, "solved": ["steps"]}


OBJECTIVES = ("validation_top1", "averaged_validation_top1", "validation_loss")
"""What a search can choose by: columns of a training's history and of trials.csv."""


def objective(study: Spec) -> str:
    """Return the column of trials.csv that decides which trial is best."""
    return study.get("objective", "validation_top1")


def is_covered(study: Spec) -> bool:
    """Tell whether a theorem covers what a search spends. All of its records but the best values must then stay secret."""
    return bool(study.get("sampler") == "covered")


def score(of: str, value: float) -> float:
    """Return what a search maximises: the accuracy, or the loss with its sign changed; no finite loss is worst of all."""
    if of.endswith("top1"):
        return value
    return -value if math.isfinite(value) else -math.inf


def network_module(run: Spec) -> str:
    """Name the module that a run's network is built by, which is found by its family's name."""
    return f"dpvision.models.{run['model']['family']}.network"


def modules_of(run: Spec) -> list[str]:
    """Name the modules of a run's code that are found by name: no import leads a digest of code to them."""
    recipe = run["recipe"]
    return [
        network_module(run),
        f"dpvision.training.optimizers.{recipe['optimizer']['name']}",
        f"dpvision.training.schedules.{recipe['schedule']['name']}",
        *([f"dpvision.training.initializations.{first['name']}"] if (first := recipe.get("initialization")) else []),
    ]


def training_count(run: Spec) -> int:
    """Return N, the number of training examples without those held out."""
    return run["data"]["train"] - run["data"]["validation"]


def chooser(run: Spec) -> str | None:
    """Name the split whose loss steers the rate and whose accuracy picks the best epoch; None: nothing does.

    It is the examples held out. Where none are, it is the test split in the authors' protocol, and never elsewhere.
    """
    if run["data"]["validation"]:
        return "validation"
    return "test" if "protocol" in run else None


def sampling_rate(run: Spec) -> float:
    """Return q = expected batch / N, exactly: the accountant's q is the sampler's q."""
    return 1 / run["protocol"]["batches"] if "protocol" in run else run["recipe"]["batch"] / training_count(run)


def expected_batch(run: Spec) -> int:
    """Return the constant that a step's sum is divided by."""
    return training_count(run) // run["protocol"]["batches"] if "protocol" in run else run["recipe"]["batch"]


def simulated(run: Spec) -> int:
    """Return k of a simulation, which divides batch and noise; 1: the training itself."""
    return run["recipe"]["simulate"] or 1


def is_repeatable(run: Spec) -> bool:
    """Tell whether a run's coins, noise and views come from its seed; secret ones nobody can draw again."""
    return bool(run["recipe"].get("noise", "repeatable") == "repeatable")


def step_count(run: Spec) -> int:
    """Return the number of steps that protocol or recipe say, or floor(epochs * N / batch), in whole numbers."""
    recipe = run["recipe"]
    if "protocol" in run:
        return run["protocol"]["steps"]
    return recipe["steps"] if "steps" in recipe else recipe["epochs"] * training_count(run) // recipe["batch"]


def is_stopped(run: Spec, losses: Sequence[float]) -> bool:
    """Tell whether the recipe ends a run here, after epochs with these validation losses."""
    stop = run["recipe"].get("stop")
    if not (stop and losses):
        return False
    if stop["above"] is not None and not losses[-1] <= stop["above"]:  # no number is not below
        return True
    best = min(range(len(losses)), key=lambda epoch: (math.isnan(losses[epoch]), losses[epoch]))
    return stop["patience"] is not None and len(losses) - 1 - best >= stop["patience"]


def epoch_ends(run: Spec) -> list[int]:
    """Return the steps after which an epoch is over; a recipe's last epoch ends with its last step."""
    count, batch, steps = training_count(run), run["recipe"]["batch"], step_count(run)
    epochs = run["recipe"].get("epochs", -(-steps * batch // count))
    if "protocol" in run:
        return [epoch * steps // epochs for epoch in range(1, epochs + 1)]
    if every := run["recipe"].get("evaluate_every"):
        return [*range(every, steps, every), steps]
    return [min(epoch * count // batch, steps) for epoch in range(1, epochs + 1)]
