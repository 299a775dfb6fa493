"""An analysis of a run's weights."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs
from dpvision.training import cards

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]), cards.taken(snakemake.resources.get("gpu", 0)):
    from dpvision.analyses.run import analyse
    from dpvision.training.machine import settle

    settle(snakemake.threads)
    analyse(
        snakemake.params.job,
        snakemake.params.spec,
        Path(snakemake.input.weights).parent,
        Path(snakemake.params.data),
        Path(snakemake.output[0]).parent,
        snakemake.resources.physical_batch,
        snakemake.resources.mem_mb,
    )
