"""Loss and accuracy of a network over a set of examples."""

from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from dpvision.privacy.mish import mish, replaceable
from dpvision.training.devices import ALONE, Devices
from dpvision.training.examples import Examples, pieces
from dpvision.training.leaving import until_asked_to_leave

ON_A_CPU = 32  # images at once: more leave its caches, and take more than twice as long


class OnACpu(TorchFunctionMode):
    """Replacements of what is slow on a CPU: Mish by pieces that fit its cache, group norm in bfloat16 by float32."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if replaceable(func, args, kwargs):
            return mish(args[0])
        if func is F.group_norm and args and args[0].dtype == torch.bfloat16:
            return F.group_norm(args[0].float(), *args[1:], **kwargs).to(args[0].dtype)
        return func(*args, **kwargs)


@torch.no_grad()
def evaluate(network: nn.Module, examples: Examples, physical_batch: int, devices: Devices = ALONE) -> dict[str, float]:
    """Return the mean cross-entropy, and top-1 and top-5 accuracy as shares of 1."""
    network.eval()
    loss = torch.zeros((), dtype=torch.float64, device=examples.labels.device)
    first = five = torch.zeros((), dtype=torch.int64, device=examples.labels.device)
    cpu = loss.device.type == "cpu"
    at_once = min(physical_batch, ON_A_CPU) if cpu and not examples.are_features else physical_batch
    cut = pieces(devices.share(torch.arange(len(examples))), at_once)
    for images, labels in until_asked_to_leave(examples.batches(cut), devices):
        with OnACpu() if cpu else nullcontext():
            logits = network(images.contiguous(memory_format=torch.channels_last) if not examples.are_features else images)
        loss += F.cross_entropy(logits, labels, reduction="sum").double()
        ranked = logits.topk(min(5, logits.shape[1])).indices == labels[:, None]
        first, five = first + ranked[:, 0].sum(), five + ranked.sum()
    seen = torch.stack([loss, first.double(), five.double()])
    devices.add_up([seen])
    return dict(zip(("loss", "top1", "top5"), (seen / len(examples)).tolist(), strict=True))
