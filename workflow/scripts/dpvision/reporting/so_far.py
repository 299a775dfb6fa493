"""Pages of claims from the records that there are, without running anything: what `python -m dpvision claims` does."""

import os
from pathlib import Path

from dpvision.plan import Plan
from dpvision.reporting.claims import Judged, tally, write_claims


def write_so_far(plan: Plan, name: str, root: Path) -> list[Judged]:
    """Write a page of claims from the records that there are now. While some are missing it is dated before any record, so
    that Snakemake takes it for old, whenever those were made."""
    inputs = plan.inputs_of(name)
    there = {what: [str(root / file) for file in files if (root / file).exists()] for what, files in inputs.items()}
    table, _, *_, figure = (root / file for file in plan.targets(name))
    claims = write_claims(plan.artifacts[name], plan.labels[name], there, table, figure)
    if sum(map(len, there.values())) < sum(map(len, inputs.values())):
        for file in plan.targets(name):
            os.utime(root / file, (1, 1))  # Snakemake takes 0 for no date
    return claims


def listing(claims: list[Judged]) -> list[str]:
    """List the verdicts for a terminal, one claim a line."""
    width = max(len(claim.claim["name"]) for claim in claims)
    lines = [
        f"{claim.verdict:12}  {claim.claim['name']:{width}}  {tally([o.verdict for o in claim.outcomes])}" for claim in claims
    ]
    return [*lines, "", tally([claim.verdict for claim in claims])]
