"""What is to be verified: an archive, packed or not, or a folder of results; and what in it belongs together."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpvision.errors import UserError
from dpvision.files import read_json
from dpvision.plan import specs
from dpvision.plan.build import CLAIMS, LABELS, Plan
from dpvision.plan.config import Stages
from dpvision.verify.finding import Finding

KINDS = ("papers", "artifacts", "labels", "sources", "runs", "studies", "hessians", "activations", "data")


@dataclass
class Place:
    """Paths in findings are relative to `root`. The plan's results are `results`, which is somewhere in it."""

    root: Path
    results: Path
    plan: Plan
    prepared: Path
    """The folder of the data sets' descriptions."""
    about: dict[str, Any] | None = None
    """archive.json, of an archive."""
    damaged: list[Finding] = field(default_factory=list)
    """What could not be unpacked."""

    @property
    def archive(self) -> bool:
        return self.about is not None

    @property
    def weights(self) -> bool:
        """Not in a folder of what is small (`python -m dpvision keep`)."""
        return self.archive or any(self.results.glob("runs/*/weights.safetensors"))

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


@contextmanager
def opened(path: Path) -> Iterator[Place]:
    """A packed archive is unpacked for as long as it is open."""
    if path.is_dir():
        yield _folder(path)
    elif not path.exists():
        raise UserError(f"{path} is not there: name an archive (.zip), its folder, or a folder of results (results/demo)")
    else:
        with TemporaryDirectory(prefix="dpvision-verify-") as folder:
            damaged = list(_unpack(path, Path(folder)))
            try:
                place = _folder(Path(folder))
            except UserError as error:
                reasons = "; ".join(map(str, damaged)) or str(error).replace(folder, str(path))
                raise UserError(f"{path} cannot be verified: {reasons}") from None
            place.damaged = damaged
            yield place


def _unpack(path: Path, folder: Path) -> Iterator[Finding]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise UserError(f"{path} is not an archive that can be opened: {error}") from None
    with archive:
        for info in archive.infolist():
            try:
                archive.extract(info, folder)
            except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
                yield Finding(info.filename, "the archive is damaged there", "what was packed", error)


def _folder(folder: Path) -> Place:
    if (folder / "plan.json").exists() or (folder / "archive.json").exists():
        return _of_archive(folder)
    if (folder / "plan").is_dir() and (folder / "runs").is_dir():
        return _of_results(folder)
    raise UserError(
        f"{folder} is neither an archive's folder (it would have archive.json and plan.json) nor one of results (plan/ and "
        "runs/). Name an archive, its folder, or results/SCALE"
    )


def _of_archive(folder: Path) -> Place:
    for name in ("archive.json", "plan.json"):
        if not (folder / name).exists():
            raise UserError(
                f"{folder / name} is not there, and without it nothing else can be verified: the archive is not whole"
            )
    said, about = read_json(folder / "plan.json"), read_json(folder / "archive.json")
    results = folder / said["results"]
    plan = Plan(said["scale"], str(results), said["title"], Stages(), 1, {}, **{kind: said[kind] for kind in KINDS})
    return Place(folder, results, plan, folder / "results/data", about)


def _of_results(folder: Path) -> Place:
    """What is asked for is what the artifacts there show, of claims what there is; studies' specs are not to be had, labels
    where `python -m dpvision keep` put them."""
    artifacts = {file.stem: read_json(file) for file in sorted((folder / "plan").glob("*.json"))}
    scale = next((spec["scale"] for spec in artifacts.values()), "paper")
    labels = read_json(folder / LABELS) if (folder / LABELS).exists() else {}
    plan = Plan(scale, str(folder), "", Stages(), 1, {}, artifacts=artifacts, labels=labels)
    shown = [name for name, spec in artifacts.items() if spec["kind"] != CLAIMS]
    plan.runs = {run: _planned(folder, run) for artifact in shown for run in plan.runs_of(artifact)}
    return Place(folder, folder, plan, (folder if scale == "paper" else folder.parent) / "data")


def _planned(folder: Path, run: str) -> specs.Spec:
    """By its record; where there is none, of nothing: that it is missing is found by whoever looks at the run."""
    file = folder / "runs" / run / "spec.json"
    return specs.as_planned(read_json(file)) if file.exists() else {"model": {}, "recipe": {}}
