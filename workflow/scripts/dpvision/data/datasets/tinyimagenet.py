"""Tiny ImageNet: 200 classes of ImageNet, 100,000 + 10,000 images, 64 x 64; its labelled val split is the test set.

Greyscale images become RGB. Classes are in the order of their WordNet numbers (wnids.txt has the same ones in another),
examples in that of their paths, read as text: val_10 comes before val_2.
"""

import hashlib

from PIL import Image

from dpvision.data import SourceFault
from dpvision.data.pictures import Archive, Listing, in_words

UNDERSTOOD = "tiny-imagenet-200.zip, or the folder tiny-imagenet-200 that is unpacked from it,"

WNIDS, VALIDATION, WORDS = "wnids.txt", "val/val_annotations.txt", "words.txt"
MD5 = {WNIDS: "6c81990e2d7ae3bd3c88dceb97b46342", VALIDATION: "e9a8a28f9975223592f4c6da9fd2369b"}
TRAIN_IMAGES = 500  # for each class
SIZE = 64


def listing(paths: list[str], texts: dict[str, bytes]) -> Listing:
    for name, md5 in MD5.items():
        found = hashlib.md5(texts[name], usedforsecurity=False).hexdigest()
        if found != md5:
            raise SourceFault(f"{name}: expected MD5 {md5}, found {found}")
    labels = {wnid: label for label, wnid in enumerate(sorted(texts[WNIDS].decode().split()))}
    images = {f"train/{wnid}/images/{wnid}_{i}.JPEG": label for wnid, label in labels.items() for i in range(TRAIN_IMAGES)}
    rows = [line.split("\t") for line in texts[VALIDATION].decode().splitlines()]
    images |= {f"val/images/{name}": labels[wnid] for name, wnid, *_ in rows}
    labelled = {path for path in paths if not path.startswith("test/")}
    if missing := images.keys() - labelled:
        raise SourceFault(f"these are missing: {in_words(missing)}")
    if strange := labelled - images.keys():
        raise SourceFault(f"these do not belong to it: {in_words(strange)}")
    train, test = ({path: images[path] for path in sorted(images) if path.startswith(split)} for split in ("train", "val"))
    return Listing(train, test, _names(list(labels), texts[WORDS].decode()))


def _names(wnids: list[str], words: str) -> list[str]:
    names: dict[str, str] = dict(line.split("\t", 1) for line in words.splitlines())
    if unknown := [wnid for wnid in wnids if wnid not in names]:
        raise SourceFault(f"{WORDS} has no name for {in_words(unknown)}")
    return [names[wnid] for wnid in wnids]


def in_colour(picture: Image.Image) -> Image.Image:
    if picture.size != (SIZE, SIZE):
        raise SourceFault(f"expected {SIZE} x {SIZE} pixels, found {picture.width} x {picture.height}")
    return picture.convert("RGB")


ARCHIVE = Archive("tiny-imagenet-200.zip", (WNIDS, VALIDATION, WORDS), listing, in_colour, (3, SIZE, SIZE))
read, pack = ARCHIVE.read, ARCHIVE.pack
