"""The plan: all work by stage and name, what it needs, and the artifacts that rest on it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpvision.config.scales import Resources
from dpvision.errors import UserError
from dpvision.plan import cost, space, specs
from dpvision.plan.specs import Spec
from dpvision.plan.stages import STAGES, Key
from dpvision.reporting.kinds import KINDS

DATA = "results/data"  # shared by the scales: what is prepared there is named by its digest
FORMAT = 3  # version of the artifacts' specs, in plan/ and in archives
PROOFS = {"train": "provenance.json", "weights": "weights.json"}  # the digests of the weights that a stage leaves
LABELS = "labels.json"  # file in a folder of kept results, beside its plan/


@dataclass
class Plan:
    """A plan: everything the rules need to know. Names are folders; specs are what a job is given."""

    scale: str
    results: str
    title: str = ""
    resources: dict[str, Resources] = field(default_factory=dict)
    workers: int = 1
    folders: dict[str, str] = field(default_factory=dict)
    shared: str = DATA
    sources: dict[str, dict] = field(default_factory=dict)  # data set -> its entry, for the download
    weights: dict[str, dict] = field(default_factory=dict)  # weights -> their entry, for whoever fetches them
    work: dict[Key, Spec] = field(default_factory=dict)
    artifacts: dict[str, Spec] = field(default_factory=dict)
    papers: dict[str, list[str]] = field(default_factory=dict)  # paper -> its artifacts
    own: set[str] = field(default_factory=set)
    """Papers of the user's own, with pictures that nobody else is to see."""
    own_leaves: str = "nothing"
    """What the settings let an archive have of these papers."""
    selection: bool = False  # whether of each paper its selection alone is built
    left_out: list[str] = field(default_factory=list)  # artifacts, or whole papers, that the scale or a selection does without
    wanting: dict[str, list[str]] = field(default_factory=dict)  # artifact -> data sets that have to be brought
    labels: dict[str, dict[str, Any]] = field(default_factory=dict)  # artifact -> title, models as shown
    headlines: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # a paper's title -> what it is known for
    practices: dict[str, dict[str, Any]] = field(default_factory=dict)  # a paper's title -> how its numbers came about

    def of(self, stage: str) -> dict[str, Spec]:
        """Return the specs of a stage's work by name."""
        return {name: spec for (of, name), spec in self.work.items() if of == stage}

    @property
    def runs(self) -> dict[str, Spec]:
        """Return the trainings by name."""
        return self.of("train")

    # --- where things lie ---

    def folder(self, key: Key) -> str:
        stage = STAGES[key[0]]
        return f"{self.shared if stage.shared else self.results}/{stage.folder}/{key[1]}"

    def record(self, key: Key) -> list[str]:
        """Return the files of a piece of work."""
        return [f"{self.folder(key)}/{file}" for file in STAGES[key[0]].record]

    def product(self, key: Key) -> str:
        """Return the file that stands for a piece of work."""
        return self.record(key)[0]

    def logs(self, key: Key, root: Path) -> list[str]:
        """Return the logs that there are of a piece of work's jobs, the last job's last."""
        stage, name = STAGES[key[0]], key[1]
        folder = f"{self.shared if stage.shared else self.results}/logs"
        patterns = [f"{folder}/{log.format(name=name, source=name.rsplit('-', 1)[0])}" for log in stage.logs]
        return [file.relative_to(root).as_posix() for pattern in patterns for file in sorted(root.glob(pattern))]

    def is_done(self, key: Key, root: Path) -> bool:
        return all((root / file).exists() for file in self.record(key))

    # --- what needs what ---

    def needs(self, key: Key) -> list[Key]:
        """Return the work that has to be done before a piece of work."""
        return STAGES[key[0]].needs(self.work[key])

    def with_needs(self, keys: Iterable[Key]) -> list[Key]:
        """Return the work and all that it needs, each piece once and after what it needs itself."""
        found: dict[Key, None] = {}

        def add(key: Key) -> None:
            if key not in found:
                for below in self.needs(key):
                    add(below)
                found[key] = None

        for key in keys:
            add(key)
        return list(found)

    def unrepeatable(self, keys: Iterable[Key]) -> list[Key]:
        """Return the trainings and searches among work whose noise is secret."""
        trained = [(key, self.work[key]) for key in keys if key[0] in ("train", "search") and self.work[key]]
        return [key for key, spec in trained if not specs.is_repeatable(spec.get("run", spec))]

    def run_of(self, key: Key) -> Spec:
        """Return the training that a piece of work is about: itself, a search's trials, the one whose weights are analysed."""
        spec = self.work[key]
        run = spec.get("run", spec)
        return self.work["train", run] if isinstance(run, str) else run

    def dearest_run_of(self, key: Key) -> Spec:
        """Return its training with the greatest values in place of those that searches find: costs are counted with it."""
        spec, run = self.work[key], self.run_of(key)
        if key[0] == "features":
            return cost.network_of_features(spec)
        studies = dict.fromkeys(spec["space"], key[1]) if key[0] == "search" else specs.searched_keys(run)
        found = {at: space.greatest(self.work["search", study]["space"][at]) for at, study in studies.items()}
        return specs.with_findings(run, studies, found)

    def data_of(self, key: Key) -> str:
        return self.folder(specs.data_key(self.run_of(key)))

    def data_for(self, key: Key, products: list[str]) -> list[str]:
        """Return the prepared data that work waits for; none where all its products are there.

        Finished work does not hang on its data: data that was deleted can be made anew, for a further seed say,
        and nothing else runs again. (Snakemake's ancient() would do, but with it 9.27 forgets products that are
        missing whenever the data is being made anew.)
        """
        return [] if all(Path(product).exists() for product in products) else [f"{self.data_of(key)}/dataset.json"]

    def proof(self, key: Key) -> str:
        """Return the small file that proves the weights that a piece of work leaves."""
        return f"{self.folder(key)}/{PROOFS[key[0]]}"

    def start_for(self, key: Key, products: list[str]) -> list[str]:
        """Return the small file that proves the weights that work begins with; none where its products are there.

        Snakemake looks at dates alone where a file is large: weights are such.
        """
        if all(Path(product).exists() for product in products):
            return []
        return [self.proof(below) for below in specs.start_key(self.run_of(key))]

    # --- artifacts ---

    def targets(self, name: str) -> list[str]:
        """Return the files of `all`, of a paper, or of an artifact."""
        if name in self.artifacts:
            return [f"{self.results}/{file.format(name)}" for file in options_of(self.artifacts[name]).FILES]
        return [file for artifact in self.chosen(name) for file in self.targets(artifact)]

    def spec_file(self, artifact: str) -> str:
        """Return the file that says what an artifact on the disk was made of."""
        return f"{self.results}/plan/{artifact}.json"

    def chosen(self, target: str) -> list[str]:
        """Return the artifacts of a target."""
        if target in self.wanting:
            raise UserError(missing_data([target], self.wanting[target]))
        return list(self.artifacts) if target == "all" else self.papers.get(target, [target])

    def asked_by(self) -> str:
        """Return what a command says to ask for this scale: its name, and your copies of the data that have to be brought."""
        names = sorted({str(data["name"]) for data in self.of("data").values()} & self.folders.keys())
        folders = f" 'folders={{{', '.join(f'{name}: /your/copy' for name in names)}}}'" if names else ""
        return f"--config scale={self.scale}{folders}"

    def left_out_for_data(self) -> list[str]:
        """Say which artifacts are left out of `all` for want of data, a line for all that want the same."""
        wants = dict.fromkeys(tuple(wanted) for wanted in self.wanting.values())
        by_data = {wanted: [name for name in self.wanting if tuple(self.wanting[name]) == wanted] for wanted in wants}
        return [f"left out: {missing_data(names, wanted)}" for wanted, names in by_data.items()]

    def pattern(self, folder: str) -> str:
        """Return the names of the artifacts in a folder as a regular expression, with those that want data, to be refused."""
        return "|".join([*self.of_kind(folder), *self.wanting]) or "none"

    def of_kind(self, folder: str) -> list[str]:
        """Return the artifacts whose first file lies in tables/ or figures/, or above them."""
        return [name for name, spec in self.artifacts.items() if folder_of(spec) == folder]

    def work_of(self, artifact: str) -> list[Key]:
        """Return the work that an artifact shows."""
        return list(dict.fromkeys(key for cell in self.artifacts[artifact]["cells"] for key in work_in(cell)))

    def below(self, artifact: str) -> list[Key]:
        """Return everything that an artifact rests on."""
        return self.with_needs(self.work_of(artifact))

    def runs_of(self, artifact: str) -> list[str]:
        """Return the trainings that an artifact rests on."""
        return [name for stage, name in self.below(artifact) if stage == "train"]

    def inputs_of(self, artifact: str) -> dict[str, list[str]]:
        """Return the files that an artifact is made of, by what its maker calls them."""
        self.chosen(artifact)
        spec = self.artifacts[artifact]
        return {name: list(dict.fromkeys(self._files_read(spec, reads))) for name, reads in spec["reads"].items()}

    def _files_read(self, spec: Spec, reads: list[str]) -> Iterator[str]:
        """Yield the files of its cells' work; a cell may say by itself what is read of it."""
        for cell in spec["cells"]:
            for stage, file in (read.split("/") for read in cell.get("reads", reads)):
                yield from (f"{self.folder((stage, name))}/{file}" for name in cell["work"].get(stage, {}).values())

    def everything(self, target: str) -> list[str]:
        """Return the targets and what they rest on, so that a record that was deleted is made again with them."""
        below = [file for name in self.chosen(target) for files in self.inputs_of(name).values() for file in files]
        return self.targets(target) + list(dict.fromkeys(below))

    def kept(self) -> list[Key]:
        """Return the work that an archive keeps: all that artifacts rest on."""
        return self.with_needs(dict.fromkeys(key for artifact in self.artifacts for key in self.work_of(artifact)))

    def kept_files(self) -> list[str]:
        """Return the files of an archive that are results: artifacts, what they are made of, the records around that."""
        kept = self.kept()
        records = [file for key in kept for file in self.record(key)]
        records += [f"{self.shared}/raw/{self.work[key]['name']}/files.json" for key in kept if key[0] == "data"]
        records += [self.spec_file(artifact) for artifact in self.artifacts]
        return list(dict.fromkeys(self.everything("all") + records))


def missing_data(artifacts: Sequence[str], wanted: Sequence[str]) -> str:
    """Say what somebody has to bring before artifacts can be made."""
    entries = ", ".join(f"{dataset}: /your/copy" for dataset in wanted)
    return (
        f"{', '.join(artifacts)}: made of {' and '.join(wanted)}, which nobody can download; name a copy of yours in "
        f"config/config.yaml, folders: {{{entries}}}"
    )


def options_of(artifact: Spec) -> Any:
    """Return the options of an artifact's kind, which say where its files lie."""
    return KINDS[artifact["kind"]].Options


def folder_of(artifact: Spec) -> str:
    """Return tables, figures, or nothing for what lies above them."""
    return options_of(artifact).FILES[0].rpartition("/")[0]


def work_in(cell: Spec) -> list[Key]:
    """Return the work of a cell."""
    return [(stage, name) for stage, names in cell["work"].items() for name in names.values()]
