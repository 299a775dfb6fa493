"""How the activations around a residual addition are distributed, before and after ScaleNorm."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dpvision.data.prepared import data_part, load
from dpvision.errors import UserError
from dpvision.files import read_json, write_csv, write_json
from dpvision.models.resnet9.network import ResNet9
from dpvision.plan.specs import Spec
from dpvision.provenance import Origin
from dpvision.training.examples import Examples
from dpvision.training.machine import device
from dpvision.training.record import read_network

# What the paper's Figure 2 calls them: residual path, convolutional path, their sum, the sum after ScaleNorm.
PLACES = ("V_R", "V_F", "V_A", "V_A^S")


@torch.no_grad()
def around_addition(network: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """The first residual block's activations, flat, by place."""
    if not isinstance(network, ResNet9):
        raise UserError(f"activations are shown of the residual blocks of ResNet-9, not of {type(network).__name__}")
    seen: dict[str, Tensor] = {}

    def keep(place: str) -> Any:
        return lambda module, inputs, output: seen.__setitem__(place, output.flatten().cpu())

    hooks = [
        network.conv2.register_forward_hook(keep("V_R")),
        network.res1.path.register_forward_hook(keep("V_F")),
        network.res1.register_forward_hook(keep("V_A")),
    ]
    if not isinstance(network.scale_norm1, nn.Identity):
        hooks.append(network.scale_norm1.register_forward_hook(keep("V_A^S")))
    network(images)
    for hook in hooks:
        hook.remove()
    return seen


def histograms(activations: dict[str, Tensor], bins: int) -> list[dict[str, Any]]:
    """One row a bin and place, with the place's mean and standard deviation; the bins hold all but two thousandths.

    Those lie so far out that they would squeeze the rest into a few bins. They count in mean and deviation.
    """
    rows = []
    for place, tensor in activations.items():
        values = tensor.double().numpy()
        counts, edges = np.histogram(values, bins, range=tuple(np.quantile(values, (0.001, 0.999))))
        density = counts / (len(values) * np.diff(edges))
        moments = {"mean": float(values.mean()), "std": float(values.std())}
        for left, right, height in zip(edges[:-1].tolist(), edges[1:].tolist(), density.tolist(), strict=True):
            rows.append({"place": place, "left": left, "right": right, "density": height, **moments})
    return rows


def measure(spec: Spec, record: Path, data: Path, table: Path, made_by: Path) -> None:
    """Histograms of a trained network's activations on the first test examples, as one CSV."""
    origin = Origin("dpvision.reporting.activations")
    run = read_json(record / "spec.json")
    prepared = load(data, data_part(run))
    test = Examples(prepared.test_images, prepared.test_labels, run["data"]["mean"], run["data"]["std"], device())
    network = read_network(record, run).to(device())
    images, _ = test.batch(slice(0, spec["examples"]))
    rows = histograms(around_addition(network, images), spec["bins"])
    write_csv(table, rows)
    write_json(made_by, origin.provenance(spec, data=prepared.digest))
