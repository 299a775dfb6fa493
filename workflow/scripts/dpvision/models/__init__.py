"""Networks: a folder a family, found by its name, which is the `family` of a spec's `model`.

models/NAME/options.py   light: `Options`, what a paper can say of it; `layers`, what those cost; `CATALOGUE`
models/NAME/network.py   with torch: `build`
models/NAME/counts.json  in the place of `layers`: written by `python -m dpvision models --count`
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING

from dpvision.errors import UserError

if TYPE_CHECKING:
    from torch import nn


def build(model: dict, classes: int, channels: int) -> "nn.Module":
    """Return the network of a spec's `model` for images of so many channels, with the weights that its family starts with.

    Only now is the family imported, by its name: the code of no other one counts for a result (specs.modules_of).
    """
    known = sorted(found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)
    if model["family"] not in known:
        raise UserError(
            f"no family of networks is called '{model['family']}'; there are: {', '.join(known)}. "
            f"A new one is a folder {model['family']} in dpvision/models."
        )
    network: nn.Module = importlib.import_module(f"{__name__}.{model['family']}.network").build(model, classes, channels)
    return network
