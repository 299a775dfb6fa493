"""A checkpoint of De et al.'s code becomes our network: one that computes the same, from every parameter that it has."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from haiku_like import dumps

from dpvision.data import weights
from dpvision.errors import UserError
from dpvision.files import file_digest
from dpvision.models import build
from dpvision.models.wrn.options import Options

DEPTH, WIDTH, GROUPS, CLASSES = 16, 1, 4, 7  # two blocks a stage
OPTIONS = Options(family="wrn", label="", depth=DEPTH, width=WIDTH, groups=GROUPS)
MODEL = {**OPTIONS.as_spec({"label"}), "slug": "wrn"}
ENTRY = {"title": "Theirs", "licence": "none", "sources": [], "mean": [0.5] * 3, "std": [0.5] * 3}

Params = dict[str, dict[str, np.ndarray]]


def params() -> Params:
    """Return made-up parameters with the names and shapes that De et al.'s code gives them."""
    random = np.random.default_rng(1)

    def drawn(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    def conv(size: int, inputs: int, outputs: int) -> dict[str, np.ndarray]:
        return {"gain": drawn(outputs), "w": drawn(size, size, inputs, outputs), "bias": drawn(outputs)}

    def norm(channels: int) -> dict[str, np.ndarray]:
        return {"scale": drawn(channels), "offset": drawn(channels)}

    made = {"First_conv": conv(3, 3, 16)}
    inputs = 16
    for stage in (1, 2, 3):
        outputs = 16 * WIDTH * 2 ** (stage - 1)
        made |= {f"Block_{stage}_skip_norm": norm(inputs), f"Block_{stage}_skip_conv": conv(1, inputs, outputs)}
        for block in range((DEPTH - 4) // 6):
            for unit in range(2):
                made[f"Block_{stage}_norm_{block}_{unit}"] = norm(inputs)
                made[f"Block_{stage}Conv_{block}_{unit}"] = conv(3, inputs, outputs)
                inputs = outputs
    made |= {"Final_norm": norm(inputs), "Softmax": {"w": drawn(inputs, CLASSES), "b": drawn(CLASSES)}}
    return {f"wide_res_net/{name}": layer for name, layer in made.items()}


def theirs(params: Params, images: torch.Tensor) -> torch.Tensor:
    """Return what their network makes of images: ReLU, norm and standardised convolution, padded as JAX does."""
    layers = {name.partition("/")[2]: {k: torch.from_numpy(v) for k, v in of.items()} for name, of in params.items()}

    def conv(name: str, x: torch.Tensor, stride: int) -> torch.Tensor:
        kernel = layers[name]["w"]  # height, width, inputs, outputs
        fan_in = kernel[..., 0].numel()
        mean, variance = kernel.mean((0, 1, 2)), kernel.var((0, 1, 2), unbiased=False)
        kernel = (kernel - mean) * layers[name]["gain"] * torch.rsqrt(torch.clamp(variance * fan_in, min=1e-4))
        size = kernel.shape[0]
        total = max(size - stride, 0)
        x = F.pad(x, (total // 2, total - total // 2, total // 2, total - total // 2))
        return F.conv2d(x, kernel.permute(3, 2, 0, 1), layers[name]["bias"], stride)

    def unit(norm: str, name: str, x: torch.Tensor, stride: int) -> torch.Tensor:
        normed = F.group_norm(F.relu(x), GROUPS, layers[norm]["scale"], layers[norm]["offset"])
        return conv(name, normed, stride)

    x = conv("First_conv", images, 1)
    for stage in (1, 2, 3):
        for block in range((DEPTH - 4) // 6):
            stride = 2 if stage > 1 and block == 0 else 1
            skip = unit(f"Block_{stage}_skip_norm", f"Block_{stage}_skip_conv", x, stride) if block == 0 else x
            for j in range(2):
                x = unit(f"Block_{stage}_norm_{block}_{j}", f"Block_{stage}Conv_{block}_{j}", x, stride if j == 0 else 1)
            x = x + skip
    x = F.group_norm(F.relu(x), GROUPS, layers["Final_norm"]["scale"], layers["Final_norm"]["offset"])
    return x.mean((2, 3)) @ layers["Softmax"]["w"] + layers["Softmax"]["b"]


def obtained(folder: Path, content: bytes, **changes: Any) -> dict[str, torch.Tensor]:
    file = folder / "WRN.dill"
    file.write_bytes(content)
    spec = {"kind": "weights", "name": "wrn", "sha256": file_digest(file), "model": MODEL, "classes": CLASSES} | changes
    weights.obtain(spec, ENTRY, file, folder / "kept")
    return weights.load(folder / "kept", spec)


def test_our_network_computes_what_theirs_does(tmp_path):
    tensors = obtained(tmp_path, dumps(params(), step=3))
    network = build(MODEL, CLASSES, 3)
    network.load_state_dict(tensors)
    images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(network(images), theirs(params(), images), rtol=1e-4, atol=1e-4)


def test_a_network_for_other_classes_takes_all_but_the_head(tmp_path):
    tensors = obtained(tmp_path, dumps(params()))
    network = build(MODEL, 3, 3)
    weights.begin_with(network, tensors, "classifier", "wrn")
    state = network.state_dict()
    assert all(torch.equal(state[key], tensors[key]) for key in state if not key.startswith("classifier."))
    assert state["classifier.weight"].shape == (3, 64)


def test_a_parameter_missing_surplus_or_of_another_shape_is_named(tmp_path):
    changed = params()
    changed["wide_res_net/Block_4Conv_0_0"] = changed.pop("wide_res_net/Block_2Conv_1_0")
    changed["wide_res_net/First_conv"]["w"] = np.zeros((3, 3, 1, 16), np.float32)
    with pytest.raises(UserError) as raised:
        obtained(tmp_path, dumps(changed))
    for text in (
        "missing: Block_2Conv_1_0/w",
        "surplus: Block_4Conv_0_0/gain",
        "of another shape: First_conv/w: [3, 3, 1, 16], the network has [3, 3, 3, 16]",
    ):
        assert text in str(raised.value)


def test_statistics_of_a_batch_normalisation_are_surplus(tmp_path):
    content = pickle.dumps({"params": params(), "network_state": {"norm/mean_ema": {"average": np.zeros(3)}}})
    with pytest.raises(UserError, match="surplus: network_state/norm/mean_ema/average"):
        obtained(tmp_path, content)


def test_a_pickle_that_would_run_code_is_refused_by_name_and_does_not(tmp_path):
    class Harm:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "harm"),)

    with pytest.raises(UserError, match=r"it names \w+\.mkdir, which is no array or mapping, and would run code"):
        obtained(tmp_path, pickle.dumps({"params": params(), "opt_state": Harm()}))
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("checkpoint", "says"),
    [
        ({"params": {1: {"w": np.ones(2)}}}, "a name in params is of the type int, and must be text"),
        ({"params": {"a": {2: np.ones(2)}}}, "a name in a is of the type int, and must be text"),
        ({"params": {"a": {"w": "1.5"}}}, "a/w is of the type str, and must be an array"),
        ({"params": {"a": {"w": None}}}, "a/w is of the type NoneType, and must be an array"),
        ({"params": {"a": {"w": [1, [2]]}}}, "a/w is of the type list, and must be an array"),
        ({"params": {}, "network_state": [1, 2]}, "network_state is of the type list"),
        ({"params": {}, "network_state": np.zeros(2)}, "network_state is of the type ndarray"),
        ({"params": {"a": {"b": np.ones(2), "bias": np.zeros(2)}}}, "two arrays are both a/bias"),
        ({"params": {"a": {"w": np.ones(2)}, "wide_res_net/a": {"w": np.ones(2)}}}, "two arrays are both a/w"),
    ],
    ids=str,
)
def test_a_damaged_checkpoint_is_an_error_that_names_the_file_and_the_place(tmp_path, checkpoint, says):
    with pytest.raises(UserError, match=rf"WRN\.dill: {says}.*; expected is a pickle of arrays in mappings alone"):
        obtained(tmp_path, pickle.dumps(checkpoint))


def test_what_is_no_checkpoint_is_said(tmp_path):
    with pytest.raises(UserError, match="expected is a mapping that has params"):
        obtained(tmp_path, pickle.dumps([1]))
    with pytest.raises(UserError, match=r"WRN\.dill: it is damaged"):
        obtained(tmp_path, b"")
    with pytest.raises(UserError, match="can be of the family wrn, not resnet9"):
        model = {
            "family": "resnet9",
            "slug": "r",
            "scale_norm": False,
            "norm": "group",
            "groups": 4,
            "order": "norm-activation",
        }
        obtained(tmp_path, dumps(params()), model=model | {"width": 0.0625})
