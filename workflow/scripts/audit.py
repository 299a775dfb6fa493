"""The audit of the engine."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision.audit.job import audit, listing
    from dpvision.training.machine import settle

    settle(1)
    folder = Path(snakemake.output[0]).parent
    logs.tell(listing(audit(snakemake.params.spec, folder, snakemake.threads), folder))
