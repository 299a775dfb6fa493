"""Digests of weights, tensor by tensor, without torch: who verifies a record need not have it."""

import hashlib
from collections.abc import Collection, Mapping

import numpy as np


def digests_of(tensors: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return the SHA-256 of each tensor's numbers."""
    return {name: hashlib.sha256(np.ascontiguousarray(tensor).tobytes()).hexdigest() for name, tensor in tensors.items()}


def frozen_sha256(digests: Mapping[str, str], trained: Collection[str]) -> str:
    """Return one SHA-256 of all that is not trained, parameters and buffers."""
    lines = [f"{sha}  {name}\n" for name, sha in sorted(digests.items()) if name not in trained]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
