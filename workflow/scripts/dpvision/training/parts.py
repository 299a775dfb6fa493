"""What of a network trains: all of it, its norms with its head, or its head alone; and the proof that the rest stayed.

`head` is the last linear layer. `norms` are scale and shift of normalisation layers, gains and biases of convolutions with
standardised weights, gains of skip connections, and the head.
"""

import logging
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from dpvision.errors import UserError
from dpvision.training import digests

log = logging.getLogger(__name__)

NORMS = (nn.GroupNorm, nn.LayerNorm, nn.InstanceNorm2d)
FIXED = (
    "batch normalisation keeps the statistics that it started with, in training too: no example's output depends on the "
    "others of its batch"
)


class FixedBatchNorm(nn.Module):
    """Batch normalisation by statistics that nothing changes; its state has the names of PyTorch's.

    timm's has the activation inside: that stays.
    """

    def __init__(self, norm: _BatchNorm) -> None:
        super().__init__()
        self.eps, self.weight, self.bias = norm.eps, norm.weight, norm.bias
        for name, buffer in norm.named_buffers(recurse=False):
            self.register_buffer(name, buffer)
        self.act = getattr(norm, "act", nn.Identity())

    def forward(self, x: Tensor) -> Tensor:
        normed = F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)  # type: ignore[arg-type]
        return self.act(normed)


def head_of(network: nn.Module) -> tuple[str, nn.Linear]:
    """Return the head and its name: the last of the linear layers."""
    linear = [(name, layer) for name, layer in network.named_modules() if isinstance(layer, nn.Linear)]
    if not linear:
        raise UserError("the network has no linear layer, which could be its head; train all of it, from its own start")
    return linear[-1]


@torch.no_grad()
def zero_head(network: nn.Module) -> None:
    """Put all weights of the head to zero: a new head knows nothing of the classes, and prefers none."""
    for parameter in head_of(network)[1].parameters():
        parameter.zero_()


def freeze(network: nn.Module, train: str) -> None:
    """Leave trainable what `train` names, head or norms, and fix the statistics of batch normalisation."""
    for module in list(network.modules()):
        for name, layer in module.named_children():
            if isinstance(layer, _BatchNorm):
                setattr(module, name, FixedBatchNorm(layer))
    trained = {id(p) for p in head_of(network)[1].parameters()}
    if train == "norms":
        trained |= {id(p) for module in network.modules() for p in _of_norms(module)}
    for parameter in network.parameters():
        parameter.requires_grad_(id(parameter) in trained)


def _of_norms(module: nn.Module) -> list[nn.Parameter]:
    """Return those of a layer's own parameters that scale and shift; `gain` is a convolution's, or a skip connection's."""
    own = dict(module.named_parameters(recurse=False))
    if isinstance(module, nn.Conv2d) and "gain" in own:  # of standardised weights
        return [parameter for name, parameter in own.items() if name != "weight"]
    return [p for name, p in own.items() if isinstance(module, (*NORMS, FixedBatchNorm)) or name.endswith("gain")]


def digests_of(network: nn.Module) -> dict[str, str]:
    """Return the SHA-256 of each tensor of a network's state."""
    return digests.digests_of({name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()})


def account(network: nn.Module, before: Mapping[str, str], train: str) -> dict[str, Any]:
    """Say what moved since `before`, and prove that what was frozen did not; a frozen part that moved is an error."""
    after = digests_of(network)
    trained = [name for name, parameter in network.named_parameters() if parameter.requires_grad]
    moved = [name for name in after if name not in trained and after[name] != before[name]]
    if moved and train != "all":
        raise UserError(f"{', '.join(moved)}: frozen, and not as before the training; nothing that this trained may be used")
    unmoved = [name for name in trained if after[name] == before[name]]
    if unmoved:
        log.warning("trained, and still to the bit what they were: %s", ", ".join(unmoved))
    said: dict[str, Any] = {"part": train, "trained": trained, "unmoved": unmoved}
    if train != "all":
        said["frozen_sha256"] = {
            "before": digests.frozen_sha256(before, trained),
            "after": digests.frozen_sha256(after, trained),
        }
    if any(isinstance(layer, FixedBatchNorm) for layer in network.modules()):
        said["statistics"] = FIXED
    return said
