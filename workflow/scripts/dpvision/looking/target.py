"""What is said of a target that was asked for, and when Snakemake asks what it is made of."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from dpvision.errors import UserError
from dpvision.plan.own import FOLDER, SCALE, own_papers_in
from dpvision.plan.plan import Plan
from dpvision.plan.reading import nearest, read_yaml


def everything(plan: Plan, target: str) -> list[str]:
    """Return the files of a target, and say on stderr if what is left of it would take years.

    Snakemake asks once, before it starts anything; its jobs ask for files and never for targets.
    """
    from dpvision.looking.overview import warning  # here, since no job needs it

    files = plan.everything(target)
    for line in warning(plan, plan.chosen(target), Path.cwd()):
        print(f"{target}: {line}", file=sys.stderr)
    return files


def artifacts_of(plan: Plan, targets: Sequence[str], root: Path) -> list[str]:
    """Return the artifacts of targets: of all, of papers, of files, or themselves."""
    names = []
    for target in targets:
        if "/" in target:  # a file
            target = Path(target).name.partition(".")[0]
        if target in EVERYTHING:
            names += list(plan.artifacts)
        elif target in plan.papers:
            names += plan.papers[target]
        elif target in plan.artifacts or target in plan.wanting:
            names += plan.chosen(target)
        else:
            known = [*EVERYTHING, *_names(plan)]
            unknown = f'there is no target "{target}".{nearest(target, known)} List them with: python -m dpvision plan'
            raise UserError(why_not_planned(plan, target, root) or unknown)
    return list(dict.fromkeys(names))


EVERYTHING = ("all", "report", "archive", "verify")
"""Targets that are about all artifacts."""


def _names(plan: Plan) -> list[str]:
    return [*plan.papers, *plan.artifacts, *plan.wanting]


def hints(plan: Plan, words: Iterable[str], rules: list[str], root: Path) -> list[str]:
    """Return what may be meant by words of a command that look like targets and are none, a line for each.

    Args:
        plan: The plan of the command.
        words: Its words: targets, options and their values.
        rules: The rules of the workflow, which are targets too.
        root: The project's folder.
    """
    files = [file for name in plan.artifacts for file in plan.targets(name)]
    known = {*_names(plan), *rules, *files}
    lines = [_hint(plan, word, files, root) for word in words if word not in known]
    return [line for line in lines if line]


def _hint(plan: Plan, word: str, files: list[str], root: Path) -> str:
    """Return what may be meant by a word that is no target; nothing if it does not look like one."""
    path, name = PurePosixPath(word), word.partition(".")[0]
    if path.parts[:1] == ("results",) and (scale := _scale_of(path, root)) not in (None, plan.scale):
        return f"{word} is of the scale {scale}, this command of {plan.scale}; add: --config scale={scale}"
    if path.parent.name in ("tables", "figures"):
        artifact = path.name.partition(".")[0]
        return "" if artifact in plan.wanting else _why_no_file(plan, word, artifact, files, root)
    if name in _names(plan) and "/" not in word:
        return f"{word} is no target; ask for {name}, or for one of: {', '.join(plan.targets(name))}"
    if not word.isidentifier():
        return ""
    if reason := why_not_planned(plan, word, root):
        return reason
    near = nearest(word, _names(plan), 0.8)
    return f'there is no target "{word}".{near}' if near else ""


def _why_no_file(plan: Plan, file: str, artifact: str, files: list[str], root: Path) -> str:
    reason = why_not_planned(plan, artifact, root)
    return f"nothing makes {file}: {reason}" if reason else f"nothing makes {file}.{nearest(file, files)}"


def why_not_planned(plan: Plan, name: str, root: Path) -> str:
    """Return why a paper or an artifact that has files is not in the plan; nothing if there is no such name."""
    if name not in plan.papers and own_papers_in([name], root):
        return f"{name} is of {FOLDER}/, whose papers have the scale {SCALE} alone: leave out the scale {plan.scale}"
    place = None if name in _names(plan) else _place_of(name, root)
    if place is None:
        return ""
    papers = root / "config/papers"
    paper = place.relative_to(papers).parts[0]
    what = name if name == paper else f"{name}, of the paper {paper},"
    scale_file = place / f"{plan.scale}.yaml"
    if paper not in plan.papers and paper not in plan.left_out:
        return (
            f"{what} is not planned: {paper} is not in `papers` of config/config.yaml. Add it there, or to a command of "
            f"snakemake: --config {_command_for(paper, root)}"
        )
    left_out = f"{what} is left out at the scale {plan.scale}"
    if not scale_file.exists():
        return f"{left_out}: there is no {scale_file.relative_to(root)} (an empty one, `{{}}`, will do)."
    if plan.selection:
        return f"{left_out}: the key `selection` of its paper does not name it. Leave out: artifacts=selection"
    return f"{left_out}: {scale_file.relative_to(root)} does without it."


def _place_of(name: str, root: Path) -> Path | None:
    """Return the folder of a paper, or of the part of one that has an artifact of this name."""
    papers = root / "config/papers"
    if (papers / name / "paper.yaml").exists():
        return papers / name
    for file in sorted(papers.rglob("paper.yaml")):
        if f"{name}:" not in file.read_text(encoding="utf-8"):  # to read YAML takes long
            continue
        content = read_yaml(root, file.relative_to(root).as_posix()).content
        if isinstance(content, dict) and name in (content.get("artifacts") or {}):
            return file.parent
    return None


def _command_for(paper: str, root: Path) -> str:
    """Return the settings with which a paper is built: its only scale, if it has one alone, or its name."""
    names = [file.stem for file in (root / "config/scales").glob("*.yaml") if file.stem != "paper"]
    scales = [name for name in names if (root / "config/papers" / paper / f"{name}.yaml").exists()]
    return f"scale={scales[0]} 'papers=[\"{paper}\"]'" if len(scales) == 1 else f"'papers=[\"{paper}\"]'"


def _scale_of(path: PurePosixPath, root: Path) -> str | None:
    """Return the scale of a file below results/; None for what all scales share."""
    below = path.parts[1] if len(path.parts) > 1 else ""
    if (root / "config/scales" / f"{below}.yaml").exists():
        return below
    return None if below == "data" else "paper"
