"""Pickles as those of De et al.'s code: Haiku's mappings of JAX's arrays, made without either."""

import pickle
import sys
from types import ModuleType
from typing import Any

import numpy as np

HAIKU, JAX = "haiku._src.data_structures", "jax._src.array"


class FlatMapping(dict):
    """A mapping that is pickled as Haiku's."""

    def __reduce__(self) -> Any:
        return FlatMapping, (dict(self),)


class Device:
    """An array that is pickled as JAX's."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __reduce__(self) -> Any:
        function, values, state = self.array.__reduce__()  # type: ignore[misc]
        return _reconstruct_array, (function, values, state, {"weak_type": False})


def _reconstruct_array(*_: Any) -> None:
    raise AssertionError("nothing of JAX's is called")


FlatMapping.__module__, _reconstruct_array.__module__ = HAIKU, JAX


def dumps(params: dict[str, dict[str, np.ndarray]], **beside: Any) -> bytes:
    """Return the pickle of a checkpoint; the modules that it names are there while it is written, and not after."""
    names = [".".join(name.split(".")[:i]) for name in (HAIKU, JAX) for i in (1, 2, 3)]
    before = {name: sys.modules.get(name) for name in names}
    sys.modules |= {name: ModuleType(name) for name in names}
    sys.modules[HAIKU].FlatMapping = FlatMapping
    sys.modules[JAX]._reconstruct_array = _reconstruct_array
    try:
        mapped = FlatMapping({key: FlatMapping({k: Device(v) for k, v in of.items()}) for key, of in params.items()})
        return pickle.dumps({"params": mapped, "network_state": FlatMapping(), **beside})
    finally:
        for name, module in before.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})
