"""The figures of the engine's audit."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision.reporting.audits import write_figures

    write_figures(Path(snakemake.input[0]).parent, Path(snakemake.output[0]).parent)
