"""Features are what the network makes of each image by itself; killed and begun again, they are the same to the bit."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from dpvision.data import weights
from dpvision.data.prepared import data_part, load
from dpvision.errors import UserError
from dpvision.files import digest, file_digest
from dpvision.models import build
from dpvision.training import features
from dpvision.training.fit import Training

ENTRY = {"title": "Ours", "licence": "none", "sources": [], "mean": [0.3], "std": [0.4]}


@pytest.fixture(scope="module")
def spec(tmp_path_factory, run_spec) -> dict[str, Any]:
    """Return a spec of features of the digits by a network of 64 features, whose weights lie in its `folder`."""
    model, folder = run_spec()["model"], tmp_path_factory.mktemp("weights")
    torch.manual_seed(0)
    save_file(build(model, 10, 1).state_dict(), folder / "own.safetensors")
    of = {"name": "own-0", "sha256": file_digest(folder / "own.safetensors"), "model": model, "classes": 10}
    weights.obtain({"kind": "weights", **of}, ENTRY, folder / "own.safetensors", folder)
    digits = data_part(run_spec())
    about = {key: digits[key] for key in ("classes", "train", "test")}
    how = {"shape": [1, 16, 16], "resize": "bilinear", "mean": [0.3], "std": [0.4]}
    made = {"kind": "features", "name": "seen", "of": "digits-0", "weights": of, "preprocessing": how}
    made |= {"layer": "the head's input", "scale": "norm", "precision": "float32", "kept": "float16", "shape": [64]}
    return {**about, **made, "folder": folder}


@pytest.fixture(scope="module")
def computed(spec, run_spec, digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    made = {key: value for key, value in spec.items() if key != "folder"}
    features.compute(made, data_part(run_spec()), digits, spec["folder"], folder)
    return made, folder


def of_whole(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key != "folder"}


def test_an_examples_features_are_those_of_its_image_alone_with_length_1(spec, computed, prepared):
    made, folder = computed
    found = load(folder, made)
    assert found.train_images.shape == (1437, 64)
    assert found.train_images.dtype == np.float16
    alone = features.Network(made, spec["folder"])
    for i in (0, 700, 1436):
        np.testing.assert_allclose(alone(prepared.train_images[i : i + 1])[0], found.train_images[i], atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(found.test_images.astype(float), axis=1), 1, atol=2e-3)
    assert np.array_equal(found.train_labels, prepared.train_labels)
    assert found.class_names == prepared.class_names


def test_features_are_the_input_of_the_head_after_the_preprocessing_of_the_weights(spec, prepared):
    plain = features.Network(of_whole(spec) | {"scale": "none"}, spec["folder"])
    network = build(spec["weights"]["model"], 10, 1)
    network.load_state_dict(weights.load(spec["folder"], spec["weights"]))
    seen: list[torch.Tensor] = []
    network.eval().get_submodule("classifier").register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0]))
    images = torch.from_numpy(np.array(prepared.test_images[:5])).float() / 255
    with torch.no_grad():
        network((torch.nn.functional.interpolate(images, (16, 16), mode="bilinear") - 0.3) / 0.4)
    torch.testing.assert_close(torch.from_numpy(plain(prepared.test_images[:5])).float(), seen[0], atol=2e-3, rtol=2e-3)


def killed_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Kill what computes features at its fourth call of the network; return how many images each call has had."""
    calls: list[int] = []
    whole = features.Network.__call__

    def until_killed(self: features.Network, images: np.ndarray) -> np.ndarray:
        calls.append(len(images))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return whole(self, images)

    monkeypatch.setattr(features.Network, "__call__", until_killed)
    return calls


def test_killed_and_begun_again_they_are_the_same_to_the_bit(spec, computed, run_spec, digits, tmp_path, monkeypatch):
    made, folder = computed
    calls = killed_once(monkeypatch)
    arguments = (made, data_part(run_spec()), digits, spec["folder"], tmp_path)
    with pytest.raises(KeyboardInterrupt):
        features.compute(*arguments)
    assert not (tmp_path / "dataset.json").exists()
    features.compute(*arguments)
    assert sum(calls) == 1437 + 360 + calls[3]  # what was kept was not computed again
    assert file_digest(tmp_path / "train_images.npy") == file_digest(folder / "train_images.npy")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(file.name for file in folder.iterdir())


def test_features_begun_by_other_weights_of_the_same_name_are_not_gone_on_with(spec, run_spec, digits, tmp_path, monkeypatch):
    run = {"run": "before-0", "take": "last", **{key: spec["weights"][key] for key in ("model", "classes")}}
    arguments = (of_whole(spec) | {"weights": run}, data_part(run_spec()), digits, tmp_path / "run", tmp_path / "seen")
    (tmp_path / "run").mkdir()

    def trained(seed: int) -> None:  # a run that was trained again keeps its name
        torch.manual_seed(seed)
        save_file(build(run["model"], 10, 1).state_dict(), tmp_path / "run/weights.safetensors")
        sha256 = {"weights_sha256": file_digest(tmp_path / "run/weights.safetensors")}
        (tmp_path / "run/provenance.json").write_text(json.dumps(sha256))

    trained(1)
    killed_once(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        features.compute(*arguments)
    trained(2)
    features.compute(*arguments)
    found, images = (np.load(folder / "train_images.npy") for folder in (tmp_path / "seen", digits))
    np.testing.assert_array_equal(found[:256], features.Network(arguments[0], tmp_path / "run")(images[:256]))
    said = json.loads((tmp_path / "seen/dataset.json").read_text())
    assert said["weights"] == file_digest(tmp_path / "run/weights.safetensors")


def test_features_begun_by_another_spec_are_not_gone_on_with(spec, computed, run_spec, digits, tmp_path, monkeypatch):
    made, _ = computed
    other, arguments = made | {"scale": "none"}, (data_part(run_spec()), digits, spec["folder"], tmp_path)
    monkeypatch.setattr(features, "_write", lambda *words: (_ for _ in ()).throw(KeyboardInterrupt))
    features.write_json(tmp_path / ".train.json", {"spec": digest(made), "images": "x", "done": 256})
    np.save(tmp_path / ".train.npy", np.zeros((1437, 64), np.float16))
    monkeypatch.undo()
    features.compute(other, *arguments)
    assert np.load(tmp_path / "train_images.npy")[:256].any()


@pytest.mark.parametrize(
    ("change", "says"),
    [({"shape": [32]}, r"says shape: \[32\], the layer gives \[64\]"), ({"layer": "body"}, "has no layer body; there are: ")],
)
def test_a_layer_that_is_not_there_and_a_wrong_shape_are_named(spec, prepared, change, says):
    with pytest.raises(UserError, match=says):
        features.Network(of_whole(spec) | change, spec["folder"])(prepared.test_images[:1])


def test_a_head_on_features_trains_privately_with_every_example_in_every_step(computed, run_spec):
    made, folder = computed
    recipe = {
        "recipe.optimizer": {"name": "sgd", "learning_rate": 20.0, "momentum": 0.9},
        "recipe.schedule": {"name": "constant"},
        "recipe.batch": 1000,
        "recipe.steps": 25,
        "recipe.evaluate_every": 10,
        "recipe.clip": 0.3,
        "model": {"family": "linear", "slug": "linear", "constant": 0.1},
    }
    spec = run_spec(recipe)
    spec["recipe"] = {key: value for key, value in spec["recipe"].items() if key != "epochs"}
    kept = {key: spec["data"][key] for key in ("validation", "split_seed")}
    spec["data"] = {**made, **kept, "mean": [], "std": [], "prepared": "seen-0"}
    done = Training(spec, load(folder, data_part(spec)), 400, torch.device("cpu"))
    assert done.q == 1
    assert not done.network.classifier.weight.any()
    done.run()
    assert [row["step"] for row in done.history] == [10, 20, 25]
    assert done.epsilon <= 7.42
    assert done.history[-1]["test_top1"] > 0.5  # by chance 0.1
