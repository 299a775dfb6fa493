"""The way from the configuration to the plan: files are read and checked, cells become specs, artifacts name their work."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpvision.code import code_digest
from dpvision.config.base import Name
from dpvision.config.cells import Start
from dpvision.config.claims import Claim
from dpvision.config.datasets import Dataset
from dpvision.config.papers import Paper
from dpvision.config.published import Published
from dpvision.config.scales import Scale
from dpvision.config.settings import Config
from dpvision.config.weights import Features, Weights
from dpvision.errors import UserError
from dpvision.plan import audits, checks, claims, own, specs
from dpvision.plan.expand import Cell, expand, shown
from dpvision.plan.plan import DATA, Plan
from dpvision.plan.reading import Document, read_yaml, refuse, validated
from dpvision.plan.specs import Spec
from dpvision.plan.stages import ANALYSES
from dpvision.plan.titles import retitle
from dpvision.source import ROOT

RULES: tuple[str, ...] = ("all", "download", "prepare", "weights", "features", "search_worker", "search", "train")
RULES += tuple(f"analyse_{name}" for name in ANALYSES)
RULES += (
    "audit_record",
    "audit_figures",
    "audit",
    "attack",
    "table",
    "figure",
    "verdicts",
    "pages",
    "report",
    "archive",
    "verify",
)
NUMBER = {"metric", "weights", "split", "statistic", "source", "value", "spread"}  # of a published row


def load(config: dict[str, Any], root: Path = ROOT) -> Plan:
    """Return the plan of a configuration; `config` is what Snakemake made of config/config.yaml and the command line."""
    return _Loader(config, root).plan


@dataclass
class Source:
    """A paper as its files describe it: as printed, and with what the scale lays over it."""

    name: str
    places: list[str]
    """Its folder, and those of its parts."""
    documents: list[Document]
    printed: Paper
    here: Paper
    published: list[Published]
    as_printed: list[Cell]
    """Cells of `printed`."""
    cells: list[Cell]
    """Cells of the scale, with their runs."""


class _Loader:
    def __init__(self, config: dict[str, Any], root: Path) -> None:
        self.root = root
        scales = sorted(path.stem for path in (root / "config/scales").glob("*.yaml"))
        papers = sorted(path.parent.name for path in (root / "config/papers").glob("*/paper.yaml"))
        papers += own.own_papers(root)
        document = Document("config/config.yaml or the command line", config)
        settings: Config = validated(Config, [document])
        refuse(checks.of_settings(settings, scales, papers, RULES, [document]))
        self.own = own.asked_for(settings.papers, settings.scale, root)
        refuse(checks.of_files(root, settings.papers, scales))
        scale_document = read_yaml(root, f"config/scales/{settings.scale}.yaml")
        self.scale: Scale = validated(Scale, [scale_document])
        refuse(checks.of_scale(self.scale, papers, [scale_document]))
        dataset_documents = own.documents("datasets", self.own, root)
        self.datasets: dict[str, Dataset] = validated(dict[Name, Dataset], dataset_documents)
        refuse(checks.of_datasets(self.datasets, dataset_documents))
        self.weights, self.features = self._of_weights()
        refuse(checks.of_folders(settings.folders, [*self.datasets, *self.weights], [document]))
        for name, features in self.features.items():  # to cells they are a data set like any other
            about = {"shape": features.shape, "title": features.title, "mean": [], "std": [], "streamed": False}
            self.datasets[name] = self.datasets[features.of].model_copy(update=about)
        results = "results" if settings.scale == "paper" else f"results/{settings.scale}"
        folders = own.picture_folders(self.own, root) | settings.folders
        self.plan = Plan(settings.scale, results, self.scale.title, workers=self.scale.workers, folders=folders)
        self.plan.own = set(self.own)
        self.plan.own_leaves = settings.own_leaves
        self.plan.resources = self.scale.resources
        self.plan.selection = settings.artifacts == "selection"
        self.plan.sources = {
            name: specs.source_spec(self.datasets[name]) for name in self.datasets if name not in self.features
        }
        self.plan.weights = {name: specs.weights_source(weights) for name, weights in self.weights.items()}
        asked = self.own if settings.scale == own.SCALE else settings.papers
        if self.scale.papers and not any(self._has(f"config/papers/{name}") for name in asked):
            asked = self.scale.papers
        self.taken = dict.fromkeys(RULES, "a rule of the workflow") | dict.fromkeys(asked, "a paper")
        for name in asked:
            self._add_paper(name)
        audit = audits.engine_audit(self.plan.runs.values())
        self.plan.work["audit", audits.audit_name(audit)] = audit
        if not self.plan.papers:
            files = " or ".join(f"config/papers/{name}/{settings.scale}.yaml" for name in settings.papers)
            raise UserError(
                f"no paper has the scale {settings.scale}: there is no {files}; it says what differs from paper.yaml"
            )

    def _of_weights(self) -> tuple[dict[str, Weights], dict[str, Features]]:
        """Return what config/weights.yaml and config/features.yaml say."""
        documents = [read_yaml(self.root, "config/weights.yaml"), *own.documents("features", self.own, self.root)]
        weights: dict[str, Weights] = validated(dict[Name, Weights], documents[:1])
        features: dict[str, Features] = validated(dict[Name, Features], documents[1:])
        refuse(checks.of_weights(weights, self.datasets, documents[:1]))
        refuse(checks.of_features(features, self.datasets, weights, documents[1:]))
        return weights, features

    def _data(self, name: str, start: specs.Start | None = None) -> Spec:
        """Add a data set that cells name to the plan, with what it is made of; return its spec.

        `start`: the weights that the cells start with, which see the images where features have none of their own.
        """
        features = self.features.get(name)
        if features is None:
            data = specs.data_spec(name, self.datasets[name])
            self.plan.work["data", specs.data_name(data)] = data
            return data
        by = start or self._start(Start(weights=features.weights), None)
        weights = by.spec.get("weights", by.spec)
        if "run" in weights:
            run = self.plan.work["train", weights["run"]]
            weights = weights | {"model": run["model"], "classes": run["data"]["classes"]}
        constants = self.datasets[features.of].model_dump(include={"mean", "std"}) | by.constants
        data = specs.features_spec(name, features, self._data(features.of), weights, by.channels, constants)
        self.plan.work["features", specs.data_name(data)] = data
        return data

    def _add_paper(self, name: str) -> None:
        places = self._places(name)
        if not self._has(places[0]):
            self.plan.left_out.append(name)
            return
        as_written = self._documents(places, "paper")
        refuse(checks.of_parts(as_written))
        here_too = [place for place in places if self._has(place)]
        overlays = self._documents(here_too, self.plan.scale) if self.plan.scale not in ("paper", own.SCALE) else []
        refuse(checks.of_parts(overlays))
        documents = [*self._documents(here_too, "paper"), *overlays]
        here = self._paper(documents[: len(here_too)], overlays)
        printed = self._paper(as_written) if overlays else here
        left = [name for name in printed.artifacts if name not in here.artifacts]
        known = [*here.artifacts, *left]
        cells = self._checked(here, known, documents)
        as_printed = cells if printed is here else self._checked(printed, list(printed.artifacts), as_written)
        published = self._published(places, known)
        if self.plan.selection and here.selection:
            left += [name for name in here.artifacts if name not in here.selection]
            here = here.showing(here.selection)
            cells = [cell for cell in cells if cell.group in here.cells]
        numbers = [row for rows in published.values() for row in rows]
        paper = Source(name, places, documents, printed, here, numbers, as_printed, [])
        paper.cells = self._all_trained(paper, cells)
        for file, rows in published.items():
            refuse(checks.of_rows(rows, printed, as_printed, [read_yaml(self.root, file)]))
        refuse(checks.of_places(here, paper.cells, documents))
        known_for = (row.model_dump(exclude_none=True) | {"at": row.coordinates()} for row in numbers if row.headline)
        self.plan.headlines[printed.title] = list(known_for)
        if printed.practice:
            self.plan.practices[printed.title] = printed.practice.model_dump()
        self.plan.left_out += left
        self.plan.papers[name] = []
        for key in here.artifacts:
            self._add_artifact(key, paper)
        self.taken |= dict.fromkeys(here.artifacts, f"an artifact of {name}")

    def _checked(self, paper: Paper, artifacts: list[str], documents: list[Document]) -> list[Cell]:
        """Return a paper's cells, if nothing is wrong with it; `artifacts`: also those that the scale leaves out."""
        problems = [*checks.of_paper(paper, self.datasets, self.taken, artifacts, documents)]
        cells, more = expand(paper, self.datasets, documents)
        problems += [*more, *checks.of_cells(cells, paper, self.datasets, documents)]
        refuse([*problems, *checks.of_starts(cells, paper, self.datasets, self.features, self.weights, documents)])
        return cells

    def _places(self, name: str) -> list[str]:
        """Return a paper's folder, and the folders in it: its parts, each with files of the same names."""
        folder = f"{own.FOLDER if name in self.own else 'config/papers'}/{name}"
        parts = sorted((self.root / folder).glob("*/paper.yaml"))
        return [folder, *(f"{folder}/{part.parent.name}" for part in parts)]

    def _has(self, place: str) -> bool:
        """Tell whether a paper, or a part of one, has the plan's scale; an own paper has its own scale without a file."""
        file = "paper" if self.plan.scale == own.SCALE else self.plan.scale
        return (self.root / place / f"{file}.yaml").exists()

    def _documents(self, places: list[str], file: str) -> list[Document]:
        """Return the files of a name; an empty one says nothing, as of a scale at which nothing differs."""
        found = [read_yaml(self.root, f"{place}/{file}.yaml") for place in places]
        return [document if document.content is not None else document._replace(content={}) for document in found]

    def _published(self, places: list[str], artifacts: list[str]) -> dict[str, list[Published]]:
        """Return the paper's own numbers by their files; a place without such a file has none."""
        published: dict[str, list[Published]] = {}
        for file in (f"{place}/published.yaml" for place in places if (self.root / place / "published.yaml").exists()):
            document = read_yaml(self.root, file)
            published[file] = validated(list[Published], [document])
            refuse(checks.of_published(published[file], artifacts, [document]))
        return published

    def _paper(self, documents: list[Document], overlays: Sequence[Document] = ()) -> Paper:
        """Return the paper with the cells that its artifacts show: a scale leaves out others by showing less."""
        refuse(checks.of_left_out(documents, overlays))
        try:
            paper: Paper = validated(Paper, [*documents, *overlays])
            return paper.showing(paper.artifacts)
        except UserError as error:  # a slip in a scale's name for something looks like something new that is not whole
            raise UserError("\n".join([*checks.of_overlays(documents, overlays), str(error)])) from None

    def _all_trained(self, paper: Source, cells: list[Cell]) -> list[Cell]:
        """Add the runs of all cells to the plan; those that others start from come before these."""
        trained: dict[int, Cell] = {}

        def train(cell: Cell) -> Cell:
            if id(cell) not in trained:
                start = paper.here.cells[cell.group].start
                before = checks.cell_before(start, cells) if start and start.cells else None
                trained[id(cell)] = self._trained(paper, cell, before and train(before))
            return trained[id(cell)]

        return [train(cell) for cell in cells]

    def _start(self, start: Start, before: Cell | None) -> specs.Start:
        """Return what a cell begins with; `before` is the cell whose training that is."""
        if before is None:
            weights = self.weights[str(start.weights)]
            spec = specs.weights_spec(str(start.weights), weights)
            self.plan.work["weights", specs.data_name(spec)] = spec
            found = specs.start_from_weights(spec, weights)
        else:
            name = before.runs[str(start.seed)] if start.seed is not None else next(iter(before.runs.values()))
            found = specs.start_from_run(self.plan.work["train", name], start.take)
        return found._replace(constants={}) if start.images == "own" else found

    def _trained(self, paper: Source, cell: Cell, before: Cell | None) -> Cell:
        """Add a cell's runs, and what they need, to the plan; return it with their names."""
        cells, model, recipe, split = paper.here.cells[cell.group], cell.model, cell.recipe, cell.split
        dataset = self.datasets[cells.dataset]
        start = self._start(cells.start, before) if cells.start else None
        data = self._data(cells.dataset, start)
        begins = cells.train, None if cells.dataset in self.features else start
        study, searched = None, dict[str, str]()
        if cell.at["search"]:
            search = paper.here.searches[cell.at["search"]]
            by = checks.recipe_of_trials(cell, paper.here)
            held_out = checks.split_of_trials(cell, paper.here, dataset)
            epsilon = search.epsilon or cell.at["epsilon"]
            given = epsilon == "solve" or (by.steps is None and by.epochs is None)
            level = specs.budget_spec(epsilon, cells.delta, cell.at.get("sigma") if given else None)
            spec = specs.study_spec(specs.run_spec(data, dataset, held_out, model, by, level, *begins), search)
            study = specs.study_name(spec)
            self.plan.work["search", study] = spec
            searched = dict.fromkeys(search.space if cells.search else map("model.{}".format, model.searched()), study)
        budget = specs.budget_spec(cell.at["epsilon"], cells.delta, cell.at.get("sigma"))
        run = specs.run_spec(data, dataset, split, model, recipe, budget, *begins)
        if cells.protocol:
            run = specs.with_authors_protocol(run, cells.protocol, cell.level)
        run = specs.with_values(run, {key: {"study": name} for key, name in searched.items()})
        runs = {}
        for seed in cells.seeds or paper.here.seeds:
            spec = specs.seeded(run, seed)
            if cells.attack:
                spec = specs.attack_spec(spec, paper.here.attacks[cells.attack])
                runs[str(seed)] = specs.attack_name(spec)
                self.plan.work["attack", runs[str(seed)]] = spec
                continue
            runs[str(seed)] = specs.run_name(spec)
            self.plan.work["train", runs[str(seed)]] = spec
        return replace(cell, runs=runs, study=study)

    def _add_artifact(self, name: str, paper: Source) -> None:
        artifact = paper.here.artifacts[name]
        spec: Spec = {"kind": artifact.kind, "artifact": name, "scale": self.plan.scale}
        spec["reads"] = {what: list(reads) for what, reads in artifact.READS.items()}
        # a page of claims names models of parts that the scale leaves out, too
        models = {key: model.label for key, model in {**paper.printed.models, **paper.here.models}.items()}
        if artifact.kind == "claims":
            spec |= {"paper": paper.name} | self._claims(paper)
        else:
            chosen = shown(paper.here, paper.cells, name)
            wanted = list(dict.fromkeys(data for cell in chosen for data in self._to_be_brought(paper, cell)))
            if wanted and artifact.stages():
                self.plan.wanting[name] = wanted
                return
            cells = [self.cell(paper, cell, artifact.stages(), artifact.SEEDS) for cell in chosen]
            if artifact.SEARCHES:
                cells = [cell | {"studies": self._private_studies(one)} for cell, one in zip(cells, chosen, strict=True)]
            spec["cells"] = [cell for i, cell in enumerate(cells) if cell not in cells[:i]]  # a search is of several
            models = {cell["at"]["model"]: models[cell["at"]["model"]] for cell in cells}
        if hasattr(artifact, "published"):
            rows = [row for row in paper.published if row.artifact == (artifact.published or name)]
            spec["published"] = [{"at": row.coordinates(), **row.model_dump(include=NUMBER, exclude_none=True)} for row in rows]
        spec |= artifact.model_dump(exclude={"kind", "title", "cells", "epsilons", "published"}, exclude_none=True)
        spec["code"] = code_digest(artifact.MAKER, f"dpvision.reporting.kinds.{artifact.kind}", *claims.modules(spec))
        self.plan.artifacts[name] = spec
        self.plan.papers[paper.name].append(name)
        is_of_cells = artifact.kind not in ("claims", "quoted")  # what is quoted is of the paper's own data
        self.plan.labels[name] = {
            "paper": paper.here.title,
            "title": self._title(paper, name, models) if is_of_cells else artifact.title,
            "scale": self.scale.title,
            "models": models,
            "datasets": self._dataset_labels(spec),
            **({"as_written": True} if paper.here == paper.printed else {}),
        }
        if starts := self._start_labels(paper, spec):
            self.plan.labels[name]["starts"] = starts

    def _private_studies(self, cell: Cell) -> list[Spec]:
        """Return the spec of a cell's search, if it has one that trains privately."""
        spec = self.plan.work["search", cell.study] if cell.study else None
        return [spec] if spec and spec["run"]["budget"] else []

    def _dataset_labels(self, spec: Spec) -> dict[str, str]:
        """Return what the data sets of an artifact's cells and printed numbers are called, where their entries say it."""
        names = [of["at"].get("dataset") for of in [*spec.get("cells", []), *spec.get("published", [])]]
        return {name: self._data_label(name) for name in dict.fromkeys(names) if name in self.datasets}

    def _title(self, paper: Source, artifact: str, models: Iterable[str]) -> str:
        """Return an artifact's title, with the data and networks that the scale has in the place of the paper's."""
        printed, here = paper.printed, paper.here
        groups = {cell.group for cell in shown(here, paper.cells, artifact)}
        starts = {start.cells for name in groups if (start := here.cells[name].start) and start.cells}
        data, before = (self._replaced_data(paper, sorted(names & printed.cells.keys())) for names in (groups, starts - groups))
        networks = {printed.models[key].label: here.models[key].label for key in models if key in printed.models}
        return retitle(here.artifacts[artifact].title, networks | before, data)

    def _replaced_data(self, paper: Source, groups: list[str]) -> dict[str, str]:
        """Return what the data of groups are called, by what the paper's are called; the same where none are replaced."""
        data = [(paper.printed.cells[name].dataset, paper.here.cells[name].dataset) for name in groups]
        return {self._data_label(was).partition(",")[0]: self._data_label(now).partition(",")[0] for was, now in data}

    def _data_label(self, name: str) -> str:
        """Return what a data set is called; features without a name of their own are called as the data they are made of."""
        return self.datasets[name].label or (self.features[name].of if name in self.features else name)

    def _start_labels(self, paper: Source, spec: Spec) -> dict[str, str]:
        """Return what the groups are called that an artifact's cells start from: their one network, and what it saw."""
        groups = {cell["at"].get("start") for cell in spec.get("cells", [])} & paper.here.cells.keys()
        of = {group: paper.here.cells[group] for group in sorted(groups) if len(paper.here.cells[group].models) == 1}
        seen = {group: self.datasets[cells.dataset].label or cells.dataset for group, cells in of.items()}
        return {group: f"{paper.here.models[cells.models[0]].label} from {seen[group]}" for group, cells in of.items()}

    def cell(self, paper: Source, cell: Cell, stages: list[str], seeds: int | None = None) -> Spec:
        """Return a cell with the work of some stages that it has; analyses are added to the plan."""
        runs = dict(list(cell.runs.items())[:seeds])
        work: dict[str, dict[str, str]] = {}
        at = cell.at
        for stage in stages:
            if stage in ANALYSES:
                work[stage] = {seed: self._analysis(stage, run, paper.here) for seed, run in runs.items()}
            elif stage in ("train", "attack"):
                work[stage] = runs
            elif stage == "data":
                name = specs.data_name(specs.data_spec(at["dataset"], self.datasets[at["dataset"]]))
                work[stage] = {at["dataset"]: name}
            elif cell.study:
                trials = self.plan.work["search", cell.study]["run"]
                work[stage] = {str(trials["seed"]): cell.study}
                if stages == ["search"]:  # a search alone has its own ε, which several cells may share
                    at = at | {"epsilon": trials["budget"].get("epsilon", "solve") if trials["budget"] else None}
        divisor = cell.recipe.simulate
        return {"at": at, "work": work} | ({"simulated": divisor} if divisor else {})

    def _analysis(self, stage: str, run: str, paper: Paper) -> str:
        spec = specs.analysis_spec(stage, run, getattr(paper, stage))
        name = specs.analysis_name(spec)
        self.plan.work[stage, name] = spec
        return name

    def _claims(self, paper: Source) -> Spec:
        """Return the work that the paper's sentences rest on."""
        files = [place for place in paper.places if (self.root / place / "claims.yaml").exists()] or paper.places[:1]
        documents = self._documents(files, "claims")
        refuse(checks.of_claims(documents))
        stated: dict[str, Claim] = validated(dict[Name, Claim], documents)
        resolver = claims.Resolver(paper.printed, paper.as_printed, paper.here, paper.published, self._there(paper))
        refuse(resolver.problems(stated, documents))
        return resolver.page(stated, lambda cell, stage: self.cell(paper, cell, [stage]) | self._attacked(cell, stage))

    def _attacked(self, cell: Cell, stage: str) -> Spec:
        """Return how a cell is attacked; nothing of one that is trained."""
        if stage != "attack":
            return {}
        spec = self.plan.work["attack", next(iter(cell.runs.values()))]
        run, targets = spec["run"], [f"{one['image']} as {one['label']}" for one in spec["targets"] or []]
        said = {"by": spec["by"], "targets": targets, "examples": specs.training_count(run)}
        return {"attacked": said | {"q": specs.sampling_rate(run), "steps": specs.step_count(run)}}

    def _there(self, paper: Source) -> list[Cell]:
        return [cell for cell in paper.cells if not self._to_be_brought(paper, cell)]

    def _to_be_brought(self, paper: Source, cell: Cell) -> list[str]:
        """Return the data of a cell, and of those that it starts from, that have to be brought and are not here."""
        start, name = paper.here.cells[cell.group].start, cell.at["dataset"]
        before = self._to_be_brought(paper, checks.cell_before(start, paper.cells)) if start and start.cells else []
        name = self.features[name].of if name in self.features else name
        here = name in self.plan.folders or (self.root / DATA / "raw" / name / "files.json").exists()
        return before if self.datasets[name].sources or here else [*before, name]
