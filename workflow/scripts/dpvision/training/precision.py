"""The precision in which a network is computed, in training and evaluation alike."""

import torch
from torch import Tensor, nn


class Bfloat16(nn.Module):
    """A network whose layers compute in bfloat16 where torch's autocast holds that safe.

    Parameters stay float32, and so does all that is made of the output and of gradients: losses, norms, sums, noise.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, torch.bfloat16):
            return self.network(images).float()


def in_precision(network: nn.Module, precision: str) -> nn.Module:
    """Return the network in this precision, with the same parameters."""
    return {"float32": lambda network: network, "bfloat16": Bfloat16}[precision](network)
