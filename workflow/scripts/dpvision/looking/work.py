"""The pieces of work that artifacts rest on: what each needs, what it leaves, and which are there."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dpvision.plan import specs
from dpvision.plan.build import Plan
from dpvision.plan.specs import Spec

Key = tuple[str, str]
"""A stage and the name of a piece of work."""

STAGES = {"search": "search", "train": "training", "curvature": "Hessian", "activations": "histogram of activations"}
PLURALS = {"search": "searches", "train": "trainings", "curvature": "Hessians", "activations": "histograms of activations"}


@dataclass(frozen=True)
class Cell:
    """What an artifact shows as one: a cell with the seeds that it shows, or a search's trials."""

    label: str
    work: tuple[Key, ...]


def cells_of(plan: Plan, artifact: str) -> list[Cell]:
    spec = plan.artifacts[artifact]
    if "studies" in spec:
        return [Cell(study, (("search", study),)) for study in spec["studies"]]
    cells = []
    for cell in spec["cells"]:
        runs = list(cell["runs"].values())
        work = [("train", run) for run in runs]
        analyses = [
            spec[kind] for kind in ("analyses", "hessians", "activations") if kind in spec
        ]  # the page of claims has both
        work += [_analysis(plan, names[run]) for names in analyses for run in runs if run in names]
        level = "not private" if cell["epsilon"] is None else f"ε = {cell['epsilon']:g}"
        cells.append(Cell(f"{cell['dataset']}, {cell['model']}, {level}", tuple(work)))
    return cells


def _analysis(plan: Plan, name: str) -> Key:
    return ("curvature" if name in plan.hessians else "activations"), name


def needs(plan: Plan, key: Key) -> list[Key]:
    """What has to be there before it."""
    stage, name = key
    if stage == "search":
        return []
    if stage == "train":
        return [("search", study) for study in sorted(set(specs.searched_keys(plan.runs[name]).values()))]
    return [("train", spec_of(plan, key)["run"])]


def with_needs(plan: Plan, keys: Iterable[Key]) -> list[Key]:
    """Each once, after what it needs."""
    found: dict[Key, None] = {}
    for key in keys:
        found |= dict.fromkeys([*with_needs(plan, needs(plan, key)), key])
    return list(found)


def all_below(plan: Plan, artifact: str) -> list[Key]:
    """Everything that an artifact rests on."""
    return with_needs(plan, (key for cell in cells_of(plan, artifact) for key in cell.work))


def spec_of(plan: Plan, key: Key) -> Spec:
    stage, name = key
    return {"search": plan.studies, "train": plan.runs, "curvature": plan.hessians, "activations": plan.activations}[stage][
        name
    ]


def run_of(plan: Plan, key: Key) -> Spec:
    """The training that it is about."""
    spec = spec_of(plan, key)
    return {"search": lambda: spec["run"], "train": lambda: spec}.get(key[0], lambda: plan.runs[spec["run"]])()


def folder(plan: Plan, key: Key) -> str:
    names = {"search": "studies", "train": "runs", "curvature": "hessians", "activations": "activations"}
    return f"{plan.results}/{names[key[0]]}/{key[1]}"


def products(plan: Plan, key: Key) -> list[str]:
    """The files that it leaves for those that need it."""
    stage, name = key
    if stage == "train":
        return plan.record(name)
    last = {"search": "best.json", "curvature": "hessian.json", "activations": "histograms.csv"}
    return [f"{folder(plan, key)}/{last[stage]}"]


def is_done(plan: Plan, key: Key, root: Path) -> bool:
    return all((root / file).exists() for file in products(plan, key))


def logs(plan: Plan, key: Key) -> list[str]:
    """Of its jobs: a search has one a worker, and one for what comes out of it."""
    stage, name = key
    if stage == "search":
        return [f"{plan.results}/logs/search_worker/{name}/{worker}.log" for worker in range(plan.workers)] + [
            f"{plan.results}/logs/search/{name}.log"
        ]
    return [f"{plan.results}/logs/{stage}/{name}.log"]
