"""Networks of torchvision and timm as they are, without dropout and stochastic depth, for images of three channels.

Nothing is fetched for them: neither library is asked for weights, and names that would lead to a hub are none here.
"""

import difflib

from torch import nn

from dpvision.errors import UserError
from dpvision.vision import torchvision


def build(model: dict, classes: int, channels: int) -> nn.Module:
    name = model["network"]
    if channels != 3:
        raise UserError(f"{name}: it takes images of 3 channels, not of {channels}")
    if name.startswith("timm/"):
        network = of_timm(name.removeprefix("timm/"), classes)
    else:
        network = torchvision.models.get_model(name, weights=None, num_classes=classes)
    for module in network.modules():
        if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
        elif hasattr(module, "drop_prob"):  # timm's stochastic depth
            module.drop_prob = 0.0  # type: ignore[assignment]
    return network


def of_timm(name: str, classes: int) -> nn.Module:
    """Return a network of timm's whose head is its last linear layer, as everywhere here."""
    import timm  # behind torchvision, which it imports: dpvision.vision makes that possible

    if not timm.is_model(name):
        close = ", ".join(difflib.get_close_matches(name, timm.list_models())) or "none is alike"
        raise UserError(f"timm {timm.__version__} has no network {name}; alike: {close}")
    network: nn.Module = timm.create_model(name, pretrained=False, num_classes=classes)
    linear = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    if not linear or network.get_classifier() is not linear[-1]:  # type: ignore[operator]
        raise UserError(f"timm/{name}: its head is not one linear layer behind all others, so that it cannot be told apart")
    return network
