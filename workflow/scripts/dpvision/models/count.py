"""What a network costs: parameters, and multiply-adds of one forward pass of one image."""

import copy

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

    # in evaluation mode: batch normalisation in training refuses a single value a channel
    network = copy.deepcopy(network).to("meta").eval()
    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            layer.register_forward_hook(count)
    network(torch.empty(1, *shape, device="meta"))
    return total
