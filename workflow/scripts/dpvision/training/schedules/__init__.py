"""Schedules: how the learning rate changes. One file each, named as the recipe names it; the plan reads them too.

A file of a schedule has:
- `Options`: what a recipe says of it; the literal `name` first. The schema shows the name of the class.
- `build(options, optimizer)`: PyTorch's scheduler of the optimiser; None where the learning rate stays as it is. torch is
  imported in there, not above.
- `FOLLOWS_VALIDATION = True`, where it looks at the validation loss: then examples have to be held out.
- `advance(scheduler, epoch)`, where there is a scheduler: called after every step, `epoch` then None, and after every
  epoch, with the epoch's line of the history.
"""

import importlib
from types import ModuleType


def module(name: str) -> ModuleType:
    """Import the file of a schedule."""
    return importlib.import_module(f"{__name__}.{name}")


def follows_validation(name: str) -> bool:
    """Say whether a schedule looks at the validation loss."""
    return getattr(module(name), "FOLLOWS_VALIDATION", False)
