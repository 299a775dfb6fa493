"""From the configuration to what is to be done: specs by name, and the files that each target asks for."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpvision.code import code_digest
from dpvision.errors import UserError
from dpvision.plan import specs
from dpvision.plan.config import Artifact, Cells, Config, Dataset, Paper, Published, Scale, Searched, Stages
from dpvision.plan.reading import Document, complain, read_yaml, unknown, validated
from dpvision.plan.specs import Spec

ROOT = Path(__file__).parents[4]
DATA = "results/data"  # shared by the scales: what is prepared there is named by its digest
TABLES = ("csv", "md", "tex")
FIGURES = ("svg", "pdf", "png", "csv")
RULES = ("all", "download", "prepare", "search_worker", "search", "train", "curvature", "activations", "table", "figure")
FOLDERS = {
    "accuracy": "tables",
    "hessian": "tables",
    "activations": "figures",
    "curves": "figures",
    "spectrum": "figures",
    "search": "figures",
}


@dataclass
class Plan:
    """Everything the rules need to know. Names are folders; specs are what a job is given."""

    scale: str
    results: str
    title: str
    resources: Stages
    workers: int
    folders: dict[str, str]
    sources: dict[str, dict] = field(default_factory=dict)  # data set -> its entry, for the download
    data: dict[str, Spec] = field(default_factory=dict)
    runs: dict[str, Spec] = field(default_factory=dict)
    studies: dict[str, Spec] = field(default_factory=dict)
    hessians: dict[str, Spec] = field(default_factory=dict)
    activations: dict[str, Spec] = field(default_factory=dict)
    artifacts: dict[str, Spec] = field(default_factory=dict)
    papers: dict[str, list[str]] = field(default_factory=dict)  # paper -> its artifacts
    labels: dict[str, dict[str, str]] = field(default_factory=dict)  # artifact -> title, models and data sets as shown

    def targets(self, name: str) -> list[str]:
        """The files of `all`, of a paper, or of an artifact."""
        if name in self.artifacts:
            folder = FOLDERS[self.artifacts[name]["kind"]]
            kinds = TABLES if folder == "tables" else FIGURES
            return [f"{self.results}/{folder}/{name}.{kind}" for kind in kinds]
        chosen = self.papers if name == "all" else {name: self.papers[name]}
        return [file for artifacts in chosen.values() for artifact in artifacts for file in self.targets(artifact)]

    def record(self, run: str) -> list[str]:
        return [f"{self.results}/runs/{run}/{file}" for file in specs.RECORD]

    def dataset_of(self, run: Spec) -> str:
        return f"{DATA}/prepared/{run['data']['prepared']}/dataset.json"

    def best_of(self, study: str) -> str:
        return f"{self.results}/studies/{study}/best.json"

    def hessian_of(self, analysis: str) -> str:
        return f"{self.results}/hessians/{analysis}/hessian.json"

    def studies_of(self, run: str) -> list[str]:
        """best.json of each study that the run's spec names, in the order of their names."""
        return [self.best_of(study) for study in sorted(set(specs.searched_keys(self.runs[run]).values()))]

    def runs_of(self, artifact: str) -> list[str]:
        """The trainings that an artifact rests on."""
        spec = self.artifacts[artifact]
        if spec["kind"] == "search":
            return []
        return (
            list(spec["analyses"]) if "analyses" in spec else [run for cell in spec["cells"] for run in cell["runs"].values()]
        )

    def inputs_of(self, artifact: str) -> dict[str, list[str]]:
        """The files that an artifact is made of, by what they are."""
        spec = self.artifacts[artifact]
        runs = self.runs_of(artifact)
        analyses = spec.get("analyses", {}).values()
        return {
            "accuracy": lambda: {
                "metrics": [f"{self.results}/runs/{run}/metrics.json" for run in runs],
                "ledgers": [f"{self.results}/runs/{run}/ledger.json" for run in runs],
            },
            "hessian": lambda: {"hessians": [self.hessian_of(name) for name in analyses]},
            "spectrum": lambda: {"hessians": [self.hessian_of(name) for name in analyses]},
            "activations": lambda: {"histograms": [f"{self.results}/activations/{name}/histograms.csv" for name in analyses]},
            "curves": lambda: {"histories": [f"{self.results}/runs/{run}/history.csv" for run in runs]},
            "search": lambda: {"trials": [f"{self.results}/studies/{study}/trials.csv" for study in spec["studies"]]},
        }[spec["kind"]]()

    def asks(self, stage: str) -> dict[str, int]:
        """A stage's resources as Snakemake takes them; threads are its own directive."""
        asked: dict[str, int] = getattr(self.resources, stage).model_dump(exclude={"threads"})
        if not asked["gpu"]:
            del asked["gpu"]  # gpu=0 would still be a request on some clusters
        return asked


def load(config: dict[str, Any], root: Path = ROOT) -> Plan:
    """The plan of a configuration; `config` is what Snakemake made of config/config.yaml and the command line."""
    return _Builder(config, root).plan


class _Builder:
    def __init__(self, config: dict[str, Any], root: Path) -> None:
        self.root = root
        settings: Config = validated(Config, [("config/config.yaml or --config", config)])
        self.scale_documents = [self._read(f"config/scales/{settings.scale}.yaml")]
        scale: Scale = validated(Scale, self.scale_documents)
        self.dataset_documents = [self._read("config/datasets.yaml")]
        self.datasets: dict[str, Dataset] = validated(dict[str, Dataset], self.dataset_documents)
        for name in settings.folders:
            if name not in self.datasets:
                raise unknown([("config/config.yaml or --config", config)], ("folders",), name, list(self.datasets))
        known = sorted(path.stem for path in (root / "config/papers").glob("*.yaml"))
        for name in scale.papers:
            if name not in known:
                raise unknown(self.scale_documents, ("papers",), name, known)
        results = "results" if settings.scale == "paper" else f"results/{settings.scale}"
        self.plan = Plan(settings.scale, results, scale.title, scale.resources, scale.workers, settings.folders)
        for name, dataset in self.datasets.items():
            self.plan.sources[name] = dataset.model_dump(include={"title", "licence", "sources", "files"})
        for name in settings.papers:
            self._add_paper(name, scale)

    def _read(self, path: str) -> Document:
        return path, read_yaml(self.root / path, path)

    def _add_paper(self, name: str, scale: Scale) -> None:
        documents = [self._read(f"config/papers/{name}.yaml")]
        if name in scale.papers:
            over_file, over = self.scale_documents[0]
            documents.append((over_file, over["papers"][name]))
        shown = [documents[0]] + [(f"{file} (papers.{name})", document) for file, document in documents[1:]]
        paper: Paper = validated(Paper, shown)
        file = f"config/published/{name}.yaml"
        published: list[Published] = validated(list[Published], [self._read(file)])
        for i, row in enumerate(published):
            if row.artifact not in paper.artifacts:
                raise unknown([self._read(file)], (i, "artifact"), row.artifact, list(paper.artifacts))
        cells = {group: self._cells(paper, group, shown) for group in paper.cells}
        self.plan.papers[name] = []
        for key, artifact in paper.artifacts.items():
            if key in self.plan.artifacts or key in self.plan.papers or key in RULES:
                raise complain(shown, ("artifacts", key), "this name is taken; each target needs a name of its own")
            for group in artifact.cells:
                if group not in cells:
                    raise unknown(shown, ("artifacts", key, "cells"), group, list(cells))
            self.plan.papers[name].append(key)
            self._add_artifact(name, key, paper, artifact, cells, [row for row in published if row.artifact == key])

    def _cells(self, paper: Paper, group: str, documents: list[Document]) -> list[dict]:
        """Its cells, each with a run a seed; the runs and what they need are added to the plan."""
        here = paper.cells[group]
        self._check(paper, group, here, documents)
        dataset = self.datasets[here.dataset]
        data = specs.data_spec(here.dataset, dataset)
        self.plan.data[specs.data_name(data)] = data
        cells = []
        for model_name in here.models:
            model, recipe = paper.models[model_name], paper.recipes[here.recipe]
            study = self._study(paper, data, dataset, model_name, here)
            for epsilon in here.epsilons:
                run = specs.run_spec(data, dataset, model, recipe, here, epsilon)
                if study:
                    run = specs.with_values(run, {"model.groups": {"study": study}})
                seeds = {}
                for seed in paper.seeds:
                    spec = specs.seeded(run, seed)
                    name = specs.run_name(spec)
                    self.plan.runs[name] = spec
                    seeds[str(seed)] = name
                cells.append(
                    {"dataset": here.dataset, "model": model_name, "epsilon": epsilon, "delta": here.delta, "runs": seeds}
                )
        return cells

    def _study(self, paper: Paper, data: Spec, dataset: Dataset, model_name: str, cells: Cells) -> str | None:
        model = paper.models[model_name]
        if not isinstance(model.groups, Searched):
            return None
        search = paper.searches[model.groups.search]
        run = specs.run_spec(data, dataset, model, paper.recipes[cells.recipe], cells, search.epsilon)
        spec = specs.study_spec(run, search)
        name = specs.study_name(spec)
        self.plan.studies[name] = spec
        return name

    def _check(self, paper: Paper, group: str, cells: Cells, documents: list[Document]) -> None:
        """What is right in itself and wrong beside others."""
        where = ("cells", group)
        if cells.dataset not in self.datasets:
            raise unknown(documents, (*where, "dataset"), cells.dataset, list(self.datasets))
        if cells.recipe not in paper.recipes:
            raise unknown(documents, (*where, "recipe"), cells.recipe, list(paper.recipes))
        dataset, recipe = self.datasets[cells.dataset], paper.recipes[cells.recipe]
        count = dataset.train - dataset.validation
        of_data = f"{cells.dataset} trains on {count} examples ({dataset.train} less {dataset.validation} held out)"
        if recipe.batch > count:
            raise complain(documents, ("recipes", cells.recipe, "batch"), f"must be at most N: {of_data}")
        if cells.delta >= 1 / count:
            raise complain(documents, (*where, "delta"), f"must be below 1/N = {1 / count:.3g}: {of_data}")
        for i, epsilon in enumerate(cells.epsilons):
            if cells.epsilons.index(epsilon) != i:
                raise complain(documents, (*where, "epsilons"), f"{epsilon} stands there twice")
        for name in cells.models:
            if name not in paper.models:
                raise unknown(documents, (*where, "models"), name, list(paper.models))
            self._check_model(paper, name, cells, documents)

    def _check_model(self, paper: Paper, name: str, cells: Cells, documents: list[Document]) -> None:
        model, where = paper.models[name], ("models", name)
        if model.norm == "batch" and any(epsilon is not None for epsilon in cells.epsilons):
            why = "every example's output depends on the others of its batch, so no example's gradient can be bounded"
            raise complain(documents, (*where, "norm"), f"not under differential privacy: {why}; use group")
        if min(model.channels()) < 1 or any(not c.is_integer() for c in (64 * model.width, 128 * model.width)):
            raise complain(documents, (*where, "width"), "must give whole numbers of channels (64 times it)")
        if isinstance(model.groups, Searched):
            self._check_search(paper, name, model.groups.search, documents)
        else:
            self._check_groups(paper, name, model.groups, documents, (*where, "groups"))

    def _check_groups(self, paper: Paper, name: str, groups: Any, documents: list[Document], where: tuple) -> None:
        for channels in sorted(set(paper.models[name].channels())):
            if groups != "channels" and channels % min(groups, channels):
                fits = [g for g in range(1, channels + 1) if all(c % min(g, c) == 0 for c in paper.models[name].channels())]
                expectation = f"{groups} groups do not divide the {channels} channels of {name}; allowed: {fits}"
                raise complain(documents, where, expectation)

    def _check_search(self, paper: Paper, model_name: str, search_name: str, documents: list[Document]) -> None:
        if search_name not in paper.searches:
            raise unknown(documents, ("models", model_name, "groups"), search_name, list(paper.searches))
        search, where = paper.searches[search_name], ("searches", search_name)
        if list(search.space) != ["model.groups"]:
            raise complain(documents, (*where, "space"), "what can be searched so far is model.groups")
        choices = search.space["model.groups"]
        for choice in choices:
            try:
                type(paper.models[model_name]).model_validate(paper.models[model_name].model_dump() | {"groups": choice})
            except ValidationError:
                expectation = f'{choice!r} is not a number of groups; allowed: whole numbers from 1 on, "channels"'
                raise complain(documents, (*where, "space", "model.groups"), expectation) from None
            self._check_groups(paper, model_name, choice, documents, (*where, "space", "model.groups"))
        combinations = math.prod(len(set(map(str, choices))) for choices in search.space.values())
        if search.trials > combinations:
            expectation = f"must be at most {combinations}: no combination is tried twice, and the space has no more"
            raise complain(documents, (*where, "trials"), expectation)

    def _add_artifact(
        self,
        paper_name: str,
        name: str,
        paper: Paper,
        artifact: Artifact,
        cells: dict[str, list[dict]],
        published: list[Published],
    ) -> None:
        chosen = [
            cell
            for group in artifact.cells
            for cell in cells[group]
            if artifact.epsilons is None or cell["epsilon"] in artifact.epsilons
        ]
        if not chosen:
            raise UserError(f"config/papers/{paper_name}.yaml: artifacts.{name}.epsilons: none of its cells has such an ε")
        spec: Spec = {"kind": artifact.kind, "artifact": name, "scale": self.plan.scale, "cells": chosen}
        if artifact.kind in ("hessian", "spectrum"):
            spec["analyses"] = {run: self._hessian(run, paper) for cell in chosen for run in cell["runs"].values()}
        if artifact.kind == "activations":  # those of one seed, the first
            spec["cells"] = [cell | {"runs": dict(list(cell["runs"].items())[:1])} for cell in chosen]
            spec["analyses"] = {run: self._activations(run, paper) for cell in spec["cells"] for run in cell["runs"].values()}
        if artifact.kind == "search":
            spec["studies"] = {
                study: cell["model"]
                for cell in chosen
                for run in cell["runs"].values()
                for study in specs.searched_keys(self.plan.runs[run]).values()
            }
            spec["cells"] = []  # it shows trials, not runs
            if not spec["studies"]:
                raise UserError(
                    f"config/papers/{paper_name}.yaml: artifacts.{name}: none of its cells leaves anything to a search"
                )
        if FOLDERS[artifact.kind] == "tables":
            rows = [row.model_dump(exclude={"artifact", "note"}) for row in published]
            spec |= {"statistic": artifact.statistic, "published": rows}
        spec["code"] = code_digest(f"dpvision.reporting.{FOLDERS[artifact.kind]}")
        self.plan.artifacts[name] = spec
        models = {cell["model"]: paper.models[cell["model"]].label for cell in chosen}
        self.plan.labels[name] = {"paper": paper.title, "title": artifact.title, **models}

    def _hessian(self, run: str, paper: Paper) -> str:
        spec = specs.hessian_spec(run, paper.hessian)
        self.plan.hessians[specs.analysis_name(spec)] = spec
        return specs.analysis_name(spec)

    def _activations(self, run: str, paper: Paper) -> str:
        spec = specs.activations_spec(run, paper.activations)
        self.plan.activations[specs.analysis_name(spec)] = spec
        return specs.analysis_name(spec)
