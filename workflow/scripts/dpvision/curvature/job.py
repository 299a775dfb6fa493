"""The Hessian of a run, as a job."""

import logging
from pathlib import Path

from dpvision.curvature.hessian import analyse
from dpvision.data.prepared import data_part, load, split
from dpvision.files import read_json, write_json
from dpvision.plan.specs import Spec
from dpvision.provenance import Origin
from dpvision.training.examples import Examples
from dpvision.training.machine import device
from dpvision.training.record import finite, read_network

log = logging.getLogger(__name__)


def examine(spec: Spec, record: Path, data: Path, out: Path, made_by: Path, physical_batch: int) -> None:
    """Over the first training examples, in physical batches, at the weights of the last step."""
    origin = Origin("dpvision.curvature.job")
    run = read_json(record / "spec.json")
    prepared = load(data, data_part(run))
    train, _ = split(run["data"]["train"], run["data"]["validation"], run["data"]["split_seed"])
    chosen = train[: spec["examples"]]
    images, labels = prepared.train_images[chosen], prepared.train_labels[chosen]
    examples = Examples(images, labels, run["data"]["mean"], run["data"]["std"], device())
    network = read_network(record, run).to(device())
    starts = range(0, len(examples), physical_batch)
    batches = [examples.batch(slice(start, start + physical_batch)) for start in starts]
    options = {key: spec[key] for key in ("iterations", "tolerance", "lanczos_steps", "seed")}

    def progress(stage: str, done: int, total: int) -> None:
        if done % max(1, total // 10) == 0:
            log.info("%s  %d of at most %d", stage, done, total)

    write_json(out, finite(analyse(network, batches, progress=progress, **options)))
    write_json(made_by, origin.provenance(spec, data=prepared.digest))
