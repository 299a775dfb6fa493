"""From the configuration to what is to be done: specs by name, and the files that each target asks for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpvision.code import code_digest
from dpvision.errors import UserError
from dpvision.models.options import Network
from dpvision.plan import checks, claims, cost, specs
from dpvision.plan.config import (
    Artifact,
    Cells,
    Claim,
    Config,
    Dataset,
    Name,
    Paper,
    Published,
    Resources,
    Scale,
    Stages,
)
from dpvision.plan.cost import Cost
from dpvision.plan.reading import Document, read_yaml, refuse, validated
from dpvision.plan.specs import Spec

ROOT = Path(__file__).parents[4]
DATA = "results/data"  # shared by the scales: what is prepared there is named by its digest
TABLES = ("csv", "md", "tex")
FIGURES = ("svg", "pdf", "png", "csv")
RULES = (
    "all",
    "download",
    "prepare",
    "search_worker",
    "search",
    "train",
    "curvature",
    "activations",
    "table",
    "figure",
    "verdicts",
    "pages",
    "report",
    "archive",
)
CLAIMS = "claims"  # the page of all papers' claims: an artifact like others, but of no paper alone
LABELS = "labels.json"  # of a folder of kept results, beside its plan/
FOLDERS = {
    "accuracy": "tables",
    "hessian": "tables",
    "activations": "figures",
    "curves": "figures",
    "spectrum": "figures",
    "search": "figures",
    "schematic": "figures",
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
    left_out: list[str] = field(default_factory=list)  # artifacts of the papers that the scale does without
    labels: dict[str, dict[str, str]] = field(default_factory=dict)  # artifact -> title, models and data sets as shown

    def targets(self, name: str) -> list[str]:
        """The files of `all`, of a paper, or of an artifact."""
        if name == CLAIMS:
            pages = [f"{self.results}/{name}.{kind}" for kind in ("csv", "md")]
            return pages + [f"{self.results}/figures/{name}.{kind}" for kind in FIGURES]
        if name in self.artifacts:
            folder = FOLDERS[self.artifacts[name]["kind"]]
            kinds = TABLES if folder == "tables" else FIGURES
            return [f"{self.results}/{folder}/{name}.{kind}" for kind in kinds]
        chosen = self.artifacts if name == "all" else self.papers[name]
        return [file for artifact in chosen for file in self.targets(artifact)]

    def named(self, folder: str) -> str:
        """The artifacts that lie in tables/ or figures/, as a regular expression."""
        return "|".join(self.of_kind(folder)) or "none"

    def of_kind(self, folder: str) -> list[str]:
        """The artifacts that lie in tables/ or figures/."""
        return [name for name, spec in self.artifacts.items() if FOLDERS.get(spec["kind"]) == folder]

    def everything(self, name: str) -> list[str]:
        """The targets and what they rest on, so that a record that was deleted is made again with them."""
        chosen = self.artifacts if name == "all" else self.papers.get(name, [name])
        below = [file for artifact in chosen for files in self.inputs_of(artifact).values() for file in files]
        return self.targets(name) + list(dict.fromkeys(below))

    def record(self, run: str) -> list[str]:
        return [f"{self.results}/runs/{run}/{file}" for file in specs.RECORD]

    def data_of(self, run: Spec) -> str:
        return f"{DATA}/prepared/{run['data']['prepared']}"

    def data_for(self, run: Spec, products: list[str]) -> list[str]:
        """The prepared data that work waits for; none where all its products are there.

        Finished work does not hang on its data: data that was deleted can be made anew, for a further seed say,
        and nothing else runs again. (Snakemake's ancient() would do, but with it 9.27 forgets products that are
        missing whenever the data is being made anew.)
        """
        return [] if all(Path(product).exists() for product in products) else [f"{self.data_of(run)}/dataset.json"]

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
        """The records that an artifact is made of, by what they are."""
        spec = self.artifacts[artifact]
        runs = self.runs_of(artifact)
        analyses = spec.get("analyses", {}).values()
        made_by = [f"{self.results}/runs/{run}/provenance.json" for run in runs]
        examined_by = [f"{self.results}/hessians/{name}/provenance.json" for name in analyses]
        return {
            "accuracy": lambda: {
                "metrics": [f"{self.results}/runs/{run}/metrics.json" for run in runs],
                "ledgers": [f"{self.results}/runs/{run}/ledger.json" for run in runs],
                "provenance": made_by,
            },
            "hessian": lambda: {"hessians": [self.hessian_of(name) for name in analyses], "provenance": made_by + examined_by},
            "spectrum": lambda: {"hessians": [self.hessian_of(name) for name in analyses]},
            "activations": lambda: {"histograms": [f"{self.results}/activations/{name}/histograms.csv" for name in analyses]},
            "curves": lambda: {"histories": [f"{self.results}/runs/{run}/history.csv" for run in runs]},
            "schematic": dict,
            "search": lambda: {"trials": [f"{self.results}/studies/{study}/trials.csv" for study in spec["studies"]]},
            "claims": lambda: {
                "records": [f"{self.results}/runs/{file}" for file in claims.files_of(spec["claims"])],
                "hessians": [self.hessian_of(name) for name in spec["hessians"].values()],
                "histograms": [f"{self.results}/activations/{name}/histograms.csv" for name in spec["activations"].values()],
            },
        }[spec["kind"]]()

    def kept(self) -> dict[str, list[str]]:
        """What an archive keeps of all that artifacts rest on, by name: runs, studies, analyses, data."""
        runs = dict.fromkeys(run for artifact in self.artifacts for run in self.runs_of(artifact))
        studies = dict.fromkeys(study for run in runs for study in specs.searched_keys(self.runs[run]).values())
        studies |= dict.fromkeys(study for spec in self.artifacts.values() for study in spec.get("studies", {}))
        kinds = ("analyses", "hessians", "activations")  # of an artifact; the page of claims has two
        analyses = dict.fromkeys(
            name for spec in self.artifacts.values() for kind in kinds for name in spec.get(kind, {}).values()
        )
        trained = [*(self.runs[run] for run in runs), *(self.studies[study]["run"] for study in studies)]
        return {
            "runs": list(runs),
            "studies": list(studies),
            "hessians": [name for name in analyses if name in self.hessians],
            "activations": [name for name in analyses if name in self.activations],
            "data": list(dict.fromkeys(run["data"]["prepared"] for run in trained)),
        }

    def kept_files(self) -> list[str]:
        """The files of an archive that are results: artifacts, what they are made of, and all of the records around that."""
        kept = self.kept()
        names = {
            "studies": ("best.json", "trials.csv", "provenance.json"),
            "hessians": ("hessian.json", "provenance.json"),
            "activations": ("histograms.csv", "provenance.json"),
        }
        records = [file for run in kept["runs"] for file in self.record(run)]
        records += [f"{self.results}/{kind}/{name}/{file}" for kind in names for name in kept[kind] for file in names[kind]]
        records += [f"{DATA}/prepared/{name}/{file}" for name in kept["data"] for file in ("dataset.json", "provenance.json")]
        records += [f"{DATA}/raw/{self.data[name]['name']}/files.json" for name in kept["data"]]
        records += [f"{self.results}/plan/{artifact}.json" for artifact in self.artifacts]
        return list(dict.fromkeys(self.everything("all") + records))

    def asks(self, stage: str, cost_of: Callable[[Any], Cost] | None = None) -> dict[str, Any]:
        """A stage's resources as Snakemake takes them: of the job's own cost where that is known, more at every attempt."""
        limits: Resources = getattr(self.resources, stage)

        def runtime(wildcards: Any, attempt: int) -> int:
            if cost_of is None:
                return limits.runtime * attempt
            cost = cost_of(wildcards)
            return int(min(limits.runtime, cost.minutes(limits.speed * (cost.devices if limits.gpu else 1)) * attempt))

        def mem_mb(wildcards: Any, attempt: int) -> int:
            """Half as much again at every attempt: most retries are for other reasons than memory."""
            cost = cost_of(wildcards) if cost_of else None
            needed = self.megabytes(stage, cost) if cost else limits.mem_mb
            return needed * (1 + attempt) // 2

        asked = {"physical_batch": limits.physical_batch, "runtime": runtime, "mem_mb": mem_mb}
        if limits.gpu:  # gpu=0 would still be a request on some clusters
            asked["gpu"] = lambda wildcards: limits.gpu * (cost_of(wildcards).devices if cost_of else 1)
            asked["nodes"] = 1  # or a cluster may give two GPUs on two machines
        return asked

    def megabytes(self, stage: str, cost: Cost) -> int:
        """What a job needs at its first attempt."""
        limits: Resources = getattr(self.resources, stage)
        return limits.mem_mb * cost.devices + cost.megabytes(0 if limits.gpu else limits.threads)

    def cost_of_run(self, wildcards: Any) -> Cost:
        return cost.training(self.runs[wildcards.run], self.resources.train.physical_batch)

    def cost_of_worker(self, wildcards: Any) -> Cost:
        return cost.search_worker(self.studies[wildcards.study], self.resources.search.physical_batch, self.workers)

    def cost_of_hessian(self, wildcards: Any) -> Cost:
        spec = self.hessians[wildcards.analysis]
        return cost.curvature(spec, self.runs[spec["run"]], self.resources.curvature.physical_batch)

    def cost_of_activations(self, wildcards: Any) -> Cost:
        spec = self.activations[wildcards.analysis]
        return cost.activations(spec, self.runs[spec["run"]])


def load(config: dict[str, Any], root: Path = ROOT) -> Plan:
    """The plan of a configuration; `config` is what Snakemake made of config/config.yaml and the command line."""
    return _Builder(config, root).plan


def left_out(documents: list[Document]) -> list[str]:
    """Artifacts that the scale, the last document, leaves out by null."""
    artifacts = documents[-1].content.get("artifacts") or {}
    return [name for name, artifact in artifacts.items() if artifact is None]


class _Builder:
    def __init__(self, config: dict[str, Any], root: Path) -> None:
        self.root = root
        scales, papers = (
            sorted(path.stem for path in (root / "config" / kind).glob("*.yaml")) for kind in ("scales", "papers")
        )
        document = Document("config/config.yaml or the command line", config)
        settings: Config = validated(Config, [document])
        refuse(checks.of_settings(settings, scales, papers, [document]))
        self.scale_document = read_yaml(root, f"config/scales/{settings.scale}.yaml")
        self.scale: Scale = validated(Scale, [self.scale_document])
        refuse(checks.of_scale(self.scale, papers, [self.scale_document]))
        dataset_document = read_yaml(root, "config/datasets.yaml")
        self.datasets: dict[str, Dataset] = validated(dict[Name, Dataset], [dataset_document])
        refuse(checks.of_datasets(self.datasets, [dataset_document]))
        refuse(checks.of_folders(settings.folders, self.datasets, [document]))
        results = "results" if settings.scale == "paper" else f"results/{settings.scale}"
        self.plan = Plan(settings.scale, results, self.scale.title, self.scale.resources, self.scale.workers, settings.folders)
        self.plan.sources = {name: specs.source_spec(dataset) for name, dataset in self.datasets.items()}
        self.taken = dict.fromkeys(RULES, "a rule of the workflow") | dict.fromkeys(settings.papers, "a paper")
        self.taken |= {CLAIMS: "the page of all claims"}
        self.page: dict[str, Any] = {"claims": [], "hessians": {}, "activations": {}}
        for name in settings.papers:
            self._add_paper(name)
        if self.page["claims"]:
            self._add_page()

    def _add_paper(self, name: str) -> None:
        documents = [read_yaml(self.root, f"config/papers/{name}.yaml")]
        if name in self.scale.papers:
            overlay = Document(self.scale_document.file, self.scale.papers[name], ("papers", name))
            documents.append(overlay)
        paper: Paper = self._paper(documents)
        left = left_out(documents)
        known = [*paper.artifacts, *left]
        refuse(checks.of_paper(paper, self.datasets, self.taken, known, documents))
        self.plan.left_out += left
        published = self._published(name, known)
        cells = {group: self._cells(paper, here) for group, here in paper.cells.items()}
        self.plan.papers[name] = list(paper.artifacts)
        for key, artifact in paper.artifacts.items():
            printed = [row for row in published if row.artifact == (artifact.published or key)]
            self._add_artifact(key, paper, artifact, cells, printed)
        self.taken |= dict.fromkeys(paper.artifacts, f"an artifact of {name}")
        self._add_claims(name, documents, paper, cells, published)

    def _published(self, name: str, artifacts: list[str]) -> list[Published]:
        """The paper's own numbers; a paper without such a file has none."""
        file = f"config/published/{name}.yaml"
        if not (self.root / file).exists():
            return []
        document = read_yaml(self.root, file)
        rows: list[Published] = validated(list[Published], [document])
        refuse(checks.of_published(rows, artifacts, [document]))
        return rows

    def _paper(self, documents: list[Document]) -> Paper:
        """With the cells that its artifacts show: a scale leaves out others by showing less."""
        try:
            paper: Paper = validated(Paper, documents)
            shown = {group for artifact in paper.artifacts.values() for group in artifact.cells}
            return paper.model_copy(update={"cells": {name: here for name, here in paper.cells.items() if name in shown}})
        except UserError as error:  # a slip in a scale's name for something looks like something new that is not whole
            raise UserError("\n".join([*checks.of_overlay(documents), str(error)])) from None

    def _cells(self, paper: Paper, here: Cells) -> list[dict]:
        """The group's cells, each with a run a seed; the runs and what they need are added to the plan."""
        dataset = self.datasets[here.dataset]
        data = specs.data_spec(here.dataset, dataset)
        self.plan.data[specs.data_name(data)] = data
        cells = []
        for model_name in here.models:
            model, recipe = paper.models[model_name], paper.recipes[here.recipe]
            study = self._study(paper, data, dataset, model, here)
            for place, epsilon in enumerate(here.epsilons):
                run = specs.run_spec(data, dataset, model, recipe, here, epsilon)
                if here.protocol:
                    run = specs.as_the_authors(run, here.protocol, place)
                run = specs.with_values(run, {f"model.{key}": {"study": study} for key in model.searched()})
                seeds = {}
                for seed in paper.seeds:
                    spec = specs.seeded(run, seed)
                    name = specs.run_name(spec)
                    self.plan.runs[name] = spec
                    seeds[str(seed)] = name
                cell = {"dataset": here.dataset, "model": model_name, "epsilon": epsilon, "delta": here.delta, "runs": seeds}
                cell |= {"simulated": recipe.simulate} if recipe.simulate else {}
                cells.append(cell | ({"protocol": "paper"} if here.protocol else {}))
        return cells

    def _study(self, paper: Paper, data: Spec, dataset: Dataset, model: Network, cells: Cells) -> str | None:
        """The search that a model of these cells leaves something to."""
        if not model.searched():
            return None
        named = next(iter(model.searched().values()))
        search = paper.searches[cells.searches.get(named, named)]
        recipe = paper.recipes[search.recipe or cells.recipe]
        run = specs.run_spec(data, dataset, model, recipe, cells, search.epsilon)
        spec = specs.study_spec(run, search)
        name = specs.study_name(spec)
        self.plan.studies[name] = spec
        return name

    def _add_artifact(
        self, name: str, paper: Paper, artifact: Artifact, cells: dict[str, list[dict]], published: list[Published]
    ) -> None:
        chosen = [
            cell
            for group in artifact.cells
            for cell in cells[group]
            if artifact.epsilons is None or cell["epsilon"] in artifact.epsilons
        ]
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
        if FOLDERS[artifact.kind] == "tables":
            rows = [row.model_dump(exclude={"artifact", "note"}) for row in published]
            spec |= {"statistic": artifact.statistic, "published": rows}
        spec["code"] = code_digest(f"dpvision.reporting.{FOLDERS[artifact.kind]}")
        self.plan.artifacts[name] = spec
        models = {cell["model"]: paper.models[cell["model"]].label for cell in chosen}
        self.plan.labels[name] = {"paper": paper.title, "title": artifact.title, **models}

    def _add_claims(
        self, name: str, documents: list[Document], paper: Paper, cells: dict[str, list[dict]], published: list[Published]
    ) -> None:
        """What the paper's sentences rest on; a paper without a file of claims makes none."""
        file = f"config/claims/{name}.yaml"
        if not (self.root / file).exists():
            return
        printed = self._paper(documents[:1])
        document = read_yaml(self.root, file)
        stated: dict[str, Claim] = validated(dict[Name, Claim], [document])
        refuse(claims.of_claims(stated, printed, published, [document]))
        decisions = claims.Decisions(name, printed, paper, cells, published)
        made = [decisions.spec(key, claim) for key, claim in stated.items()]
        for kind, side in claims.sides_in(made):
            for run in side["runs"].values():
                if kind == "curvature":
                    self.page["hessians"][run] = self._hessian(run, paper)
                if kind == "moment":
                    self.page["activations"][run] = self._activations(run, paper)
        self.page["claims"] += made
        models = {f"{name}.{key}": model.label for key, model in paper.models.items()}
        self.plan.labels.setdefault(CLAIMS, {}).update({name: paper.title} | models)

    def _add_page(self) -> None:
        """The page of all claims; a target of its own, and of a paper where it is about that one alone."""
        with_runs = [side for _, side in claims.sides_in(self.page["claims"]) if side["runs"]]
        cells = [side for i, side in enumerate(with_runs) if side not in with_runs[:i]]
        code = code_digest("dpvision.reporting.claims")
        about = {"kind": CLAIMS, "artifact": CLAIMS, "scale": self.plan.scale}
        self.plan.artifacts[CLAIMS] = about | self.page | {"cells": cells, "code": code}
        self.plan.labels[CLAIMS]["scale"] = self.scale.title
        papers = list(dict.fromkeys(claim["paper"] for claim in self.page["claims"]))
        if len(papers) == 1:
            self.plan.papers[papers[0]].append(CLAIMS)

    def _hessian(self, run: str, paper: Paper) -> str:
        spec = specs.hessian_spec(run, paper.hessian)
        self.plan.hessians[specs.analysis_name(spec)] = spec
        return specs.analysis_name(spec)

    def _activations(self, run: str, paper: Paper) -> str:
        spec = specs.activations_spec(run, paper.activations)
        self.plan.activations[specs.analysis_name(spec)] = spec
        return specs.analysis_name(spec)
