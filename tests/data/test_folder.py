"""A folder of pictures becomes a data set, or an error that names what is wrong with it; `try` writes a paper for it."""

import io
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpvision import plan
from dpvision.data.datasets import folder as pictures
from dpvision.data.download import fetch
from dpvision.data.prepare import prepare
from dpvision.data.prepared import load
from dpvision.errors import UserError
from dpvision.files import read_json
from dpvision.plan.reading import read_yaml
from dpvision.trying import delta_for, try_folder

ROOT = Path(__file__).parents[2]


def picture(file: Path, seed: int, size: tuple[int, int] = (20, 12), mode: str = "RGB") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    Image.fromarray(pixels).convert(mode).save(file)


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Return a folder of 40 pictures of two classes, of several kinds and sizes."""
    for i in range(20):
        picture(tmp_path / "My Pets/cat" / f"{i:02}.png", i, (20 + i, 12))
        picture(tmp_path / "My Pets/dog" / f"{i:02}.PNG", 100 + i, (100, 140), "L" if i % 2 else "RGBA")
    return tmp_path / "My Pets"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "config", tmp_path / "project/config")
    return tmp_path / "project"


def tried(folder: Path, project: Path, **options: bool) -> str:
    return "\n".join(try_folder(folder, None, options.get("from_scratch", False), project))


def test_a_folder_becomes_a_data_set_by_its_entry(pets, project, tmp_path):
    tried(pets, project)
    made = plan.load({"papers": ["my_pets"], "scale": "laptop", "folders": {"my_pets": str(pets)}}, project)
    (spec,) = made.of("data").values()
    fetch("my_pets", made.sources["my_pets"], pets, tmp_path / "raw")
    prepare(spec, tmp_path / "raw", tmp_path / "prepared")
    data = load(tmp_path / "prepared", spec)
    assert data.train_images.shape == (32, 3, 96, 96)
    assert data.test_images.shape == (8, 3, 96, 96)
    assert data.class_names == ["cat", "dog"]
    assert np.bincount(np.concatenate([data.train_labels, data.test_labels])).tolist() == [20, 20]


def test_the_same_pictures_are_the_same_bytes_and_other_ones_are_refused(pets, project, tmp_path):
    packed = [io.BytesIO(), io.BytesIO()]
    pictures.pack_folder(pets, packed[0])
    shutil.copytree(pets, tmp_path / "copy")
    pictures.pack_folder(tmp_path / "copy", packed[1])
    assert packed[0].getvalue() == packed[1].getvalue()
    tried(pets, project)
    made = plan.load({"papers": ["my_pets"], "scale": "laptop"}, project)
    picture(pets / "cat/00.png", 999)
    with pytest.raises(UserError, match="expected MD5"):
        fetch("my_pets", made.sources["my_pets"], pets, tmp_path / "raw")


def test_a_split_of_ones_own_is_kept(tmp_path):
    for side, count in (("train", 6), ("test", 3)):
        for i in range(count):
            for label in ("a", "b"):
                picture(tmp_path / f"own/{side}/{label}/{i}.jpg", i + 10 * len(side))
    with open(tmp_path / "pictures.zip", "wb") as file:
        assert pictures.pack_folder(tmp_path / "own", file).is_split
    data = pictures.Folder(tmp_path / "pictures.zip", [3, 8, 8], 6)
    assert (data.train_labels.tolist(), data.test_labels.tolist()) == ([0] * 6 + [1] * 6, [0] * 3 + [1] * 3)


def test_the_same_picture_twice_is_named_within_and_across_the_splits(tmp_path):
    for path, seed in {"train/a/1": 1, "train/b/2": 2, "train/a/3": 1, "test/a/4": 2, "test/b/5": 3, "test/b/6": 3}.items():
        picture(tmp_path / f"own/{path}.png", seed)
    with open(tmp_path / "pictures.zip", "wb") as file:
        pictures.pack_folder(tmp_path / "own", file)
    assert pictures.Folder(tmp_path / "pictures.zip", [3, 8, 8], 3).duplicates == {
        "train": [["train/a/1.png", "train/a/3.png"]],
        "test": [["test/b/5.png", "test/b/6.png"]],
        "across": [["test/a/4.png", "train/b/2.png"]],
    }


def test_the_shorter_side_is_fitted_and_the_middle_kept():
    wide = Image.new("RGB", (40, 20), "red")
    wide.paste("blue", (10, 0, 30, 20))
    fitted = pictures._fitted(wide, [3, 10, 10])
    assert fitted.shape == (3, 10, 10)
    assert (fitted[2, :, 1:-1] > 200).all()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([], "there is no picture in it"),
        (["a/1.png", "a/2.png"], "there is one class, a"),
        (["1.png", "a/1.png", "b/1.png"], "lie in no folder of a class, or below one: 1.png"),
        (["a/1.png", "b/1.png", "b/deeper/2.png"], "lie in no folder of a class, or below one: b/deeper/2.png"),
        (["train/a/1.png", "train/b/1.png", "test/c/1.png"], "classes that test/ has and train/ has not: c"),
    ],
)
def test_a_folder_that_is_no_data_set_says_why(tmp_path, files, says):
    (tmp_path / "own").mkdir()
    for file in files:
        picture(tmp_path / "own" / file, 1)
    with pytest.raises(UserError, match=says):
        pictures.pack_folder(tmp_path / "own", io.BytesIO())


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n broken"])
def test_what_cannot_be_read_is_named(pets, content):
    (pets / "cat/broken.png").write_bytes(content)
    with pytest.raises(UserError, match="cannot be read as pictures: cat/broken.png"):
        pictures.pack_folder(pets, io.BytesIO())


def test_a_picture_that_was_cut_off_is_named(pets):
    whole = (pets / "dog/00.PNG").read_bytes()
    (pets / "dog/00.PNG").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"cannot be read as pictures: dog/00\.PNG"):
        pictures.pack_folder(pets, io.BytesIO())


def test_what_is_no_picture_and_classes_without_one_are_passed_over_and_said(pets, project):
    (pets / "cat/notes.txt").write_text("a cat")
    (pets / "bird").mkdir()
    found = tried(pets, project)
    assert "no pictures, passed over: cat/notes.txt" in found
    assert "without a picture, left out: bird" in found


def test_try_says_what_there_is_what_it_takes_and_the_command(pets, project):
    shutil.copy(pets / "cat/00.png", pets / "cat/again.png")
    found = tried(pets, project)
    assert "  cat: " in found
    assert "cat/00.png = cat/again.png" in found
    assert re.search(r"It takes 5 searches and 15 trainings: (about \d+|less than a) minutes? on \d+ cores?, guessed", found)
    assert "snakemake my_pets --cores all --config scale=laptop" in found
    paper = read_yaml(project, "config/papers/my_pets/paper.yaml").content
    assert paper["cells"]["head"]["epsilons"] == [1.0, 2.0, 4.0, 8.0, None]
    assert paper["cells"]["head"]["delta"] == 0.01
    with pytest.raises(UserError, match="has it already; say another name with --name"):
        tried(pets, project)


def test_a_network_from_scratch_stands_beside_if_asked(pets, project):
    assert "30 trainings: " in tried(pets, project, from_scratch=True)
    assert "&id" not in (project / "config/papers/my_pets/paper.yaml").read_text(encoding="utf-8")  # for people to change


@pytest.mark.parametrize(
    ("count", "delta"), [(33, 1e-2), (99, 1e-2), (100, 1e-3), (999, 1e-3), (50_000, 1e-5), (1_000_000, 1e-7)]
)
def test_delta_is_the_largest_power_of_ten_below_one_in_n(count, delta):
    assert delta_for(count) == delta < 1 / count


def test_too_few_pictures_are_refused_and_leave_nothing_in_the_configuration(tmp_path, project):
    for label in ("a", "b"):
        picture(tmp_path / f"few/{label}/1.png", ord(label))
    before = (project / "config/datasets.yaml").read_text()
    with pytest.raises(UserError, match="2 pictures are too few"):
        tried(tmp_path / "few", project)
    assert (project / "config/datasets.yaml").read_text() == before
    assert not (project / "config/papers/few").exists()


def test_a_prepared_folder_says_which_pictures_are_the_same(pets, project, tmp_path):
    shutil.copy(pets / "cat/00.png", pets / "cat/again.png")
    tried(pets, project)
    made = plan.load({"papers": ["my_pets"], "scale": "laptop"}, project)
    (spec,) = made.of("data").values()
    fetch("my_pets", made.sources["my_pets"], pets, tmp_path / "raw")
    prepare(spec, tmp_path / "raw", tmp_path / "prepared")
    groups = read_json(tmp_path / "prepared/dataset.json")["duplicates"]
    assert [["cat/00.png", "cat/again.png"]] in groups.values()
