"""The digits 5 to 9, of those that scikit-learn carries: another half, which nothing of 0 to 4 has seen."""

from pathlib import Path

from dpvision.data.datasets import Arrays
from dpvision.data.datasets.digits import half


def read(raw: Path) -> Arrays:
    """Return the examples of the classes 5 to 9."""
    return half(raw, 5)
