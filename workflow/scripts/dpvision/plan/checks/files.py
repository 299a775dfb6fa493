"""Check the settings, and which files there are, by their names and those they give."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dpvision.config.scales import Scale
from dpvision.config.settings import Config
from dpvision.plan.reading import Document, Documents, complaint, nearest, unknown
from dpvision.plan.resources import OTHERS
from dpvision.plan.stages import STAGES

# the sections of a paper whose keys are names
NAMED = {"models": "model", "recipes": "recipe", "searches": "search", "attacks": "attack"}
NAMED |= {"cells": "group of cells", "artifacts": "artifact"}

# what results/ holds besides the folders of scales
FOLDERS = ["benchmarks", "checkpoints", "data", "figures", "logs", "plan", "tables", *(s.folder for s in STAGES.values())]


def of_settings(
    settings: Config, scales: list[str], papers: list[str], rules: tuple[str, ...], documents: Documents
) -> Iterator[str]:
    if settings.scale not in scales:
        yield unknown(documents, ("scale",), "scale", settings.scale, scales, settings.scale)
    elif settings.scale in FOLDERS:
        yield complaint(
            documents, ("scale",), "this is the name of a folder of results; rename the scale's file", settings.scale
        )
    for i, name in enumerate(settings.papers):
        if name not in papers:
            yield unknown(documents, ("papers", i), "paper", name, papers, name)
        elif name in rules:
            yield complaint(documents, ("papers", i), "this is the name of a rule of the workflow; rename the folder", name)


def of_files(root: Path, papers: list[str], scales: list[str]) -> Iterator[str]:
    """Yield a line for a file in a paper's folder that nothing reads: a scale's name mistyped, most likely."""
    known = ["paper", "published", "claims", *(scale for scale in scales if scale != "paper")]
    for file in (file for name in papers for file in sorted((root / "config/papers" / name).rglob("*.yaml"))):
        if file.stem not in known:
            near = nearest(file.stem, known)
            yield f"{file.relative_to(root)}: there is no scale of this name.{near} Allowed: {', '.join(known)}"


def of_scale(scale: Scale, papers: list[str], documents: Documents) -> Iterator[str]:
    for i, name in enumerate(scale.papers or []):
        if name not in papers:
            yield unknown(documents, ("papers", i), "paper", name, papers, name)
    jobs = [*OTHERS, *(name for name, stage in STAGES.items() if stage.cost)]
    for name in scale.resources:
        if name not in jobs:
            yield unknown(documents, ("resources", name), "kind of job", name, jobs)


def of_overlays(documents: Documents, overlays: Sequence[Document]) -> Iterator[str]:
    """Yield a line for each name that a scale has and its paper has not."""
    yield from (line for line, _ in _strange(documents, overlays))


def of_left_out(documents: Documents, overlays: Sequence[Document]) -> Iterator[str]:
    """Yield a line for each name that a scale leaves out, by null, and its paper has not."""
    yield from (line for line, value in _strange(documents, overlays) if value is None)


def _strange(documents: Documents, overlays: Sequence[Document]) -> Iterator[tuple[str, Any]]:
    """Yield a line for each name that a scale has and its paper has not, with what the scale says of it."""
    for section, what in NAMED.items():
        known = [name for document in documents for name in _names(document, section)]
        for overlay in overlays:
            for name in (name for name in _names(overlay, section) if name not in known):
                yield unknown([overlay], (section, name), what, name, known), overlay.content[section][name]


def of_parts(documents: Documents) -> Iterator[str]:
    """Yield a line for each name that two files of a paper give, and each key that those after the first cannot have."""
    for document in documents[1:]:
        for key in document.content if isinstance(document.content, dict) else []:
            if key not in NAMED:
                yield unknown([document], (key,), "key", key, list(NAMED), among=" in a part of a paper")
    for section in NAMED:
        below = [document._replace(part=(section,)) for document in documents]
        yield from _given_twice(below, [_names(document, section) for document in documents])


def of_claims(documents: Documents) -> Iterator[str]:
    """Yield a line for each claim whose name two files of a paper give."""
    yield from _given_twice(documents, [list(d.content) if isinstance(d.content, dict) else [] for d in documents])


def _given_twice(documents: Documents, names: list[list[str]]) -> Iterator[str]:
    first: dict[str, str] = {}
    for document, here in zip(documents, names, strict=True):
        for name in here:
            if first.setdefault(name, document.file) != document.file:
                yield complaint([document], (name,), f"{first[name]} has this name already; rename one of them")


def _names(document: Document, section: str) -> list[str]:
    here = document.content.get(section) if isinstance(document.content, dict) else None
    return [name for name in here if isinstance(name, str)] if isinstance(here, dict) else []
