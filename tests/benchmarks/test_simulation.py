"""The benchmark of simulations compares both ways of the same cell by means with their uncertainty."""

import json

import pytest
from scipy.stats import ttest_ind

import simulation as benchmark


def test_a_run_writes_all_files_with_both_ways_of_each_cell(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "OUT", tmp_path)
    monkeypatch.setattr(benchmark, "DIVISORS", (1, 4))
    monkeypatch.setattr(benchmark, "EPOCHS", 1)
    kinds = benchmark.cells()
    monkeypatch.setattr(benchmark, "cells", lambda: dict(list(kinds.items())[:1]))
    benchmark.main(2)
    found = json.loads((tmp_path / "simulation.json").read_text())
    assert [(row["k"], row["n"]) for row in found["summary"]] == [(1, 2), (4, 2)]
    assert {row["seed"] for row in found["rows"]} == {0, 1}
    assert (tmp_path / "simulation.md").read_text() in capsys.readouterr().out
    assert (tmp_path / "simulation.png").stat().st_size > 0


def test_the_interval_of_a_difference_is_welch_s():
    a, b = [90.0, 92.0, 91.0, 95.0], [88.0, 89.0, 97.0]
    off, within = benchmark.difference(a, b)
    interval = ttest_ind(b, a, equal_var=False).confidence_interval()
    assert (off - within, off + within) == pytest.approx((interval.low, interval.high))
