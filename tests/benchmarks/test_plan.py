"""The plan's price is measured on copies of the project."""

import json

import pytest

import plan as benchmark


@pytest.mark.slow
def test_a_run_writes_both_files(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "OUT", tmp_path)
    monkeypatch.setattr(benchmark, "RUNS", (30,))
    monkeypatch.setattr(benchmark, "TIMES", 1)
    benchmark.main()
    rows = json.loads((tmp_path / "plan.json").read_text())["rows"]
    assert [row["what"] for row in rows] == list(benchmark.COMMANDS)
    assert all(row["seconds"] > 0 and row["peak_mb"] > 10 for row in rows)
    assert (tmp_path / "plan.md").read_text() in capsys.readouterr().out


def test_a_project_has_so_many_runs_at_least(tmp_path):
    name = benchmark.project(tmp_path, 131)
    planned = benchmark.plan.load({"papers": ["scalenorm"], "scale": "paper"}, tmp_path)
    assert 131 <= len(planned.runs) < 131 + len({name.split("-seed")[0] for name in planned.runs}) * 2
    assert name in planned.runs


def test_a_command_that_fails_says_so(tmp_path):
    with pytest.raises(SystemExit, match="no such thing"):
        benchmark.run(["python", "-c", "raise SystemExit('no such thing')"], tmp_path)
