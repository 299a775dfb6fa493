"""The Hessian of the training loss at a run's weights."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs
from dpvision.training import cards

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]), cards.taken(snakemake.resources.get("gpu", 0)):
    from dpvision.curvature.job import examine
    from dpvision.training.machine import settle

    settle(snakemake.threads)
    examine(
        snakemake.params.spec,
        Path(snakemake.input.weights).parent,
        Path(snakemake.params.data),
        Path(snakemake.output.hessian),
        Path(snakemake.output.provenance),
        snakemake.resources.physical_batch,
    )
