"""Turn a data set's files into arrays."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision.data.prepare import prepare

    prepare(snakemake.params.spec, Path(snakemake.input.files).parent, Path(snakemake.output.dataset).parent, snakemake.threads)
