"""The place to verify: an archive, packed or not, or a folder of results; and what in it belongs together."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpvision.errors import UserError
from dpvision.files import read_json
from dpvision.plan import Plan, specs
from dpvision.plan.plan import FORMAT, LABELS
from dpvision.plan.stages import STAGES, Key
from dpvision.plan.withheld import all_withheld_files
from dpvision.verify.finding import Finding
from dpvision.verify.foreign import (
    ForeignPlan,
    refuse_name,
    refuse_names_of_artifact,
    refuse_names_of_plan,
    refuse_special_files,
)
from dpvision.verify.unpack import unpack

OTHER_FORMAT = (
    "{} was written by another version of this pipeline (format {}, here {}): nothing in it was verified. {} verifies it"
)


@dataclass
class Place:
    """A place to verify. Paths in findings are relative to `root`; the plan's results are in `results`, inside it."""

    root: Path
    results: Path
    plan: Plan
    about: dict[str, Any] | None = None
    """Content of archive.json; None for a folder of results."""
    damaged: list[Finding] = field(default_factory=list)
    """Parts of the archive that could not be unpacked."""
    left_out: set[str] = field(default_factory=set)
    """Files that an archive lacks on purpose: of covered searches and of runs with secret noise."""
    unmade: list[str] = field(default_factory=list)
    """Artifacts that a folder of results has a plan of and no file."""
    unmade_records: int = 0
    """Number of the records that these would show and that are not there."""

    @property
    def archive(self) -> bool:
        return self.about is not None

    @property
    def weights(self) -> bool:
        """Tell whether the weights are there: a folder of small files (`python -m dpvision keep`) has none."""
        return self.archive or any(self.results.glob("runs/*/weights.safetensors"))

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def called(self, folder: str) -> str:
        """Return how a folder is called in messages, also one that lies outside."""
        return self.name(Path(folder)) if Path(folder).is_relative_to(self.root) else folder


@contextmanager
def opened(path: Path) -> Iterator[Place]:
    """Yield the place; a packed archive is unpacked as long as it is open."""
    if path.is_dir():
        yield _folder(path)
    elif not path.exists():
        raise UserError(f"{path} is not there: name an archive (.zip), its folder, or a folder of results (results/demo)")
    else:
        with TemporaryDirectory(prefix="dpvision-verify-") as folder:
            damages = [
                Finding(name, "the archive is damaged there", "what was packed", error)
                for name, error in unpack(path, Path(folder))
            ]
            try:
                place = _folder(Path(folder))
            except UserError as error:
                reasons = "; ".join(map(str, damages)) or str(error).replace(folder, str(path))
                raise UserError(f"{path} cannot be verified: {reasons}") from None
            place.damaged = damages
            yield place


def _folder(folder: Path) -> Place:
    if (folder / "plan.json").exists() or (folder / "archive.json").exists():
        read = _of_archive
    elif (folder / "plan").is_dir():
        read = _of_results
    else:
        raise UserError(
            f"{folder} is neither an archive's folder (it would have archive.json and plan.json) nor one of results (plan/). "
            "Name an archive, its folder, or results/SCALE"
        )
    refuse_special_files(folder)
    try:
        return read(folder)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{folder}: its plan is not what the pipeline writes ({type(error).__name__}: {error})") from error


def _of_archive(folder: Path) -> Place:
    for name in ("archive.json", "plan.json"):
        if not (folder / name).exists():
            raise UserError(
                f"{folder / name} is not there, and without it nothing else can be verified: the archive is not whole"
            )
    said, about = read_json(folder / "plan.json"), read_json(folder / "archive.json")
    if about.get("format", 1) != FORMAT:
        own = "The source that it carries (make setup in source/)"
        raise UserError(OTHER_FORMAT.format(folder, about.get("format", 1), FORMAT, own))
    refuse_names_of_plan(said)
    work = {(stage, name): spec for stage, specs in said["work"].items() for name, spec in specs.items()}
    results = folder / said["results"]
    whole = {key: said[key] for key in ("papers", "artifacts", "labels", "sources")}
    plan = ForeignPlan(said["scale"], str(results), said["title"], shared=str(folder / "results/data"), work=work, **whole)
    left_out = {file for file in all_withheld_files(plan) if not Path(file).exists()}
    return Place(folder, results, plan, about, left_out=left_out)


def _of_results(folder: Path) -> Place:
    """Return a folder of results as a place.

    Its plan is what the artifacts there show, of claims what there is. An artifact with no file at all was never made: of
    its records, those that are there are looked at. Studies' specs are not to be had, labels where
    `python -m dpvision keep` put them.
    """
    artifacts = {file.stem: read_json(file) for file in sorted((folder / "plan").glob("*.json"))}
    for name, spec in artifacts.items():
        if format_of := _older(spec):
            remedy = "`python -m dpvision keep` or `snakemake all` writes it anew, and then this command"
            raise UserError(OTHER_FORMAT.format(folder / "plan" / f"{name}.json", format_of, FORMAT, remedy))
        refuse_name(name, f"{folder / 'plan'}")
        refuse_names_of_artifact(spec, f"plan/{name}.json")
    scale = next((spec["scale"] for spec in artifacts.values()), "paper")
    labels = read_json(folder / LABELS) if (folder / LABELS).exists() else {}
    shared = (folder if scale == "paper" else folder.parent) / "data"
    plan = ForeignPlan(scale, str(folder), shared=str(shared), artifacts=artifacts, labels=labels)
    unmade = [name for name in artifacts if not any(Path(file).exists() for file in plan.targets(name))]
    waiting = [
        key
        for name in artifacts
        for key in plan.work_of(name)
        # a claim may be not run, and what was never made needs no records
        if not ("claims" in artifacts[name] or name in unmade) or _has_record(plan, key)
    ]
    waiting += [("audit", file.parent.name) for file in sorted((folder / "audits").glob("*/audit.json"))]
    for key in waiting:  # and what they rest on, which comes behind them
        if key not in plan.work:
            plan.work[key] = _planned(folder, key)
            waiting += plan.needs(key) if plan.work[key] else []
    wanted = {key for name in unmade for key in plan.work_of(name) if not STAGES[key[0]].shared}
    records = len(wanted - plan.work.keys())
    for name in unmade:
        del plan.artifacts[name]
    return Place(folder, folder, plan, unmade=unmade, unmade_records=records)


def _has_record(plan: Plan, key: Key) -> bool:
    """Tell whether the record of a piece of work is whole, apart from weights, which not every folder keeps."""
    small_files = [file for file in plan.record(key) if not file.endswith(".safetensors")]
    return all(Path(file).exists() for file in small_files)


def _older(artifact: specs.Spec) -> int | None:
    """Return the format of an artifact's spec that was written before this one's; nothing else says it."""
    if any("work" not in cell for cell in artifact.get("cells", [{}])):
        return 1
    return 2 if isinstance(artifact.get("columns"), str) else None


def _planned(folder: Path, key: Key) -> specs.Spec:
    """Return a training's spec by its record; of an analysis, whose spec is not kept, return what its name says.

    Otherwise return nothing: the check that reads the record finds that it is missing.
    """
    stage, name = key
    if STAGES[stage].analysis:
        return {"kind": stage, "run": name.rsplit("-", 1)[0]}
    file = folder / "runs" / name / "spec.json"
    return specs.as_planned(read_json(file)) if stage == "train" and file.exists() else {}
