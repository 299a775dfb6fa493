"""Initialisations: the weights that a network starts with, where a recipe names them. One file each; the plan reads them too.

A file of an initialisation has:
- `Options`: what a recipe says of it; the literal `name` first. The schema shows the name of the class.
- `apply(options, network)`: give the network its first weights, drawn from PyTorch's own stream of random numbers, in place
  of those that its family gave it. torch is imported in there, not above.
"""

import importlib
from types import ModuleType


def module(name: str) -> ModuleType:
    """Import the file of an initialisation."""
    return importlib.import_module(f"{__name__}.{name}")
