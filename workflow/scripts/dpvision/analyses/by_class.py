"""How many test examples of each class a trained network gets right: privacy costs some classes more than others."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from dpvision.files import write_csv
from dpvision.plan.specs import Spec
from dpvision.training.examples import pieces
from dpvision.training.precision import in_precision

if TYPE_CHECKING:
    from dpvision.analyses.run import Trained


@torch.no_grad()
def count(spec: Spec, trained: "Trained", folder: Path) -> None:
    """Write a line a class: its name, its test examples, and how many of them were right at the last step."""
    examples = trained.test_examples()
    network = in_precision(trained.network, trained.run["recipe"]["precision"])
    there, right = torch.zeros(2, trained.run["data"]["classes"], dtype=torch.int64)
    for images, labels in examples.batches(pieces(torch.arange(len(examples)), trained.physical_batch)):
        found = network(images).argmax(1)
        there += labels.bincount(minlength=len(there)).cpu()
        right += labels[found == labels].bincount(minlength=len(there)).cpu()
    lines = zip(trained.data.class_names, there.tolist(), right.tolist(), strict=True)
    write_csv(folder / "classes.csv", [{"class": name, "examples": many, "right": few} for name, many, few in lines])
