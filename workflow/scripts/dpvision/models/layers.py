"""Layers that families share."""

from torch import nn


def norm_layer(model: dict, channels: int) -> nn.Module:
    """Batch normalisation, or group normalisation with at most one group a channel."""
    if model["norm"] == "batch":
        return nn.BatchNorm2d(channels)
    groups = channels if model["groups"] == "channels" else min(model["groups"], channels)
    return nn.GroupNorm(groups, channels)
