"""Pickles of arrays, read without running anything: arrays, containers, texts and numbers, and nothing else.

A pickle says which functions to call. Here each name that numpy, JAX and Haiku write for their arrays and mappings has a
stand-in of our own, and any other name is an error. JAX, Haiku and dill need not be installed.
"""

import itertools
import pickle
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

MOST_VALUES = 3_000_000
"""Values that a pickle may hold, each counted as often as it is held: ImageNet's labels in one list are 1.3 million. A file of
some hundred bytes can hold more than anybody waits for."""
KINDS = "biuf"  # booleans, whole numbers, floating point
DAMAGE = (EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, MemoryError, RecursionError)


class Maker:
    """A stand-in for a function or a class that a pickle names. A pickle can call it, and cannot change it."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make

    def __call__(self, *values: Any) -> Any:
        return self.make(*values)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it would change a function")


class Type:
    """A stand-in for a numpy dtype of plain numbers, which learns its byte order last."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.dtype = np.dtype(name if isinstance(name, str) else "O")
        if self.dtype.kind not in KINDS:
            raise pickle.UnpicklingError(f"it has an array of {name}: only numbers are read")

    def __setstate__(self, state: Any) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class Array:
    """A stand-in for a numpy array, which learns shape, type and bytes last."""

    array: np.ndarray

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, content = state
        self.array = _from_bytes(content, kind, shape, "F" if by_columns else "C")


def _from_bytes(content: Any, kind: Any, shape: Any, order: Any) -> np.ndarray:
    if not isinstance(kind, Type):
        raise pickle.UnpicklingError("it has an array without a type")
    raw = content.encode("latin1") if isinstance(content, str) else content
    return np.frombuffer(raw, kind.dtype).reshape(shape, order=order)


def _text(content: Any, encoding: Any) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it encodes a text as {encoding}")
    return str(content).encode("latin1")


def _of_jax(make: Any, values: Any, state: Any, _: Any) -> Any:
    array = make(*values)
    array.__setstate__(state)
    return array


NAMES: dict[tuple[str, str], Maker] = {
    ("_codecs", "encode"): Maker(_text),
    ("collections", "OrderedDict"): Maker(dict),
    ("haiku._src.data_structures", "FlatMapping"): Maker(dict),
    ("haiku._src.data_structures", "FlatMap"): Maker(dict),
    ("haiku._src.data_structures", "frozendict"): Maker(dict),
    ("jax._src.array", "_reconstruct_array"): Maker(_of_jax),
    ("jax._src.device_array", "reconstruct_device_array"): Maker(_of_jax),
    ("numpy", "dtype"): Maker(Type),
    ("numpy", "ndarray"): Maker(lambda *_: Array()),
}
for _core in ("numpy.core", "numpy._core"):  # before and from numpy 2
    NAMES[f"{_core}.multiarray", "_reconstruct"] = Maker(lambda *_: Array())
    NAMES[f"{_core}.multiarray", "scalar"] = Maker(lambda kind, content: _from_bytes(content, kind, (), "C"))
    NAMES[f"{_core}.numeric", "_frombuffer"] = Maker(_from_bytes)


class _Reader(pickle.Unpickler):
    """A reader of pickles that knows the names above alone."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in NAMES:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is no array or mapping, and would run code")
        return NAMES[module, name]


def read(file: IO[bytes]) -> Any:
    """Return what a pickle holds; UnpicklingError says what in it is more than arrays, or that it is damaged."""
    try:
        return _plain(_Reader(file, encoding="latin1").load(), itertools.count(1))
    except DAMAGE as error:
        raise pickle.UnpicklingError(f"it is damaged or no pickle: {error}") from error


def _plain(value: Any, numbers: Iterator[int]) -> Any:
    """Return a value with arrays in the place of their stand-ins; `numbers` counts the values."""
    if next(numbers) > MOST_VALUES:
        raise pickle.UnpicklingError(f"it holds more than {MOST_VALUES:,} values: a container that holds itself many times?")
    if isinstance(value, Array):
        return value.array
    if isinstance(value, dict):
        return {key: _plain(inside, numbers) for key, inside in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(inside, numbers) for inside in value)
    if value is None or isinstance(value, (str, bytes, int, float, bool, np.ndarray)):
        return value
    raise pickle.UnpicklingError(f"it holds a {type(value).__name__}, which is no array, text, number or container")
