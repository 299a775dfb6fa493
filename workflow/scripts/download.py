"""Fetch a data set's files."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision.data.download import fetch

    own = snakemake.params.own
    fetch(
        snakemake.wildcards.dataset,
        snakemake.params.entry,
        Path(own).expanduser() if own else None,
        Path(snakemake.output.files).parent,
    )
