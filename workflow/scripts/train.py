"""Train once with one seed."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs
from dpvision.training import cards

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]), cards.taken(snakemake.resources.get("gpu", 0)):
    from dpvision.training.machine import settle
    from dpvision.training.run import train

    settle(snakemake.threads)
    train(
        snakemake.params.spec,
        Path(snakemake.params.data),
        [Path(best) for best in snakemake.input.studies],
        Path(snakemake.output.spec).parent,
        Path(snakemake.params.checkpoint),
        Path(snakemake.params.decided),
        snakemake.resources.physical_batch,
        snakemake.resources.mem_mb,
        snakemake.params.begun,
        *(Path(proof).parent for proof in snakemake.input.get("start", [])),
    )
