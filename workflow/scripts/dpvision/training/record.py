"""What a run leaves in its folder: small text files that a person can read, and the weights.

    spec.json            what was asked for, the outcome of searches filled in
    metrics.json         accuracy and loss on train, validation and test: at the last step, at the best epoch, and of
                         the averaged weights
    history.csv          one line an epoch
    ledger.json          the privacy spent, and what it rests on
    weights.safetensors  at the last step
    averaged.safetensors their moving average there, where the recipe has one
    provenance.json      what made it: code, versions, machine, time, memory

Everything but times and memory is the same whenever the same machine runs the same spec.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import load_file, save_file
from torch import nn

from dpvision.errors import UserError
from dpvision.files import file_digest, read_json, replacing, write_csv, write_json
from dpvision.models import build

if TYPE_CHECKING:
    from dpvision.training.fit import Training  # who only reads a record does not wait for what trains


def metrics(training: "Training") -> dict[str, Any]:
    """At the last step, and with the weights of the epoch that the validation examples found best."""
    sets = {"train": training.train, "validation": training.validation, "test": training.test}
    last = {name: training.evaluate(examples) for name, examples in sets.items()}
    weights = {name: tensor.detach().clone() for name, tensor in training.network.state_dict().items()}
    training.network.load_state_dict(training.best["weights"])
    best = {name: training.evaluate(examples) for name, examples in sets.items()}
    training.network.load_state_dict(weights)
    averaged = {}
    if training.average:
        network = training.average.network
        averaged = {"averaged": {name: training.evaluate(examples, network) for name, examples in sets.items()}}
    return averaged | {
        "last_step": {"step": training.made, **last},
        "best_epoch": {"epoch": training.best["epoch"], "chosen_by": "validation top1", **best},
    }


def write_record(folder: Path, training: "Training", ledger: dict[str, Any], provenance: dict[str, Any]) -> None:
    write_json(folder / "spec.json", training.spec)
    write_json(folder / "metrics.json", finite(metrics(training)))
    write_csv(folder / "history.csv", training.history)
    write_json(folder / "ledger.json", finite(ledger))
    digests = {"weights_sha256": _write_weights(folder / "weights.safetensors", training.network)}
    if training.average:
        digests["averaged_sha256"] = _write_weights(folder / "averaged.safetensors", training.average.network)
    write_json(folder / "provenance.json", provenance | digests)


def _write_weights(file: Path, network: nn.Module) -> str:
    """The file's digest."""
    with replacing(file) as beside:
        save_file({name: tensor.contiguous().cpu() for name, tensor in network.state_dict().items()}, beside)
    return file_digest(file)


def finite(value: Any) -> Any:
    """JSON knows no NaN and no infinity: a training that diverged says null."""
    if isinstance(value, dict):
        return {key: finite(below) for key, below in value.items()}
    if isinstance(value, list):
        return [finite(below) for below in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_network(folder: Path, spec: dict[str, Any]) -> nn.Module:
    """The trained network of a record, in evaluation mode."""
    weights = folder / "weights.safetensors"
    if file_digest(weights) != read_json(folder / "provenance.json")["weights_sha256"]:
        raise UserError(f"{weights} is not the file that the training wrote; delete {folder} so that it is made again")
    network = build(spec["model"], spec["data"]["classes"], spec["data"]["shape"][0])
    network.load_state_dict(load_file(weights))
    return network.eval()
