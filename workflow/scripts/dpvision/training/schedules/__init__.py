"""Schedules: how the learning rate changes. One file each, named as the recipe names it; the plan reads them too.

A file of a schedule has:
- `Options`: what a recipe says of it; the literal `name` first. The schema shows the name of the class.
- `build(options, optimizer)`: PyTorch's scheduler of the optimiser; None where the learning rate stays as it is. torch is
  imported in there, not above.
- `advance(scheduler, epoch)`, where there is a scheduler: called after every step, `epoch` then None, and after every
  epoch, with the epoch's line of the history.
"""

import importlib
from types import ModuleType


def module(name: str) -> ModuleType:
    """Import the file of a schedule."""
    return importlib.import_module(f"{__name__}.{name}")
