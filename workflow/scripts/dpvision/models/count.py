"""What a network costs: parameters, and multiply-adds of one forward pass of one image."""

import torch
from torch import nn


def parameter_count(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


def multiply_adds(network: nn.Module, shape: list[int]) -> int:
    """Of convolutions and linear layers, counted on the meta device: nothing is computed."""
    total = 0

    def count(layer: nn.Module, inputs: tuple, output: torch.Tensor) -> None:
        nonlocal total
        weight = layer.weight
        total += output.numel() * weight[0].numel()  # type: ignore[index]

    hooks = [m.register_forward_hook(count) for m in network.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    # batch normalisation in training mode refuses a single value a channel
    network.to("meta").eval()(torch.empty(1, *shape, device="meta"))
    for hook in hooks:
        hook.remove()
    return total
