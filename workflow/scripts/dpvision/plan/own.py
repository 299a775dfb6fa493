"""Papers of the user's own: folders in own/, which git ignores and `python -m dpvision try` writes.

They have a scale of their own, so no paper that is shipped shares results, `all` or an archive with them. A command that names
one of them is of that scale.
"""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from dpvision.config.base import Name
from dpvision.errors import UserError
from dpvision.plan.reading import Document, Documents, complaint, read_yaml, refuse, validated

FOLDER = "own"
SCALE = "own"
FILES = ("datasets.yaml", "features.yaml", "folders.yaml", "paper.yaml")
"""Files of a paper's folder: what each data set and its features are, where their pictures lie, and the paper."""


def own_papers(root: Path) -> list[str]:
    """Return the names of the user's own papers, sorted."""
    folder = root / FOLDER
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def own_papers_in(words: Iterable[str], root: Path) -> list[str]:
    """Return the own papers that the words of a command name: by their names, or by an artifact's name or file."""
    asked = {_target(word) for word in words}
    return [name for name in own_papers(root) if asked & {name, *artifact_names(name, root)}]


def settings_for(papers: Iterable[str]) -> dict[str, Any]:
    """Return the settings of a command that names own papers; none if it names none."""
    names = list(papers)
    return {"scale": SCALE, "papers": names} if names else {}


def artifact_names(paper: str, root: Path) -> list[str]:
    """Return the names of an own paper's artifacts; none if its file cannot be read."""
    try:
        content = read_yaml(root, f"{FOLDER}/{paper}/paper.yaml").content
    except UserError:
        return []
    artifacts = content.get("artifacts") if isinstance(content, dict) else None
    return list(artifacts) if isinstance(artifacts, dict) else []


def asked_for(papers: list[str], scale: str, root: Path) -> list[str]:
    """Return the own papers among those that settings name; at their own scale all there are, if the settings name none.

    Raises:
        UserError: One of them lacks a file, or has the name of a paper in config/papers; or there is none at its scale.
    """
    existing = own_papers(root)
    asked = [name for name in papers if name in existing]
    if scale == SCALE and not asked:
        asked = existing
        if not existing:
            raise UserError(
                f"there is no paper in {FOLDER}/: python -m dpvision try PICTURES writes one for a folder of pictures"
            )
    refuse(line for name in asked for line in _faults(name, root))
    return asked


def documents(file: str, papers: list[str], root: Path) -> Documents:
    """Return the entries of data sets or features: those in config/, and those of own papers, which have other names."""
    read = [read_yaml(root, f"config/{file}.yaml")]
    for paper in papers:
        document = read_yaml(root, f"{FOLDER}/{paper}/{file}.yaml")
        refuse(_names_taken(document, read))
        read.append(document)
    return read


def picture_folders(papers: list[str], root: Path) -> dict[str, str]:
    """Return where the pictures of own papers lie, by data set."""
    read = [read_yaml(root, f"{FOLDER}/{paper}/folders.yaml") for paper in papers]
    folders: dict[str, str] = validated(dict[Name, str], read) if read else {}
    return folders


def _faults(paper: str, root: Path) -> list[str]:
    """Return a line for each file that an own paper lacks, and for a name that a shipped paper has too."""
    again, remove = f"python -m dpvision try PICTURES --name {paper}", f"python -m dpvision try --remove {paper}"
    lines = [
        f"{FOLDER}/{paper}/{file}: this file is missing. Write all of them again: {again}; or delete what is left: {remove}"
        for file in FILES
        if not (root / FOLDER / paper / file).is_file()
    ]
    if (root / "config/papers" / paper).exists():
        lines.append(f"{FOLDER}/{paper}: config/papers has a paper of this name. Rename the folder {FOLDER}/{paper}")
    return lines


def _names_taken(document: Document, others: Documents) -> list[str]:
    """Return a line for each entry of a document that another one has, too."""
    names = document.content if isinstance(document.content, dict) else {}
    return [
        complaint([document], (name,), f"{other.file} has an entry of this name. Rename yours")
        for other in others
        for name in names
        if name in other.content
    ]


def _target(word: str) -> str:
    """Return the name of an artifact for a file in the results of own papers, and any other word as it is."""
    path = PurePosixPath(word)
    return path.name.partition(".")[0] if path.parts[:2] == ("results", SCALE) else word
