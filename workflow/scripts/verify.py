"""What verifying the archive says of it."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpvision import logs

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

with logs.job(snakemake.log[0]):
    from dpvision.errors import UserError
    from dpvision.files import write_text
    from dpvision.verify.verdict import verify

    verdict = verify(Path(snakemake.input.archive))
    if not verdict.holds:
        raise UserError(str(verdict))
    write_text(Path(snakemake.output.verdict), f"{verdict}\n")
