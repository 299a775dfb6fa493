"""Fetch weights that networks begin with."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision.data.weights import obtain

    own = snakemake.params.own
    folder = Path(snakemake.output.about).parent
    obtain(snakemake.params.spec, snakemake.params.entry, Path(own).expanduser() if own else None, folder)
