"""Checkpoints of De et al.'s code: pickles of Haiku's parameters, which become those of our wide residual networks.

Theirs are `params`: a layer's name, and its parameters by theirs. Kernels have the outputs last. Their order of layers is that
of models/wrn/network.py, so that each of their parameters has one place in ours.
"""

import pickle
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dpvision.data import pickles
from dpvision.errors import UserError

SUFFIXES = (".dill", ".pickle", ".pkl")
MODULE = "wide_res_net/"
EXPECTED = "expected is a pickle of arrays in mappings alone: take the file as De et al. publish it"
ALONE = {"conv.0": "First_conv", "tail.1": "Final_norm", "classifier": "Softmax"}
NAMES = {nn.GroupNorm: {"weight": "scale", "bias": "offset"}}  # of parameters, where theirs are not w, bias and gain


def read(file: Path) -> dict[str, Tensor]:
    """Return the parameters of a checkpoint, as LAYER/PARAMETER; nothing in the file is run."""
    try:
        with open(file, "rb") as content:
            checkpoint = pickles.read(content)
    except (pickle.UnpicklingError, OSError) as error:
        raise UserError(f"{file}: {error}; {EXPECTED}") from error
    if not isinstance(checkpoint, Mapping) or not isinstance(checkpoint.get("params"), Mapping):
        raise UserError(f"{file}: expected is a mapping that has params, as De et al.'s code keeps them")
    state = checkpoint.get("network_state")
    found: dict[str, Tensor] = {}
    for before, part in (("", checkpoint["params"]), ("network_state/", {} if state is None else state)):
        if not isinstance(part, Mapping):
            raise UserError(f"{file}: {before.rstrip('/')} is of the type {type(part).__name__}; {EXPECTED}")
        for name, array in _leaves(part, before, file):
            if name in found:
                raise UserError(f"{file}: two arrays are both {name}, where b is bias and {MODULE} is left out; {EXPECTED}")
            found[name] = array
    return found


def _leaves(mapping: Mapping[Any, Any], before: str, file: Path) -> Iterator[tuple[str, Tensor]]:
    """Yield the arrays of mappings in mappings; the outermost module's name is left out, and a bias is always `bias`."""
    for layer, value in mapping.items():
        if not isinstance(layer, str):
            where = before.rstrip("/") or "params"
            raise UserError(f"{file}: a name in {where} is of the type {type(layer).__name__}, and must be text; {EXPECTED}")
        name = before + ("bias" if layer == "b" else layer.removeprefix(MODULE))
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name}/", file)
        elif isinstance(value, np.ndarray):
            yield name, torch.from_numpy(np.array(value, np.float32))
        else:
            raise UserError(f"{file}: {name} is of the type {type(value).__name__}, and must be an array; {EXPECTED}")


def their_names(network: nn.Module, depth: int) -> dict[str, str]:
    """Return the name of each parameter of a wide residual network of ours, and the name that it has in theirs."""
    found = {}
    for name, layer in network.named_modules():
        for parameter, _ in layer.named_parameters(recurse=False):
            said = NAMES.get(type(layer), {"weight": "w"})
            found[f"{name}.{parameter}"] = f"{_their_layer(name, layer, (depth - 4) // 6)}/{said.get(parameter, parameter)}"
    return found


def _their_layer(name: str, layer: nn.Module, blocks: int) -> str:
    """Return their name of a layer: a stage has so many blocks, and a block a shortcut or a path of two units."""
    if name in ALONE:
        return ALONE[name]
    block, unit = re.findall(r"blocks\.(\d+)\.(?:path\.(\d)|shortcut)\.", name)[0]
    stage, place = divmod(int(block), blocks)
    if not unit:
        return f"Block_{stage + 1}_skip_{'norm' if isinstance(layer, nn.GroupNorm) else 'conv'}"
    return f"Block_{stage + 1}{'_norm' if isinstance(layer, nn.GroupNorm) else 'Conv'}_{place}_{unit}"


def turned(tensor: Tensor, back: bool = False) -> Tensor:
    """Return a kernel of ours as theirs, inputs before outputs; or one of theirs as ours."""
    orders = {4: ((2, 3, 1, 0), (3, 2, 0, 1)), 2: ((1, 0), (1, 0))}
    return tensor.permute(orders[tensor.ndim][back]) if tensor.ndim in orders else tensor
