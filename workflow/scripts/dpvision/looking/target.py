"""What is said of a target that was asked for, and when Snakemake asks what it is made of."""

import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from dpvision.plan import ROOT
from dpvision.plan.plan import Plan


def everything(plan: Plan, target: str) -> list[str]:
    """Return the files of a target, and say on stderr if what is left of it would take years.

    Snakemake asks once, before it starts anything; its jobs ask for files and never for targets.
    """
    from dpvision.looking.overview import warning  # here, since no job needs it

    files = plan.everything(target)
    for line in warning(plan, plan.chosen(target), Path.cwd()):
        print(f"{target}: {line}", file=sys.stderr)
    return files


def hints(plan: Plan, words: Iterable[str], rules: list[str]) -> list[str]:
    """Return what may be meant by words of a command that look like targets and are none, a line each.

    Snakemake reads the words after this file: it refuses a wrong one itself, and knows no names near it.
    """
    from dpvision.plan.reading import nearest

    names = [*plan.papers, *plan.artifacts, *plan.wanting]
    files = [file for name in plan.artifacts for file in plan.targets(name)]
    found = []
    for word in words:
        path, name = PurePosixPath(word), word.partition(".")[0]
        if path.parts[:1] == ("results",) and (scale := _scale_of(path)) not in (None, plan.scale):
            found.append(f"{word} is of the scale {scale}, this command of {plan.scale}; add: --config scale={scale}")
        elif (
            path.parent.name in ("tables", "figures") and word not in files and path.name.partition(".")[0] not in plan.wanting
        ):
            found.append(f"nothing makes {word}.{nearest(word, files)}")
        elif word in plan.left_out:
            found.append(f"{word} is left out at the scale {plan.scale}")
        elif word not in plan.papers and word.isidentifier() and (ROOT / "config/papers" / word).is_dir():
            found.append(f"{word} is a paper that this command does not build; add: --config {_command_for(word)}")
        elif name in names and name != word and "/" not in word:
            found.append(f"{word} is no target; ask for {name}, or for one of: {', '.join(plan.targets(name))}")
        elif word.isidentifier() and word not in [*names, *rules] and (near := nearest(word, names, 0.8)):
            found.append(f'there is no target "{word}".{near}')
    return found


def _command_for(paper: str) -> str:
    """Return the settings with which a paper is built: its only scale, if it has one alone, or its name."""
    scales = [file.stem for file in (ROOT / "config/scales").glob("*.yaml") if file.stem != "paper"]
    there = [scale for scale in scales if (ROOT / "config/papers" / paper / f"{scale}.yaml").exists()]
    return f"scale={there[0]} 'papers=[\"{paper}\"]'" if len(there) == 1 else f"'papers=[\"{paper}\"]'"


def _scale_of(path: PurePosixPath) -> str | None:
    """Return the scale of a file below results/; none of what all scales share."""
    below = path.parts[1] if len(path.parts) > 1 else ""
    if (ROOT / "config/scales" / f"{below}.yaml").exists():
        return below
    return None if below == "data" else "paper"
