"""Imagenette, version 2 of 2019, full size, as Remerscheid et al. take it: its val split is the test set.

Greyscale images become RGB; the shorter side becomes 256 pixels, and the middle 224 x 224 are kept, as torchvision's Resize and
CenterCrop do it to a picture. Classes, counts and the order of examples are those of imagenette.py.
"""

from pathlib import Path

from PIL import Image

from dpvision.data import SourceFault
from dpvision.data.datasets.imagenette import CLASSES, LARGER, listing
from dpvision.data.pictures import SUFFIX, Archive

UNDERSTOOD = "imagenette2.tgz, or the folder imagenette2 that is unpacked from it,"
SHORTER, SIZE = 256, 224


def cropped(picture: Image.Image) -> Image.Image:
    """Return the middle of a picture whose shorter side is made 256 pixels, the longer one in proportion, cut off."""
    shorter = min(picture.size)
    width, height = (SHORTER * side // shorter for side in picture.size)
    left, top = round((width - SIZE) / 2), round((height - SIZE) / 2)
    resized = picture.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + SIZE, top + SIZE))


ARCHIVE = Archive("imagenette2.tgz", (), listing, cropped, (3, SIZE, SIZE))
read = ARCHIVE.read


def pack(folder: Path, file: Path) -> bool:
    """Refuse a smaller version, in which no shorter side is above 320 pixels, and pack the full-size one."""
    tree = folder / ARCHIVE.folder if (folder / ARCHIVE.folder).is_dir() else folder
    pictures = [path for wnid in CLASSES for path in (tree / "val" / wnid).glob(f"[!.]*{SUFFIX}")]
    if pictures and not any(_shorter_side(path) > LARGER for path in pictures):
        raise SourceFault(f"{tree}: no picture is larger than {LARGER} pixels: this is imagenette2-320 or imagenette2-160")
    return ARCHIVE.pack(folder, file)


def _shorter_side(path: Path) -> int:
    try:
        with Image.open(path) as picture:
            return min(picture.size)
    except OSError as fault:
        raise SourceFault(f"{path}: {fault}") from fault
