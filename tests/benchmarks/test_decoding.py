"""The benchmark of decoding says what it measured. No time is asked for."""

import pytest
import torch

import decoding as benchmark
from dpvision.models.resnet9.options import Options as ResNet9


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(benchmark.MODELS, "resnet50", ResNet9(family="resnet9", label="tiny", width=1 / 16, groups=4))
    for name, value in {"PICTURES": 5, "SIDE": 32, "MARGIN": 6, "CLASSES": 3, "BATCH": 2, "ROUNDS": 1}.items():
        monkeypatch.setattr(benchmark, name, value)
    with torch.random.fork_rng():
        yield


def test_pictures_are_those_of_a_data_set(small, tmp_path):
    files = benchmark.pictures(tmp_path)
    (images,) = files.batches([torch.arange(5).numpy()], benchmark.MARGIN, 2)
    assert images.shape == (5, 3, 38, 38)
    assert images[0].std() > 20  # a photograph
    assert (images[0] != images[2]).any()  # cut elsewhere


def test_all_rates_are_in_the_text(small):
    found = benchmark.measure()
    assert found["decoded"] > 0
    assert found["step"] > 0
    said = benchmark.text(found)
    assert f"| looked up, proved and decoded | {found['decoded']:.0f} |" in said
    assert f"step of resnet50 | {found['step']:.2f} |" in said
