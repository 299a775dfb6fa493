"""The Hessian of a run, as a job."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from dpvision.curvature.hessian import analyse
from dpvision.files import write_json
from dpvision.plan.specs import Spec
from dpvision.training.record import finite

if TYPE_CHECKING:
    from dpvision.analyses.run import Trained

log = logging.getLogger(__name__)


def examine(spec: Spec, trained: "Trained", folder: Path) -> None:
    """Examine the Hessian over the first training examples, in physical batches, at the weights of the last step."""
    examples, size = trained.training_examples(spec["examples"]), trained.physical_batch
    batches = [examples.batch(slice(start, start + size)) for start in range(0, len(examples), size)]
    options = {key: spec[key] for key in ("iterations", "tolerance", "lanczos_steps", "seed")}

    def progress(stage: str, done: int, total: int) -> None:
        if done % max(1, total // 10) == 0:
            log.info("%s  %d of at most %d", stage, done, total)

    write_json(
        folder / "hessian.json",
        finite(analyse(trained.network, batches, memory_mb=trained.memory_mb, progress=progress, **options)),
    )
