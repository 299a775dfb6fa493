"""ImageNet (ILSVRC 2012), from a folder of the user's: train/WNID/*.JPEG; its val split is the test set.

val/ has folders of classes as well, or all 50,000 pictures side by side, as its archive has them. Then the development kit says
their classes: ILSVRC2012_devkit_t12/data, or its two files, lies beside. Classes are in the order of their WordNet numbers.
"""

from pathlib import Path

from dpvision.data import SourceFault
from dpvision.data.pictures import Listing
from dpvision.data.streamed import PICTURES
from dpvision.data.tree import class_folders, in_folders, in_two_trees, pictures_in

UNDERSTOOD = (
    "train/ with a folder for each class (n01440764/*.JPEG) and val/, with such folders too or with all pictures and the "
    "development kit's folder ILSVRC2012_devkit_t12 beside,"
)
KIT = ("ILSVRC2012_devkit_t12/data", "")
TRUTH, META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"


def listed(raw: Path) -> Listing:
    root = raw / PICTURES
    if class_folders(root / "val"):
        return in_two_trees(root, "train", "val")
    classes = class_folders(root / "train")
    names = pictures_in(root / "val")
    wnids = _by_the_kit(root, len(names))
    if strange := set(wnids) - set(classes):
        raise SourceFault(f"train/ has no folder of a class of the pictures in val/: {min(strange)}")
    labels = {wnid: label for label, wnid in enumerate(classes)}
    test = {f"val/{name}": labels[wnid] for name, wnid in zip(names, wnids, strict=True)}
    return Listing(in_folders(root, "train", classes), test, classes)


def _by_the_kit(root: Path, count: int) -> list[str]:
    """Return the classes of the pictures in val/, in the order of their names."""
    from scipy.io import loadmat

    kit = next((root / place for place in KIT if (root / place / TRUTH).exists() and (root / place / META).exists()), None)
    if kit is None:
        raise SourceFault(f"val/ has no folders of classes, and {TRUTH} and {META} of the development kit are not there")
    numbers = [int(line) for line in (kit / TRUTH).read_text().split()]
    if len(numbers) != count:
        raise SourceFault(f"val/ has {count} pictures, {TRUTH} has {len(numbers)} lines")
    synsets = loadmat(kit / META, squeeze_me=True)["synsets"]
    wnids = {int(synset["ILSVRC2012_ID"]): str(synset["WNID"]) for synset in synsets}
    return [wnids[number] for number in numbers]
