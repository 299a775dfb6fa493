"""Optimisers: what makes a step of a gradient. One file each, named as the recipe names it; the plan reads them too.

A file of an optimiser has:
- `Options`: what a recipe says of it; the literal `name` first. The schema shows the name of the class.
- `COPIES`: how many numbers it keeps for each parameter from step to step, for the size of a checkpoint.
- `build(options, network)`: PyTorch's optimiser of the network's parameters. torch is imported in there, not above.
"""

import importlib
from types import ModuleType


def module(name: str) -> ModuleType:
    """Import the file of an optimiser."""
    return importlib.import_module(f"{__name__}.{name}")
