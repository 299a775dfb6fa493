"""Every model by name, with what it costs."""

from typing import Any

import torch

from dpvision.models import build
from dpvision.models.count import multiply_adds, parameter_count
from dpvision.plan.config import Network, ResNet9, ResNet50, WideResNet

MODELS: dict[str, Network] = {
    "resnet9": ResNet9(family="resnet9", label="ResNet-9"),
    "scaleresnet9": ResNet9(family="resnet9", label="ScaleResNet-9", scale_norm=True),
    "resnet9, width 1/8": ResNet9(family="resnet9", label="narrow ResNet-9", width=0.125),
    "scaleresnet9, width 1/8": ResNet9(family="resnet9", label="narrow ScaleResNet-9", width=0.125, scale_norm=True),
    "resnet50": ResNet50(family="resnet50", label="ResNet-50"),
    "scaleresnet50": ResNet50(family="resnet50", label="ScaleResNet-50", scale_norm=True),
    "wrn16-4": WideResNet(family="wrn", label="WRN-16-4", depth=16, width=4),
    "scalewrn16-4": WideResNet(family="wrn", label="ScaleWRN-16-4", depth=16, width=4, scale_norm=True),
    "wrn40-4": WideResNet(family="wrn", label="WRN-40-4", depth=40, width=4),
    "wrn28-10": WideResNet(family="wrn", label="WRN-28-10", depth=28, width=10),
}


def catalogue(classes: int, shape: list[int]) -> list[dict[str, Any]]:
    rows = []
    for name, model in MODELS.items():
        with torch.device("meta"):
            network = build(model.model_dump(), classes, shape[0])
        counts = {"parameters": parameter_count(network), "multiply_adds": multiply_adds(network, shape)}
        rows.append({"model": name, **counts, "classes": classes, "shape": shape})
    return rows


def listing(rows: list[dict[str, Any]], classes: int, shape: list[int]) -> str:
    width = max(len(row["model"]) for row in rows)
    lines = [f"{classes} classes, images of {' x '.join(map(str, shape))}; multiply-adds of one image's forward pass", ""]
    lines += [f"{'model':{width}}  {'parameters':>12}  {'multiply-adds':>15}"]
    lines += [f"{row['model']:{width}}  {row['parameters']:>12,}  {row['multiply_adds']:>15,}" for row in rows]
    return "\n".join(lines)
