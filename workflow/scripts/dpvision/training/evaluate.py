"""Loss and accuracy of a network over a set of examples."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from dpvision.training.devices import ALONE, Devices
from dpvision.training.examples import Examples, pieces
from dpvision.training.leaving import Left, Told, stay

ON_A_CPU = 32  # images at once: more leave its caches, and take more than twice as long


@torch.no_grad()
def evaluate(
    network: nn.Module, examples: Examples, physical_batch: int, told: Told = stay, devices: Devices = ALONE
) -> dict[str, float]:
    """Mean cross-entropy, top-1 and top-5 accuracy as shares of 1."""
    network.eval()
    loss = torch.zeros((), dtype=torch.float64, device=examples.labels.device)
    first = five = torch.zeros((), dtype=torch.int64, device=examples.labels.device)
    at_once = min(physical_batch, ON_A_CPU) if loss.device.type == "cpu" else physical_batch
    left = False
    for indices in pieces(devices.share(torch.arange(len(examples))), at_once):
        if left := told():
            break
        images, labels = examples.batch(indices)
        logits = network(images.contiguous(memory_format=torch.channels_last))
        loss += cross_entropy(logits, labels, reduction="sum").double()
        ranked = logits.topk(min(5, logits.shape[1])).indices == labels[:, None]
        first, five = first + ranked[:, 0].sum(), five + ranked.sum()
    if any(devices.largest(left)):
        raise Left
    seen = torch.stack([loss, first.double(), five.double()])
    devices.add_up([seen])
    return dict(zip(("loss", "top1", "top5"), (seen / len(examples)).tolist(), strict=True))
