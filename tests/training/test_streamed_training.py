"""A training on picture files is, to the bit, that on an array of the same images; killed and resumed, it is the same too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from dpvision.data import download, held, weights
from dpvision.data.prepare import prepare
from dpvision.data.prepared import Prepared, data_part, load
from dpvision.data.streamed import Files
from dpvision.errors import Interrupted
from dpvision.files import file_digest
from dpvision.models import build
from dpvision.training import features, leaving
from dpvision.training.evaluate import evaluate
from dpvision.training.fit import Training

RECIPE = {
    "recipe.batch": 20,
    "recipe.epochs": 2,
    "recipe.augmentation": {"pad": 0, "flip": 0.5, "views": 2, "include_original": False, "resize": 1.25},
    "recipe.averaging": {"decay": 0.8},
}
TEST = 40


@pytest.fixture(scope="module")
def spec(run_spec) -> dict[str, Any]:
    return {**data_part(run_spec()), "name": "digits_files", "streamed": True}


@pytest.fixture(scope="module")
def folder(spec, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("streamed")
    source = {"kind": "python", "package": "sklearn.datasets.data", "path": "digits.csv.gz"}
    dataset = {"title": "Digits", "licence": "CC BY 4.0", "sources": [source], "files": spec["files"], "streamed": True}
    download.fetch("digits_files", dataset, None, folder / "raw")
    prepare(spec, folder / "raw", folder / "prepared", 2)
    return folder / "prepared"


@pytest.fixture(scope="module")
def streamed(folder, spec) -> Prepared:
    """Return the data with few test pictures: what is evaluated is not what is looked at here."""
    whole = load(folder, spec)
    test = Files(whole.test_images.root, whole.test_images.index[:TEST], whole.test_images.image)
    return Prepared(whole.train_images, whole.train_labels, test, whole.test_labels[:TEST], whole.class_names, whole.digest)


@pytest.fixture(scope="module")
def mapped(streamed) -> Prepared:
    images = [next(files.batches([np.arange(len(files))], 0, 2)) for files in (streamed.train_images, streamed.test_images)]
    labels = streamed.train_labels, streamed.test_labels
    return Prepared(images[0], labels[0], images[1], labels[1], streamed.class_names, digest="mapped")


def start(make: Callable[..., Training], changes: dict[str, Any], data: Prepared) -> Training:
    """Return a training of six steps, in two epochs."""
    made = make({"recipe.batch": 20, "recipe.epochs": 1, **changes}, data, 8)
    made.ends, made.planned, made.validation = [3, 6], 6, made.test
    return made


def assert_same(one: Training, other: Training) -> None:
    for ours, theirs in zip(one.network.state_dict().values(), other.network.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)
    assert [{**row, "seconds": 0} for row in one.history] == [{**row, "seconds": 0} for row in other.history]


@pytest.mark.parametrize("augmentation", [None, {"pad": 1, "flip": 0.5, "views": 2, "include_original": True}])
def test_it_samples_and_trains_as_on_mapped_images(training, streamed, mapped, augmentation):
    ours, theirs = (start(training, {"recipe.augmentation": augmentation}, data) for data in (streamed, mapped))
    samples: dict[int, list[Any]] = {0: [], 1: []}
    for number, run in enumerate((ours, theirs)):
        draw = run.step.sampler.sample
        run.step.sampler.sample = lambda draw=draw, number=number: samples[number].append(draw()) or samples[number][-1]
        run.run()
    assert len(samples[0]) == 6
    assert all(torch.equal(one, other) for one, other in zip(samples[0], samples[1], strict=True))
    assert max(sample.max() for sample in samples[0]) > 900  # of all 1,000, by one coin each
    assert_same(ours, theirs)


def test_views_are_crops_of_larger_images_and_evaluation_sees_the_images(training, streamed):
    run = start(training, RECIPE, streamed)
    sizes = set()
    make = run.views.make

    def seen(images: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        made = make(images, drawn)
        sizes.add((images.shape[1:], made.shape[2:]))
        return made

    run.views.make = seen
    run.step()
    run.step.decide()
    assert sizes == {((1, 10, 10), (1, 8, 8))}
    assert run.train.batch(slice(0, 3))[0].shape == (3, 1, 8, 8)


class Killed(Exception):
    pass


def test_killed_and_resumed_it_has_the_same_bits(training, streamed, monkeypatch):
    whole, begun, resumed = (start(training, RECIPE, streamed) for _ in range(3))
    whole.run()
    kept: dict[str, Any] = {}
    decode, decoded = Files._decode, []

    def keep(run: Training) -> None:
        if run.made == 4:
            kept.update(run.state())
            monkeypatch.setattr(Files, "_decode", fail)

    def fail(self: Files, number: int, into: np.ndarray) -> None:
        decoded.append(number)
        if len(decoded) == 11:
            raise Killed  # in the midst of a step, in a thread
        decode(self, number, into)

    with pytest.raises(Killed):
        begun.run(keep)
    monkeypatch.setattr(Files, "_decode", decode)
    resumed.restore(kept)
    assert resumed.made == 4
    resumed.run()
    assert_same(whole, resumed)


def test_asked_to_leave_in_the_midst_of_a_step_it_makes_the_same_step_later(training, streamed, monkeypatch):
    whole, left = (start(training, RECIPE, streamed) for _ in range(2))
    whole.run()
    decode, decoded = Files._decode, []

    def count(self: Files, number: int, into: np.ndarray) -> None:
        decoded.append(number)
        if len(decoded) == 30:
            leaving._received.append(15)
        decode(self, number, into)

    monkeypatch.setattr(Files, "_decode", count)
    with pytest.raises(Interrupted):
        left.run()
    leaving._received.clear()
    left.run()
    assert_same(whole, left)


def test_evaluation_is_the_same(training, streamed, mapped):
    run = start(training, {}, streamed)
    theirs = start(training, {}, mapped)
    assert evaluate(run.network, run.test, 7) == evaluate(theirs.network, theirs.test, 7)


# --- features ---


@pytest.fixture(scope="module")
def of_features(spec, run_spec, tmp_path_factory) -> tuple[dict[str, Any], Path]:
    """Return a spec of features of the files, and the folder of the weights."""
    model, folder = run_spec()["model"], tmp_path_factory.mktemp("weights")
    torch.manual_seed(0)
    save_file(build(model, 10, 1).state_dict(), folder / "own.safetensors")
    of = {"name": "own-0", "sha256": file_digest(folder / "own.safetensors"), "model": model, "classes": 10}
    entry = {"title": "Ours", "licence": "none", "sources": [], "mean": [0.3], "std": [0.4]}
    weights.obtain({"kind": "weights", **of}, entry, folder / "own.safetensors", folder)
    how = {"shape": [1, 8, 8], "resize": "bilinear", "mean": [0.3], "std": [0.4]}
    made = {"kind": "features", "name": "seen", "of": "digits_files-0", "weights": of, "preprocessing": how, "shape": [64]}
    made |= {"layer": "the head's input", "scale": "norm", "precision": "float32", "kept": "float16"}
    return {key: spec[key] for key in ("classes", "train", "test")} | made, folder


@pytest.fixture(scope="module")
def computed(of_features, spec, folder, tmp_path_factory) -> Path:
    made, weights_folder = of_features
    place = tmp_path_factory.mktemp("features")
    features.compute(made, spec, folder, weights_folder, place)
    return place


def test_features_of_files_are_those_of_their_images_and_resume(
    of_features, spec, folder, computed, mapped, tmp_path, monkeypatch
):
    made, weights_folder = of_features
    found = load(computed, made)
    network = features.Network(made, weights_folder)
    of_mapped = np.concatenate([network(mapped.train_images[i : i + 256]) for i in range(0, 1437, 256)])
    assert np.array_equal(found.train_images, of_mapped)
    decode, decoded = Files._decode, []

    def until_killed(self: Files, number: int, into: np.ndarray) -> None:
        decoded.append(number)
        if len(decoded) == 900:
            raise Killed
        decode(self, number, into)

    monkeypatch.setattr(Files, "_decode", until_killed)
    with pytest.raises(Killed):
        features.compute(made, spec, folder, weights_folder, tmp_path)
    before = len(decoded)
    features.compute(made, spec, folder, weights_folder, tmp_path)
    assert len(decoded) - before <= 1437 + 360 - 512  # of what was kept nothing is decoded again
    assert file_digest(tmp_path / "train_images.npy") == file_digest(computed / "train_images.npy")


def test_a_head_on_features_that_are_not_held_reads_pieces_and_has_the_same_bits(of_features, computed, run_spec, monkeypatch):
    made, _ = of_features
    spec = run_spec(
        {"recipe.batch": 1200, "recipe.clip": 0.3, "model": {"family": "linear", "slug": "linear", "constant": 0.1}}
    )
    spec["recipe"] = {key: value for key, value in spec["recipe"].items() if key != "epochs"} | {"steps": 4}
    spec["data"] = {**made, "validation": 100, "split_seed": 0, "mean": [], "std": [], "prepared": "seen-0"}
    data = load(computed, data_part(spec))
    assert isinstance(data.train_images, np.memmap)
    weights_of = []
    for most in (held.MOST, 0):
        monkeypatch.setattr(held, "MOST", most)
        run = Training(spec, data, 100, torch.device("cpu"))
        assert (run.train.source is None) == bool(most)
        largest, batch = [], run.step.gradients
        run.step.gradients = _Seen(batch, largest)
        run.run()
        assert max(largest) <= 100  # a batch of 1,200, in pieces
        weights_of.append(run.network.state_dict())
    assert weights_of[0]["classifier.weight"].any()
    assert all(torch.equal(weights_of[0][name], weights_of[1][name]) for name in weights_of[0])


class _Seen:
    """A way of clipping that notes the size of each physical batch."""

    def __init__(self, way: Any, sizes: list[int]) -> None:
        self.way, self.sizes, self.sensitivity = way, sizes, way.sensitivity

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> Any:
        self.sizes.append(len(images))
        return self.way(images, labels)
