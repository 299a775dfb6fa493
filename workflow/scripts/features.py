"""Compute the features of a data set's images."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs
from dpvision.training import cards

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]), cards.taken(snakemake.resources.get("gpu", 0)):
    from dpvision.training.features import compute
    from dpvision.training.machine import settle

    settle(snakemake.threads)
    compute(
        snakemake.params.spec,
        snakemake.params.of,
        Path(snakemake.input.dataset).parent,
        Path(snakemake.input.weights).parent,
        Path(snakemake.output.dataset).parent,
    )
