"""The distribution of the activations around a residual addition, before and after ScaleNorm."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from dpvision.errors import UserError
from dpvision.files import write_csv
from dpvision.models.resnet9.network import ResNet9
from dpvision.plan.specs import Spec

if TYPE_CHECKING:
    from dpvision.analyses.run import Trained


@torch.no_grad()
def around_addition(network: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """Return the first residual block's activations, flat, by place."""
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
    """Return a row a bin and place, with the place's mean and standard deviation; the bins hold all but two thousandths.

    The two thousandths lie so far out that they would squeeze the rest into a few bins. They count in mean and deviation.
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


def measure(spec: Spec, trained: "Trained", folder: Path) -> None:
    """Write histograms of the network's activations on the first test examples, as one CSV."""
    images, _ = trained.test_examples().batch(slice(0, spec["examples"]))
    write_csv(folder / "histograms.csv", histograms(around_addition(trained.network, images), spec["bins"]))
