"""Places-365, the standard split at 256 pixels (Zhou et al. 2017), from a folder of the user's; its val split is the test set.

As it is published: data_256/a/airfield/*.jpg, val_256/*.jpg, categories_places365.txt and places365_val.txt, in the order of
whose classes the labels are. Or with a folder for each class: train/airfield/*.jpg, val/airfield/*.jpg, in the order of names.
"""

from pathlib import Path

from dpvision.data import SourceFault
from dpvision.data.pictures import Listing
from dpvision.data.streamed import PICTURES
from dpvision.data.tree import in_folders, in_two_trees

UNDERSTOOD = (
    "data_256/, val_256/, categories_places365.txt and places365_val.txt, or train/ and val/ with a folder for each class,"
)
CATEGORIES, VAL = "categories_places365.txt", "places365_val.txt"


def listed(raw: Path) -> Listing:
    root = raw / PICTURES
    if not (root / "data_256").is_dir():
        return in_two_trees(root, "train", "val")
    places = _numbered(root / CATEGORIES)
    classes = [path.strip("/") for path in sorted(places, key=lambda path: places[path])]
    test = {f"val_256/{name}": label for name, label in _numbered(root / VAL).items()}
    return Listing(in_folders(root, "data_256", classes), test, classes)


def _numbered(file: Path) -> dict[str, int]:
    """Return the lines of a list, each a name and a number."""
    if not file.exists():
        raise SourceFault(f"there is no {file.name} in it")
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return {name: int(number) for name, number in lines}
