"""The first run of a kind decides by timing for all of its kind, so that a run repeats bit for bit."""

import json

import pytest
import torch

from dpvision.data.prepared import data_part, load
from dpvision.privacy import fast
from dpvision.training.choices import Decided
from dpvision.training.fit import Training

CPU = torch.device("cpu")


@pytest.fixture
def begin(digits, run_spec, tmp_path):
    def make(changes=None):
        spec = run_spec({"recipe.epochs": 1, **(changes or {})})
        return Training(spec, load(digits, data_part(spec)), 64, CPU, tmp_path / "choices")

    return make


def test_the_first_run_of_a_kind_decides_and_the_others_do_not_time(begin, tmp_path, monkeypatch):
    first = begin()
    first.run()
    (file,) = (tmp_path / "choices").iterdir()
    written = json.loads(file.read_text())
    assert written["choices"] == first.choices
    assert written["kind"]["threads"] == torch.get_num_threads()

    def timed(ways):
        raise AssertionError("timed again")

    monkeypatch.setattr(fast, "quickest", timed)
    again = begin()
    again.run()
    assert again.choices == first.choices
    weights = zip(first.network.parameters(), again.network.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in weights)
    other_seed = begin({"seed": 7})
    other_seed.run()
    assert other_seed.choices == first.choices


def test_another_precision_is_another_kind(begin):
    first, other = begin(), begin({"recipe.precision": "bfloat16"})
    assert first.decided.file != other.decided.file


def test_what_was_decided_first_stays(begin, tmp_path):
    decided = Decided(tmp_path / "choices", begin().spec, CPU)
    decided.write({"images": 1}, {})
    decided.write({"images": 2}, {})
    assert decided.read({}) == {"images": 1}


def test_a_network_of_the_same_layers_in_another_order_is_not_timed_again(begin, tmp_path):
    decided, other = Decided(tmp_path, begin().spec, CPU), Decided(tmp_path, begin().spec, CPU)
    other.file = tmp_path / "other.json"
    decided.write({"images": 16, "layers": {"a": "gram", "b": "one"}}, {"a": "small", "b": "large"})
    assert other.read({"x": "large", "y": "small"}) == {"images": 16, "layers": {"x": "one", "y": "gram"}}
    assert other.read({"x": "large", "y": "large"}) == {}
    assert other.read({"x": "large"}) == {}
    other.kind["threads"] += 1
    assert other.read({"x": "large", "y": "small"}) == {}


def test_without_privacy_there_is_nothing_to_decide(begin, tmp_path):
    begin({"budget": None}).run()
    assert not (tmp_path / "choices").exists()
