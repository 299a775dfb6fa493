"""The page of all evidence and the forms, made again of kept results."""

import functools
from pathlib import Path

from dpvision import __main__ as command_line
from dpvision import plan
from dpvision.evidence.write import write_evidence

KEPT = plan.ROOT / "docs/results"


@functools.cache
def planned(scale: str) -> plan.Plan:
    return command_line._load_whole(scale)


def written(kept: Path, name: str = "README.md") -> str:
    """Write all forms and return the text of one."""
    write_evidence(kept, planned)
    return (kept / name).read_text(encoding="utf-8")
