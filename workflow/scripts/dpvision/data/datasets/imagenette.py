"""Imagenette, version 2 of 2019, 160 pixels: ten classes of ImageNet, 9,469 + 3,925 images; its val split is the test set.

Greyscale images become RGB, and all are squashed to 160 x 160, as by the authors, who do it to the normalised pixels and
without antialiasing; here a picture is resized. Classes are in the order of their WordNet numbers, examples in that of
their paths.
"""

from collections import Counter

from PIL import Image

from dpvision.data import SourceFault
from dpvision.data.pictures import SUFFIX, Archive, Listing, in_words

UNDERSTOOD = "imagenette2-160.tgz, or the folder imagenette2-160 that is unpacked from it,"

CLASSES = {
    "n01440764": "tench",
    "n02102040": "English springer",
    "n02979186": "cassette player",
    "n03000684": "chain saw",
    "n03028079": "church",
    "n03394916": "French horn",
    "n03417042": "garbage truck",
    "n03425413": "gas pump",
    "n03445777": "golf ball",
    "n03888257": "parachute",
}
COUNTS = {  # as published, by class
    "train": [963, 955, 993, 858, 941, 956, 961, 931, 951, 960],
    "val": [387, 395, 357, 386, 409, 394, 389, 419, 399, 390],
}
SIZE = 160
LARGER = 320  # the shorter side of the next larger version; its images stand under the same names


def listing(paths: list[str], texts: dict[str, bytes]) -> Listing:
    labels = {f"{split}/{wnid}": label for split in COUNTS for label, wnid in enumerate(CLASSES)}
    folders = {path: path.rpartition("/")[0] for path in paths}
    if strange := [path for path, folder in folders.items() if folder not in labels]:
        raise SourceFault(f"these do not belong to it: {in_words(strange)}")
    found = Counter(folders.values())
    for folder, expected in zip(labels, [count for counts in COUNTS.values() for count in counts], strict=True):
        if found[folder] != expected:
            raise SourceFault(f"{folder}: expected {expected} {SUFFIX} files, found {found[folder]}")
    train, test = ({path: labels[folders[path]] for path in paths if path.startswith(split)} for split in COUNTS)
    return Listing(train, test, list(CLASSES.values()))


def squashed(picture: Image.Image) -> Image.Image:
    if min(picture.size) >= LARGER:
        raise SourceFault(f"{picture.width} x {picture.height}: this is of a larger version, imagenette2-320 or imagenette2")
    return picture.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR)


ARCHIVE = Archive("imagenette2-160.tgz", (), listing, squashed, (3, SIZE, SIZE))
read, pack = ARCHIVE.read, ARCHIVE.pack
