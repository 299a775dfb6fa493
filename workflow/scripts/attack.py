"""An attack on whole trainings."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs
from dpvision.training import cards

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]), cards.taken(snakemake.resources.get("gpu", 0)):
    from dpvision.audit.attack import attack, listing
    from dpvision.training.machine import settle

    settle(snakemake.threads)
    logs.tell(listing(attack(snakemake.params.spec, Path(snakemake.params.data), Path(snakemake.output[0]).parent)))
