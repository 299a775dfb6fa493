"""The stages: kinds of work, in the order in which they need each other. Code that goes over all work loops over this table.

A new analysis of trained weights is an entry here, its options in config/analyses.py, and its job.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dpvision.plan import cost, specs
from dpvision.plan.cost import Cost
from dpvision.plan.specs import Spec

Key = tuple[str, str]
"""A stage's name and the name of a piece of its work."""


@dataclass(frozen=True)
class Stage:
    """A kind of work; each piece of it is a spec, and a folder that is named by it."""

    name: str
    folder: str
    """Folder below the results of a scale; below results/data, where scales share it."""
    record: tuple[str, ...]
    """Files of a piece of work, which is done when all are there. The first stands for it."""
    words: tuple[str, str]
    """Name of one piece of work, and of several."""
    needs: Callable[[Spec], list[Key]]
    """Work that has to be done before."""
    cost: Callable[[Spec, Spec, int, int], Cost] | None
    """Cost by spec, the training it is about, physical batch, and workers that share it; none: next to nothing."""
    job: str
    """Function that does it, as module:function. That module is the first whose code the result rests on."""
    verify: str
    """Function that checks its record, likewise."""
    logs: tuple[str, ...]
    """Logs of its jobs, below the logs: {name} is the work's, {source} that without its digest; the last is of the last job."""
    optional: tuple[str, ...] = ()
    """Files that not every record has, or that it can do without, and patterns of such."""
    shared: bool = False
    """True if scales share it."""
    analysis: bool = False
    """True if it looks at the weights of a training: all analyses are one rule."""


def _analysis(name: str, folder: str, product: str, words: tuple[str, str], cost: Callable, job: str) -> Stage:
    """Make the entry of an analysis of a training's weights."""
    record = (product, "provenance.json")
    verify, logs = "dpvision.verify.records:analysis", (f"{name}/{{name}}.log",)
    return Stage(name, folder, record, words, lambda spec: [("train", spec["run"])], cost, job, verify, logs, analysis=True)


def _data_of(run: Spec) -> list[Key]:
    return [specs.data_key(run)]


STAGES = {
    stage.name: stage
    for stage in (
        Stage(
            "data",
            "prepared",
            ("dataset.json", "provenance.json"),
            ("data set", "data sets"),
            needs=lambda spec: [],
            cost=None,
            job="dpvision.data.prepare:prepare",
            verify="dpvision.verify.digests:data_set",
            logs=("download/{source}.log", "prepare/{name}.log"),
            shared=True,
        ),
        Stage(
            "weights",
            "weights",
            ("weights.json", "provenance.json"),
            ("file of weights", "files of weights"),
            needs=lambda spec: [],
            cost=None,
            job="dpvision.data.weights:obtain",
            verify="dpvision.verify.digests:weights",
            logs=("weights/{name}.log",),
            shared=True,
        ),
        Stage(
            "features",
            "features",
            ("dataset.json", "provenance.json"),
            ("set of features", "sets of features"),
            needs=lambda spec: [("data", spec["of"]), specs.weights_key(spec["weights"])],
            cost=lambda spec, run, batch, workers: cost.features(spec),
            job="dpvision.training.features:compute",
            verify="dpvision.verify.digests:features",
            logs=("features/{name}.log",),
            shared=True,
        ),
        Stage(
            "search",
            "studies",
            ("best.json", "trials.csv", "provenance.json"),
            ("search", "searches"),
            needs=lambda spec: _data_of(spec["run"]) + specs.start_key(spec["run"]),
            cost=lambda spec, run, batch, workers: cost.search_worker({**spec, "run": run}, batch, workers),
            job="dpvision.search.study:work",
            verify="dpvision.verify.records:study",
            logs=("search_worker/{name}/*.log", "search/{name}.log"),
            optional=("journal.log", "trials/*/history.csv"),
        ),
        Stage(
            "train",
            "runs",
            specs.RECORD,
            ("training", "trainings"),
            needs=lambda spec: [
                *_data_of(spec),
                *specs.start_key(spec),
                *(("search", name) for name in sorted(set(specs.searched_keys(spec).values()))),
            ],
            cost=lambda spec, run, batch, workers: cost.training(run, batch),
            job="dpvision.training.run:train",
            verify="dpvision.verify.runs:record",
            logs=("train/{name}.log",),
            optional=("averaged.safetensors",),
        ),
        _analysis(
            "hessian",
            "hessians",
            "hessian.json",
            ("Hessian", "Hessians"),
            lambda spec, run, batch, workers: cost.hessian(spec, run, batch),
            "dpvision.curvature.job:examine",
        ),
        _analysis(
            "activations",
            "activations",
            "histograms.csv",
            ("histogram of activations", "histograms of activations"),
            lambda spec, run, batch, workers: cost.activations(spec, run),
            "dpvision.analyses.activations:measure",
        ),
        _analysis(
            "by_class",
            "by_class",
            "classes.csv",
            ("count by class", "counts by class"),
            lambda spec, run, batch, workers: cost.by_class(run, batch),
            "dpvision.analyses.by_class:count",
        ),
        Stage(
            "audit",
            "audits",
            ("audit.json", "tests.csv", "roc.csv", "steps.csv", "provenance.json"),
            ("audit", "audits"),
            needs=lambda spec: [],
            cost=None,
            job="dpvision.audit.job:audit",
            verify="dpvision.verify.records:audit",
            logs=("audit/{name}.log", "audit_figures/{name}.log"),
        ),
        Stage(
            "attack",
            "attacks",
            ("attack.json", "tried.csv", "scores.npz", "provenance.json"),
            ("attack", "attacks"),
            needs=lambda spec: _data_of(spec["run"]),
            cost=lambda spec, run, batch, workers: cost.attack(spec),
            job="dpvision.audit.attack:attack",
            verify="dpvision.verify.attacks:attack",
            logs=("attack/{name}.log",),
        ),
    )
}
ANALYSES = [name for name, stage in STAGES.items() if stage.analysis]
