"""The page of claims."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision.reporting.claims import write_claims

    inputs = {name: files for name, files in snakemake.input.items() if name != "plan"}
    table, figure = Path(snakemake.output.csv), Path(snakemake.output.figure)
    write_claims(snakemake.params.spec, snakemake.params.labels, inputs, table, figure)
