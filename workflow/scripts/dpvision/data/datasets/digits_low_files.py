"""The digits 0 to 4 as picture files: a half to begin with."""

from pathlib import Path

from dpvision.data.datasets.digits import half
from dpvision.data.datasets.digits_files import written
from dpvision.data.pictures import Listing


def listed(raw: Path) -> Listing:
    """Write the files, and list them as ImageNet's are."""
    return written(half(raw, 0), raw)
