"""The cost of a network, counted on the meta device: nothing is computed."""

import copy
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from dpvision.files import write_json
from dpvision.models import build
from dpvision.models.found import FAMILIES
from dpvision.models.options import Counts
from dpvision.plan import cost

if TYPE_CHECKING:
    from dpvision.plan import Plan


def parameter_count(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


def multiply_adds(network: nn.Module, shape: list[int]) -> int:
    """Return the multiply-adds of the convolutions and linear layers, in one forward pass of one image."""
    return int(counted(network, shape).multiply_adds)


def counted(network: nn.Module, shape: list[int]) -> Counts:
    """Return the counts of one forward pass of one image; of its layers, convolutions and linear ones count."""
    work, outputs = [0], [0]

    def count(layer: nn.Module, inputs: tuple, output: torch.Tensor) -> None:
        weight = layer.weight
        work.append(output.numel() * weight[0].numel())  # type: ignore[index]
        outputs.append(output.numel())

    # evaluation mode, since batch normalisation in training refuses a single value a channel
    network = copy.deepcopy(network).to("meta").eval()
    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            layer.register_forward_hook(count)
    network(torch.empty(1, *shape, device="meta"))
    return Counts(sum(work), parameter_count(network), sum(outputs), max(outputs))


def count(model: dict, shape: list[int], classes: int) -> Counts:
    """Return the counts of the network of a spec's `model`."""
    with torch.device("meta"):
        network = build(model, classes, shape[0])
    return counted(network, shape)


def write_counts(plans: Iterable["Plan"]) -> list[Path]:
    """Write the table of every family without `layers`, for all networks of the plans; return the files.

    The greatest choice of a search stands for all: they differ little in what they cost.
    """
    tables: dict[str, dict[str, dict]] = {name: {} for name, module in FAMILIES.items() if not hasattr(module, "layers")}
    for plan in plans:
        for name in plan.runs:
            run = plan.dearest_run_of(("train", name))
            table = tables.get(run["model"]["family"])
            if table is not None and (key := cost.counts_key(run)) not in table:
                table[key] = asdict(count(run["model"], run["data"]["shape"], run["data"]["classes"]))
    for name, table in tables.items():
        write_json(cost.table_of(FAMILIES[name]), table)
    return [cost.table_of(FAMILIES[name]) for name in tables]
