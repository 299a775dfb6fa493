"""Tables say what the records say, and no more."""

import csv
import json
from pathlib import Path

import pytest

from dpvision.reporting.tables import CURVATURE, number, write_table

LABELS = {"paper": "A paper", "title": "A title", "resnet9": "ResNet-9 & co", "scaleresnet9": "ScaleResNet-9"}
CELLS = [
    {"dataset": "cifar10", "model": "resnet9", "epsilon": 7.42, "delta": 1e-5, "runs": {"1": "a1", "2": "a2", "3": "a3"}},
    {"dataset": "digits", "model": "resnet9", "epsilon": 7.42, "delta": 1e-5, "runs": {"1": "b1"}},
]
PUBLISHED = [
    {"dataset": "cifar10", "model": "resnet9", "epsilon": 7.42, "metric": "top1", "statistic": "median", "value": 71.4},
    {"dataset": "imagenette", "model": "resnet9", "epsilon": 9.88, "metric": "top1", "statistic": "median", "value": 65.0},
]
ACCURACY = {"a1": 0.70, "a2": 0.75, "a3": 0.71, "b1": 0.95}


def record(folder: Path, run: str, top1: float | None, spent: float = 7.4) -> dict[str, str]:
    (folder / run).mkdir(parents=True)
    test = {"top1": top1, "top5": 1.0, "loss": 0.5}
    metrics, ledger = folder / run / "metrics.json", folder / run / "ledger.json"
    metrics.write_text(json.dumps({"last_step": {"test": test}, "best_epoch": {"test": {**test, "top1": 0.99}}}))
    ledger.write_text(json.dumps({"epsilon": {"target": 7.42, "rdp": spent, "prv": spent - 1}}))
    return {"metrics": str(metrics), "ledgers": str(ledger)}


@pytest.fixture
def table(tmp_path):
    """Writes the table and gives back its rows, its Markdown and its LaTeX."""

    def write(accuracy=ACCURACY, **changes):
        files = [record(tmp_path / "runs", run, top1) for run, top1 in accuracy.items()]
        inputs = {key: [file[key] for file in files] for key in ("metrics", "ledgers")}
        spec = {"kind": "accuracy", "artifact": "table1", "scale": "paper", "cells": CELLS, "statistic": "median"}
        write_table(spec | {"published": PUBLISHED} | changes, LABELS, inputs, tmp_path / "table1.csv")
        rows = list(csv.DictReader((tmp_path / "table1.csv").open()))
        return rows, (tmp_path / "table1.md").read_text(), (tmp_path / "table1.tex").read_text()

    return write


def test_gives_the_median_of_the_seeds_at_the_last_step_in_per_cent_beside_the_published_number(table):
    row = table()[0][0]
    assert (row["ours"], row["seed_1"], row["seed_2"], row["seed_3"], row["n"]) == ("71.0", "70.0", "75.0", "71.0", "3")
    assert (row["published"], row["state"]) == ("71.4", "run")
    assert float(row["difference"]) == pytest.approx(-0.4)


def test_gives_the_best_of_the_seeds_where_the_artifact_asks_for_it(table):
    assert table(statistic="best")[0][0]["ours"] == "75.0"


def test_gives_the_privacy_that_was_spent_by_both_accountants(table):
    row = table()[0][0]
    assert (row["epsilon_rdp"], row["epsilon_prv"]) == ("7.4", "6.4")


def test_says_of_a_published_number_without_a_run_that_it_was_not_run(table):
    rows, markdown, _ = table()
    assert [(row["dataset"], row["state"], row["n"], row["ours"]) for row in rows][-1] == ("imagenette", "not run", "0", "")
    assert "| imagenette | ResNet-9 & co | 9.88 | – | – | – | top1 | median | not run | – | – | – | 0 | 65 | – |" in markdown


def test_a_printed_number_that_is_no_accuracy_makes_no_row_of_ours(table):
    minutes = PUBLISHED[0] | {"metric": "training_time_minutes", "value": 22}
    rows = table(published=[*PUBLISHED, minutes])[0]
    assert [(row["metric"], row["state"]) for row in rows if row["metric"] != "top1"] == [("training_time_minutes", "not run")]


def test_compares_only_what_is_the_same_cell(table):
    digits = next(row for row in table()[0] if row["dataset"] == "digits")
    assert (digits["published"], digits["difference"], digits["seed_2"]) == ("", "", "")


def test_a_number_of_the_hessian_that_no_seed_has_is_told(tmp_path):
    keys = {key: 2.5 for key, _ in CURVATURE.values()} | {"condition_most_negative_to_largest": None}
    file = tmp_path / "b1-h" / "hessian.json"
    file.parent.mkdir()
    file.write_text(json.dumps(keys))
    spec = {"kind": "hessian", "artifact": "hessian", "scale": "paper", "cells": CELLS[1:], "statistic": "median"}
    trace = PUBLISHED[0] | {"dataset": "digits", "metric": "trace", "value": 2.0}
    spec |= {"published": [trace], "analyses": {"b1": "b1-h"}}
    write_table(spec, LABELS, {"hessians": [str(file)]}, tmp_path / "hessian.csv")
    rows = {row["metric"]: row for row in csv.DictReader((tmp_path / "hessian.csv").open())}
    assert rows["condition: most negative to largest"]["state"] == "no finite value"
    assert (rows["trace"]["ours"], rows["trace"]["published"], rows["trace"]["difference"]) == ("2.5", "2.0", "0.5")
    assert rows["trace, all samples"]["published"] == "2.0"


def test_all_three_forms_have_the_same_rows(table):
    rows, markdown, latex = table()
    assert sum(line.startswith("|") for line in markdown.splitlines()) - 2 == len(rows)
    assert sum(line.endswith(r"\\") for line in latex.splitlines()) - 1 == len(rows)


def test_latex_is_escaped(table):
    latex = table()[2]
    assert r"ResNet-9 \& co" in latex
    assert "ε" not in latex and "–" not in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1


def test_a_table_of_another_scale_than_the_papers_says_so(table):
    assert "Scale demo, not the paper's" in table(scale="demo")[1]


def test_a_table_of_simulations_says_so_in_its_caption_and_in_every_cell(table):
    rows, markdown, _ = table(scale="simulate", cells=[CELLS[0] | {"simulated": 8}, CELLS[1]])
    assert "Simulated, not private: batch and noise divided by 8, steps kept." in markdown
    assert [row["simulated"] for row in rows[:2]] == ["8.0", ""]
    assert "| 7.42, simulated |" in markdown


def test_a_table_of_real_trainings_speaks_of_no_simulation(table):
    rows, markdown, _ = table()
    assert "imulated" not in markdown and "simulated" not in rows[0]


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (None, None, "–"),
        (float("nan"), 2, "–"),
        (71.4, None, "71.4"),
        (95, 2, "95.00"),
        (6637.3, None, "6637"),
        (2.1e-3, None, "0.0021"),
    ],
)
def test_numbers_are_short_and_a_dash_stands_for_nothing(value, decimals, text):
    assert number(value, decimals) == text
