"""A catalogue of every model by name, with what it costs."""

from typing import Any

from dpvision.models.count import count
from dpvision.models.found import FAMILIES
from dpvision.models.options import Network

MODELS: dict[str, Network] = {
    name: model for family in FAMILIES.values() for name, model in getattr(family, "CATALOGUE", {}).items()
}


def catalogue(classes: int, shape: list[int]) -> list[dict[str, Any]]:
    rows = []
    for name, model in MODELS.items():
        try:
            counts = count(model.model_dump(), shape, classes)
        except (RuntimeError, ValueError):  # PyTorch's: nothing of the image is left before the end
            counts = None
        costs = {"parameters": counts and counts.parameters, "multiply_adds": counts and counts.multiply_adds}
        rows.append({"model": name, **costs, "classes": classes, "shape": shape})
    return rows


def listing(rows: list[dict[str, Any]], classes: int, shape: list[int]) -> str:
    width = max(len(row["model"]) for row in rows)
    lines = [f"{classes} classes, images of {' x '.join(map(str, shape))}; multiply-adds of one image's forward pass", ""]
    lines += [f"{'model':{width}}  {'parameters':>12}  {'multiply-adds':>15}"]
    for row in rows:
        costs = f"{row['parameters']:>12,}  {row['multiply_adds']:>15,}" if row["parameters"] else "these images are too small"
        lines.append(f"{row['model']:{width}}  {costs}")
    return "\n".join(lines)
