"""The rule that verifies an archive: what makes its verdict stale, and the verdict as a file."""

from pathlib import Path

from dpvision.code import code_digest
from dpvision.errors import UserError
from dpvision.files import write_text
from dpvision.plan.stages import STAGES


def verify_code() -> str:
    """Return the digest of the code that verifies."""
    return code_digest("dpvision.verify.verdict", *(stage.verify.split(":")[0] for stage in STAGES.values()))


def write_verdict(archive: str, out: str, log: str) -> None:
    """Write what verifying an archive says of it, also into the log; one that does not hold is an error."""
    from dpvision.verify.verdict import verify  # with pandas, which the Snakefile does without

    verdict = verify(Path(archive))
    write_text(log, f"{verdict}\n")
    if not verdict.holds:
        raise UserError(str(verdict))
    write_text(out, f"{verdict}\n")
