"""The digits 5 to 9 as picture files: another half, which nothing of 0 to 4 has seen."""

from pathlib import Path

from dpvision.data.datasets.digits import half
from dpvision.data.datasets.digits_files import written
from dpvision.data.pictures import Listing


def listed(raw: Path) -> Listing:
    """Write the files, and list them as ImageNet's are."""
    return written(half(raw, 5), raw)
