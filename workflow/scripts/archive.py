"""The archive of a scale."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision import plan
    from dpvision.archive.pack import write_archive

    write_archive(plan.load(snakemake.params.spec["config"]), Path(snakemake.output.archive), Path.cwd())
