"""An analysis as a job: the trained network and its data for it, provenance beside what it leaves."""

import importlib
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from dpvision.data.prepared import Prepared, data_part, load, split_of
from dpvision.files import read_json, write_json
from dpvision.memory import limit_mb
from dpvision.plan.specs import Spec, network_module
from dpvision.provenance import Origin
from dpvision.training.examples import Examples
from dpvision.training.machine import device
from dpvision.training.record import read_network


@dataclass
class Trained:
    """A training's network in evaluation mode, on the job's device, with the data that it was trained on."""

    run: Spec
    network: nn.Module
    data: Prepared
    physical_batch: int
    memory_mb: float
    """Memory that the job may use of its device, in MB."""

    def training_examples(self, count: int) -> Examples:
        """Return the first of the examples that it was trained on."""
        data = self.run["data"]
        train, _ = split_of(data)
        return Examples(self.data.train_images, self.data.train_labels, data["mean"], data["std"], device(), rows=train[:count])

    def test_examples(self) -> Examples:
        data = self.run["data"]
        return Examples(self.data.test_images, self.data.test_labels, data["mean"], data["std"], device())


def analyse(job: str, spec: Spec, record: Path, data: Path, folder: Path, physical_batch: int, memory_mb: float) -> None:
    """Do the job, a module:function, with the weights of a run's record; leave provenance beside its results."""
    module, function = job.split(":")
    run = read_json(record / "spec.json")
    origin = Origin(f"{module} dpvision.analyses.run {network_module(run)}")
    prepared = load(data, data_part(run))
    network = read_network(record, run).to(device())
    trained = Trained(run, network, prepared, physical_batch, limit_mb(device(), memory_mb))
    getattr(importlib.import_module(module), function)(spec, trained, folder)
    write_json(folder / "provenance.json", origin.provenance(spec, data=prepared.digest))
