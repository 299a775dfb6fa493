"""One of the tables."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision.files import write_json
    from dpvision.reporting.tables import write_table

    write_table(snakemake.params.spec, snakemake.params.labels, dict(snakemake.input.items()), Path(snakemake.output.csv))
    write_json(snakemake.output.plan, snakemake.params.spec, sort_keys=False)
