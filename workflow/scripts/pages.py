"""The pages of the report."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision import plan
    from dpvision.reporting.pages import write_pages

    write_pages(plan.load(snakemake.params.spec["config"]), Path.cwd(), Path(snakemake.output.overview).parent)
