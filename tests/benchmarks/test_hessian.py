"""The benchmark's ways compute the same product, and its ratios are right. No time is asked for."""

import json

import pytest
import torch

import hessian as benchmark
from dpvision.models.resnet9.options import Options as ResNet9
from hessian import ANEW, KEPT, PYHESSIAN, WAYS


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(benchmark.MODELS, "resnet9", ResNet9(family="resnet9", label="tiny", width=1 / 16, groups=4))
    monkeypatch.setattr(benchmark, "IMAGES", 8)
    monkeypatch.setattr(benchmark, "BATCH", 3)
    monkeypatch.setattr(benchmark, "ROUNDS", 1)
    monkeypatch.setattr(benchmark, "settle", lambda threads: None)
    monkeypatch.setattr(benchmark, "in_a_process_of_its_own", lambda function, *arguments: 12.34)
    with torch.random.fork_rng():
        yield


def test_every_way_of_a_product_computes_the_same(small):
    network, batches, vector = benchmark.setting()
    network, vector = network.double(), vector.double()
    batches = [(images.double(), labels) for images, labels in batches]
    expected = benchmark.way_of(PYHESSIAN, network, batches, vector)()
    assert expected.abs().max() > 1e-3
    for what in (KEPT, ANEW):
        way = benchmark.way_of(what, network, batches, vector)
        for _ in range(2):
            torch.testing.assert_close(way(), expected, rtol=0, atol=1e-10)


def test_a_way_that_is_wrong_is_not_timed(small, monkeypatch):
    monkeypatch.setattr(benchmark.Hessian, "__call__", lambda self, vector: 1.1 * vector)
    with pytest.raises(SystemExit, match="away from PyHessian's"):
        benchmark.seconds()


def test_ratios_are_medians_of_the_ratios_within_a_round():
    times = {what: [1.0, 1.0, 1.0] for what in WAYS} | {PYHESSIAN: [2.0, 4.0, 8.0], KEPT: [1.0, 1.0, 6.0]}
    rows = {row["what"]: row for row in benchmark.rows_of(times, dict.fromkeys(WAYS, 1.0))}
    assert (rows[KEPT]["ratio_to_pyhessian"], rows[KEPT]["ratio_to_two_gradients"]) == (0.5, 1.0)
    assert rows[KEPT]["seconds"] == 1.0


def test_a_run_writes_both_files(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "OUT", tmp_path)
    benchmark.main()
    rows = json.loads((tmp_path / "hessian.json").read_text())["rows"]
    assert [row["what"] for row in rows] == list(WAYS)
    assert capsys.readouterr().out == (tmp_path / "hessian.md").read_text() + "\n"
