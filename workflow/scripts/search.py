"""The best values of a study."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision.search.study import conclude

    out = snakemake.output
    conclude(snakemake.params.spec, Path(out.best).parent, Path(out.best), Path(out.trials), Path(out.provenance))
