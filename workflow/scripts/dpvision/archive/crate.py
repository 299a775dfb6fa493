"""The archive as a Workflow Run RO-Crate: which file is what, and what made it. Its ids and dates come from the results."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rocrate.model.computationalworkflow import ComputationalWorkflow
from rocrate.model.contextentity import ContextEntity
from rocrate.model.data_entity import DataEntity
from rocrate.rocrate import ROCrate

from dpvision.archive.contents import MANIFEST, Contents, sha256
from dpvision.files import read_json
from dpvision.plan import Plan
from dpvision.plan.stages import STAGES, Key

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
TYPES = {"csv": "text/csv", "json": "application/json", "md": "text/markdown", "tex": "application/x-tex"}
TYPES |= {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}


def metadata(plan: Plan, root: Path, contents: Contents, about: dict[str, Any]) -> bytes:
    """Return the content of ro-crate-metadata.json."""
    crate = ROCrate(version="1.1")
    crate.name = f"{about['name']} {about['version']}, scale {plan.scale}"
    crate.description = description(plan, about)
    crate.datePublished = about["date"]
    crate.license = "see source/LICENSE" if "source/LICENSE" in contents else "none was chosen"
    crate.root_dataset["conformsTo"] = [
        crate.add(ContextEntity(crate, iri, {"@type": "CreativeWork", "name": name})) for iri, name in PROFILES.items()
    ]
    crate.metadata["conformsTo"] = [{"@id": crate.metadata.profile}, {"@id": list(PROFILES)[-1]}]
    workflow = _workflow(crate, about)
    data = [_data_set(crate, plan, key, root) for key in plan.kept() if key[0] == "data"]
    data += [_weights(crate, plan, key, root) for key in plan.kept() if key[0] == "weights"]
    shown = [_file(crate, contents, file, plan.labels) for file in plan.targets("all") if file in contents]
    for folder, text in _folders(plan).items():
        if any(file.startswith(folder) for file in contents):
            crate.add(DataEntity(crate, folder, {"@type": "Dataset", "name": text}))
    for file, text in {
        "README.md": "What this is, how to verify it, and how to make it again",
        "archive.json": "Name, version, commit, and what in the source is not as committed",
        "config.json": "The configuration: scale and papers; the rest is source/config",
        "plan.json": "Every spec, by name",
        MANIFEST: "The SHA-256 of every other file",
        "source/envs/requirements.lock": "The lock: every package, with hashes",
        "source/CITATION.cff": "How to cite",
        "source/LICENSE": "Licence of the source",
    }.items():
        if file in contents or file == MANIFEST:
            crate.add(DataEntity(crate, file, {"@type": "File", "name": text}))
    started, ended = _period(contents)
    run = {"@type": "CreateAction", "name": f"snakemake all, scale {plan.scale}", "startTime": started, "endTime": ended}
    action = crate.add(ContextEntity(crate, "#run", run))
    action["instrument"], action["object"], action["result"] = workflow, data, shown
    crate.root_dataset["mentions"] = [action]
    return (json.dumps(crate.metadata.generate(), sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()


def description(plan: Plan, about: dict[str, Any]) -> str:
    changed = about["changed"]
    dirty = f" THE SOURCE IS NOT AS COMMITTED: {', '.join(changed)}." if changed else ""
    return f"Results at the scale {plan.scale} ({plan.title}), made by the source at commit {about['commit']}.{dirty}"


def _workflow(crate: ROCrate, about: dict[str, Any]) -> Any:
    properties = {
        "name": about["name"],
        "version": about["version"],
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
    }
    workflow = ComputationalWorkflow(crate, dest_path="source/Snakefile", properties=properties)
    crate.mainEntity = crate.add(workflow)
    language = {"@type": "ComputerLanguage", "name": "Snakemake"}
    workflow["programmingLanguage"] = crate.add(ContextEntity(crate, "#snakemake", language))
    return workflow


def _data_set(crate: ROCrate, plan: Plan, key: Key, root: Path) -> Any:
    """Add what is said about a data set, in place of itself."""
    prepared = read_json(root / plan.product(key))
    wanted = [source.get("url") or source["package"] for source in plan.sources[prepared["name"]]["sources"]]
    properties = {
        "@type": "Dataset",
        "name": prepared["title"],
        "license": prepared["licence"],
        "identifier": prepared["sha256"]["train_images.npy"],
        "description": "Not in here. To be had from: "
        + ("; ".join(wanted) or "a folder of yours")
        + ". Its digests: dataset.json",
    }
    return crate.add(DataEntity(crate, f"{plan.folder(key)}/", properties))


def _weights(crate: ROCrate, plan: Plan, key: Key, root: Path) -> Any:
    """Add what is said about a file of weights, in place of itself."""
    said = read_json(root / plan.product(key))
    properties = {
        "@type": "Dataset",
        "name": said["title"],
        "license": said["licence"],
        "identifier": said["sha256"],
        "description": f"Not in here. It was had from: {said['source']}. Its digests: weights.json",
    }
    return crate.add(DataEntity(crate, f"{plan.folder(key)}/", properties))


def _file(crate: ROCrate, contents: Contents, file: str, labels: dict[str, dict[str, str]]) -> Any:
    path, kind = Path(file), Path(file).suffix[1:]
    title = labels.get(path.stem, {}).get("title", path.stem)
    properties = {"@type": "File", "name": f"{title} ({kind})", "sha256": sha256(contents[file])}
    return crate.add(DataEntity(crate, file, properties | ({"encodingFormat": TYPES[kind]} if kind in TYPES else {})))


def _folders(plan: Plan) -> dict[str, str]:
    return {
        "source/": "The source, as it was when the archive was made",
        **{f"{plan.results}/{s.folder}/": f"A folder each: {s.words[1]}" for s in STAGES.values() if not s.shared},
        f"{plan.results}/plan/": "What each table and figure shows",
        f"{plan.results}/logs/": "A log and a benchmark of every job, without names of users, machines and folders",
    }


def _period(contents: Contents) -> tuple[str, str]:
    """Return the first job's start and the last one's end, by the records."""
    made = [read_json(file) for name, file in contents.items() if name.endswith("provenance.json") and isinstance(file, Path)]
    spans = [(datetime.fromisoformat(one["started"]), timedelta(seconds=round(one["seconds"]))) for one in made]
    return min(start for start, _ in spans).isoformat(), max(start + took for start, took in spans).isoformat()
