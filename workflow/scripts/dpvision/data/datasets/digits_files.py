"""The digits as picture files, a folder for each class: for demonstrations of data that is decoded while it is used."""

from pathlib import Path

from PIL import Image

from dpvision.data.datasets import Arrays
from dpvision.data.datasets.digits import read
from dpvision.data.pictures import Listing
from dpvision.data.streamed import PICTURES
from dpvision.data.tree import in_two_trees


def listed(raw: Path) -> Listing:
    """Write the files, and list them as ImageNet's are."""
    return written(read(raw), raw)


def written(whole: Arrays, raw: Path) -> Listing:
    """Write images as files in folders of their classes; list them."""
    root = raw / PICTURES
    splits = {"train": (whole.train_images, whole.train_labels), "val": (whole.test_images, whole.test_labels)}
    for split, (images, labels) in splits.items():
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            file = root / split / whole.class_names[label] / f"{number:04}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image[0]).save(file)
    return in_two_trees(root, "train", "val")
