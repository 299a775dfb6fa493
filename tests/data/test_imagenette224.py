"""Imagenette of full size becomes what torchvision's Resize and CenterCrop make of its pictures."""

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from dpvision import plan
from dpvision.data import SourceFault
from dpvision.data.datasets import imagenette, imagenette224

SIZES = [(500, 375), (333, 500), (256, 256), (120, 90), (1001, 700)]  # width, height


def jpeg(seed: int, size: tuple[int, int], mode: str = "RGB") -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1] // 8 + 1, size[0] // 8 + 1, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).resize(size).convert(mode).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Make one picture of each class and split, in all sizes, some in grey, by path."""
    counts = {"train": [1] * 10, "val": [1] * 10}
    monkeypatch.setattr(imagenette, "COUNTS", counts)
    paths = [f"{split}/{wnid}/one.JPEG" for split in counts for wnid in imagenette.CLASSES]
    return {path: jpeg(i, SIZES[i % len(SIZES)], "L" if i % 3 == 0 else "RGB") for i, path in enumerate(paths)}


def packed(pictures: dict[str, bytes], folder: Path) -> None:
    with tarfile.open(folder / "imagenette2.tgz", "w:gz") as stream:
        for path, content in pictures.items():
            info = tarfile.TarInfo(f"imagenette2/{path}")
            info.size = len(content)
            stream.addfile(info, io.BytesIO(content))


def unpacked(pictures: dict[str, bytes], folder: Path) -> Path:
    for path, content in pictures.items():
        (folder / "imagenette2" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "imagenette2" / path).write_bytes(content)
    return folder


def test_pictures_are_resized_and_cropped_as_torchvision_does_it(pictures, tmp_path):
    from dpvision.vision import torchvision

    packed(pictures, tmp_path)
    contents = imagenette224.read(tmp_path)
    assert contents.shape == [3, 224, 224]
    assert contents.train_labels.tolist() == contents.test_labels.tolist() == list(range(10))
    contents.save("train_images", tmp_path / "train.npy")
    images = np.load(tmp_path / "train.npy", mmap_mode="r")
    theirs = torchvision.transforms.Compose([torchvision.transforms.Resize(256), torchvision.transforms.CenterCrop(224)])
    for image, (_, content) in zip(images, sorted(pictures.items())[:10], strict=True):
        expected = theirs(Image.open(io.BytesIO(content)).convert("RGB"))
        assert np.array_equal(image, np.asarray(expected).transpose(2, 0, 1))


def test_it_is_the_archive_that_torchvision_knows():
    from dpvision.vision import torchvision

    url, md5 = torchvision.datasets.Imagenette._ARCHIVES["full"]
    said = yaml.safe_load((plan.ROOT / "config/datasets.yaml").read_text())["imagenette224"]
    assert (said["sources"][0]["url"], said["sources"][0]["md5"]) == (url, md5)
    assert said["files"] == {imagenette224.ARCHIVE.name: md5}
    assert said["shape"] == list(imagenette224.ARCHIVE.shape)
    assert [said["train"], said["test"]] == [sum(counts) for counts in imagenette.COUNTS.values()]
    assert said["validation"] == 1893


def test_what_was_unpacked_is_packed_once_it_is_checked(pictures, tmp_path):
    assert imagenette224.pack(unpacked(pictures, tmp_path), tmp_path / "packed.zip")
    with zipfile.ZipFile(tmp_path / "packed.zip") as there:
        assert set(there.namelist()) == set(pictures)
    assert not imagenette224.pack(tmp_path / "elsewhere", tmp_path / "none.zip")


def test_a_smaller_version_is_refused(pictures, tmp_path):
    smaller = {path: jpeg(i, (427, 320)) for i, path in enumerate(pictures)}
    with pytest.raises(SourceFault, match="imagenette2-320 or imagenette2-160"):
        imagenette224.pack(unpacked(smaller, tmp_path), tmp_path / "packed.zip")
