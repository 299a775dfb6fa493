"""The record that a run leaves in its folder: small text files that a person can read, and the weights.

    spec.json            what was asked for, the outcome of searches filled in
    metrics.json         accuracy and loss on train, validation and test: at the last step, at the best epoch, and of
                         the averaged weights; without a best epoch and validation where nothing is held out to choose by
    history.csv          one line an epoch
    ledger.json          the privacy spent, and what it rests on
    weights.safetensors  at the last step
    averaged.safetensors their moving average there, where the recipe has one
    provenance.json      what made it: code, versions, machine, time, memory

Everything but times and memory is the same whenever the same machine runs the same spec, unless its noise is secret.

All of it appears at once, as the folder .whole; the files beside are links to what is in there. Snakemake deletes those
before it starts a job, also one that was planned before another process finished the run: that job shows them again. A
record that was there before is not shown but made anew: somebody asked for that.
"""

import copy
import math
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import load_file, save_file
from torch import nn

from dpvision.errors import UserError
from dpvision.files import digest, file_digest, read_json, replacing, write_csv, write_json
from dpvision.models import build
from dpvision.training import parts

if TYPE_CHECKING:
    from dpvision.training.fit import Training  # code that only reads records need not import what trains


def metrics(training: "Training") -> dict[str, Any]:
    """Return the metrics at the last step, and of the epoch that the validation examples found best, where there is one."""

    def of(network: nn.Module) -> dict[str, dict[str, float]]:
        sets = {"train": training.train, "validation": training.validation, "test": training.test}
        return {name: training.evaluate(examples, network) for name, examples in sets.items() if examples is not None}

    last = of(training.network)
    found: dict[str, Any] = {"last_step": {"step": training.made, **last}}
    if training.chooser:
        by = {"epoch": training.best["epoch"], "chosen_by": f"{training.chooser} top1"}
        found["best_epoch"] = by | (last if training.best["epoch"] == len(training.history) else of(_best(training)))
    if training.average:
        found["averaged"] = of(training.average.network)
    return found


def _best(training: "Training") -> nn.Module:
    """Return the network with the weights of the epoch that the validation examples found best."""
    network = copy.deepcopy(training.network)
    network.load_state_dict(training.best["weights"])
    return network


def write_record(
    folder: Path,
    training: "Training",
    ledger: dict[str, Any],
    provenance: dict[str, Any],
    still_ours: Callable[[], None],
) -> None:
    """Write the record whole; `still_ours()` runs just before it appears and raises if the run is not ours any more."""
    beside = folder / f".record-{uuid.uuid4().hex}"
    try:
        _write(beside, training, ledger, provenance)
        still_ours()
        shutil.rmtree(_whole(folder), ignore_errors=True)
        beside.rename(_whole(folder))
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    show(folder)


def _write(folder: Path, training: "Training", ledger: dict[str, Any], provenance: dict[str, Any]) -> None:
    write_json(folder / "spec.json", training.spec)
    write_json(folder / "metrics.json", finite(metrics(training)))
    write_csv(folder / "history.csv", training.history)
    write_json(folder / "ledger.json", finite(ledger))
    digests: dict[str, str] = {"weights_sha256": _write_weights(folder / "weights.safetensors", training.network)}
    if training.begun_with:
        provenance = provenance | {"trained": parts.account(training.network, training.begun_with, training.part)}
    if training.start_sha256:
        provenance = provenance | {"start_sha256": training.start_sha256}
    if training.average:
        digests["averaged_sha256"] = _write_weights(folder / "averaged.safetensors", training.average.network)
    write_json(folder / "provenance.json", provenance | digests)


def _whole(folder: Path) -> Path:
    return folder / ".whole"


def finished_since(begun: float, folder: Path, spec: dict[str, Any]) -> bool:
    """Tell whether a whole record of this spec was written since `begun`, be it shown already or not."""
    provenance = _whole(folder) / "provenance.json"
    return provenance.exists() and provenance.stat().st_mtime >= begun and read_json(provenance)["spec"] == digest(spec)


def show(folder: Path) -> None:
    for file in _whole(folder).iterdir():
        (folder / file.name).unlink(missing_ok=True)
        os.link(file, folder / file.name)


def _write_weights(file: Path, network: nn.Module) -> str:
    """Write a network's weights and return the file's digest."""
    with replacing(file) as beside:
        save_file({name: tensor.contiguous().cpu() for name, tensor in network.state_dict().items()}, beside)
    return file_digest(file)


def finite(value: Any) -> Any:
    """Put None for every NaN and infinity, which JSON does not know: a training that diverged says null."""
    if isinstance(value, dict):
        return {key: finite(below) for key, below in value.items()}
    if isinstance(value, list):
        return [finite(below) for below in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_network(folder: Path, spec: dict[str, Any]) -> nn.Module:
    """Return the trained network of a record, in evaluation mode."""
    weights = folder / "weights.safetensors"
    if file_digest(weights) != read_json(folder / "provenance.json")["weights_sha256"]:
        raise UserError(f"{weights} is not the file that the training wrote; delete {folder} so that it is made again")
    network = build(spec["model"], spec["data"]["classes"], spec["data"]["shape"][0])
    network.load_state_dict(load_file(weights))
    return network.eval()
