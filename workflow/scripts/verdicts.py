"""The page of claims."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision.files import write_json
    from dpvision.reporting.claims import write_claims

    table, figure = Path(snakemake.output.csv), Path(snakemake.output.figure)
    write_claims(snakemake.params.spec, snakemake.params.labels, dict(snakemake.input.items()), table, figure)
    write_json(snakemake.output.plan, snakemake.params.spec, sort_keys=False)
