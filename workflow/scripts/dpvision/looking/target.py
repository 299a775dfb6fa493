"""What is said of a target when Snakemake asks what it is made of."""

import sys
from pathlib import Path

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
