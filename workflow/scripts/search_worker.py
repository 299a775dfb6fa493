"""Train trials of a study until it has all of them."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs
from dpvision.training import cards

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]), cards.taken(snakemake.resources.get("gpu", 0)):
    from dpvision.search.study import work
    from dpvision.training.machine import settle

    settle(snakemake.threads)
    done = Path(snakemake.output.done)
    work(
        snakemake.params.spec,
        Path(snakemake.params.data),
        done.parents[1],
        done,
        Path(snakemake.params.decided),
        snakemake.resources.physical_batch,
        snakemake.resources.mem_mb,
        *(Path(proof).parent for proof in snakemake.input.get("start", [])),
    )
