"""All forms of the evidence, written beside the kept results."""

from collections.abc import Callable
from pathlib import Path

from dpvision.evidence.appendix import appendix
from dpvision.evidence.checklist import checklist
from dpvision.evidence.kept import kept_in
from dpvision.evidence.leaderboard import leaderboard
from dpvision.evidence.page import page
from dpvision.files import write_text
from dpvision.plan import Plan


def write_evidence(folder: Path, plan_of: Callable[[str], Plan]) -> list[Path]:
    """Write the page and the forms, and return their files; `plan_of` a scale says what is planned."""
    kept = kept_in(folder, plan_of)
    papers = plan_of("paper")
    texts = {
        "README.md": page(papers, kept),
        "leaderboard.yaml": leaderboard(kept),
        "ARTIFACT-APPENDIX.md": appendix(papers, kept),
        "CHECKLIST.md": checklist(kept),
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]
