"""SmoothNets' own kinds of artifact show what records and print say, at every scale."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpvision import plan
from dpvision.files import write_json
from dpvision.reporting.claims import write_claims
from dpvision.reporting.figures import write_figure
from dpvision.reporting.kinds import KINDS
from dpvision.reporting.tables import write_table

TRIALS = [  # the least loss is not the highest accuracy
    {"trial": 0, "state": "complete", "validation_top1": 0.70, "validation_loss": 0.9},
    {"trial": 1, "state": "complete", "validation_top1": 0.74, "validation_loss": 1.0},
    {"trial": 2, "state": "pruned", "validation_top1": 0.99, "validation_loss": 0.1},
]
MADE_BY = {"code": "c0de", "commit": "f00d", "lock": "10c", "data": "da7a"}
HEAD = json.dumps({"one.weight": {"shape": [1000, 1000]}, "one.bias": {"shape": [500]}}).encode()


def fill(file: Path) -> None:
    """Write what a record's file would say."""
    accuracy = 0.6 + int(file.parent.name.rpartition("-seed")[2][:1] or 0) / 100 if "-seed" in file.parent.name else 0
    stage = {"runs": "dpvision.training.run", "studies": "dpvision.search.study"}.get(file.parts[-3], "")
    contents: dict[str, Any] = {
        "metrics.json": {"last_step": {split: {"top1": accuracy} for split in ("train", "validation", "test")}},
        "ledger.json": {"epsilon": {"rdp": 6.9}, "searches": [{"epsilon_all_composed": 31.0}]},
        "best.json": {"values": {"recipe.clip": 3.25, "recipe.epochs": 90}, "validation_loss": 0.9},
        "provenance.json": MADE_BY | {"stage": stage},
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.name in contents:
        write_json(file, contents[file.name])
    elif file.name == "trials.csv":
        pd.DataFrame(TRIALS).to_csv(file, index=False)
    else:
        file.write_bytes(len(HEAD).to_bytes(8, "little") + HEAD)


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str, str], tuple[list[dict[str, str]], str]]:
    """Make an artifact and return the rows of its CSV, and the text of its Markdown or SVG."""

    def make(name: str, scale: str = "paper") -> tuple[list[dict[str, str]], str]:
        planned = plan.load({"papers": ["smoothnets"], "scale": scale})
        spec = planned.artifacts[name]
        inputs = {key: [str(tmp_path / file) for file in files] for key, files in planned.inputs_of(name).items()}
        for file in {Path(file) for files in inputs.values() for file in files}:
            fill(file)
        csv_file = tmp_path / f"{name}.csv"
        is_table = "tables" in KINDS[spec["kind"]].Options.FILES[0]
        (write_table if is_table else write_figure)(spec, planned.labels[name], inputs, csv_file)
        with open(csv_file, encoding="utf-8", newline="") as rows:
            return list(csv.DictReader(rows)), csv_file.with_suffix(".md" if is_table else ".svg").read_text("utf-8")

    return make


def of(rows: list[dict[str, str]], **values: str) -> list[dict[str, str]]:
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


def test_the_best_trial_by_accuracy_stands_beside_the_printed_number(made):
    rows, text = made("smoothnets_table2")
    (best,) = of(rows, dataset="cifar10", model="smoothnet", statistic="best of 2 trials")
    assert [float(best[key]) for key in ("ours", "published", "difference", "n")] == pytest.approx([74.0, 73.5, 0.5, 1])
    (ten,) = of(rows, dataset="cifar10", model="smoothnet", statistic="mean of the ten best")
    assert (float(ten["ours"]), ten["published"]) == (72.0, "")
    assert "clip 3.25, epochs 90" in text


def test_trainings_with_what_was_found_their_size_and_the_price_stand_below(made):
    rows, text = made("smoothnets_table2")
    ours = of(rows, dataset="cifar10", model="smoothnet")[2:]
    assert [(row["metric"], row["split"], row["n"]) for row in ours] == [
        ("top1", "validation", "3"),
        ("top1", "test", "3"),
        ("million_parameters", "", "3"),
        ("epsilon_with_search", "", "3"),
    ]
    assert [float(row["ours"]) for row in ours] == pytest.approx([61, 61, 1.0005, 31.0])
    assert ours[2]["published"] == "3.4" and all(row["published"] == "" for row in ours[:2])
    assert "| ε with search |" in text and "| N Params (million) |" in text
    assert " 31.00 |" in text and "31.00 (" not in text  # the same of all seeds


def test_a_cell_without_a_search_has_the_printed_number_beside_its_trainings(made):
    rows, _ = made("smoothnets_components_pairs")
    assert {row["statistic"] for row in of(rows, epsilon="")} == {"mean"}
    rows, _ = made("smoothnets_components_standard")
    ours = of(rows, model="resnet18_literal", epsilon="", metric="top1", split="validation")
    assert {row["model.groups"]: float(row["published"]) for row in ours} == {"8": 81.5, "1": 80.8, "channels": 78.3}
    assert {row["model"] for row in of(rows, state="not run")} >= {"xception", "mobilenetv1", "mobilenetv1_x025"}


def test_other_works_are_quoted_and_nothing_is_trained_for_them(made):
    rows, text = made("smoothnets_table1")
    assert [float(row["published"]) for row in rows] == [66.2, 71.7, 70.1, 81.4, 64.8]
    assert "| ImageNette, 224 px | Klause et al. 2022 (architecture) | 7.5 | 64.8 |" in text


def test_the_front_has_ours_the_authors_and_other_works(made):
    rows, _ = made("smoothnets_figure2")
    counts = {series: len(of(rows, series=series)) for series in {row["series"] for row in rows}}
    assert sorted(counts.values()) == [4, 5, 5, 5]
    assert [float(row["accuracy"]) for row in of(rows, series="the authors, held-out examples")] == [62.6, 70, 71.5, 73.5, 73.8]


@pytest.mark.parametrize(
    ("name", "said"),
    [("activation", "has no two that differ"), ("pooling", "has no pair with: average"), ("connection", None)],
)
def test_where_the_notebook_has_no_number_the_figure_says_so(made, name, said):
    rows, svg = made(f"smoothnets_components_{name}")
    assert len(of(rows, of="ours")) == 193 and len(of(rows, of="authors' notebook")) == 2 * 66
    assert said in svg if said else "the authors' notebook has no" not in svg


@pytest.mark.parametrize(("scale", "there"), [("paper", 19), ("simulate", 7), ("demo", 0)])
def test_a_claim_has_a_verdict_where_the_scale_has_its_cells(tmp_path, scale, there):
    planned = plan.load({"papers": ["smoothnets"], "scale": scale})
    name = "smoothnets_claims"
    inputs = {key: [str(tmp_path / file) for file in files] for key, files in planned.inputs_of(name).items()}
    for file in {Path(file) for files in inputs.values() for file in files}:
        fill(file)
    csv_file, figure = tmp_path / "claims.csv", tmp_path / "figure.csv"
    judged = write_claims(planned.artifacts[name], planned.labels[name], inputs, csv_file, figure)
    assert sum(not claim.verdict.startswith(("not run", "no verdict")) for claim in judged) == there


@pytest.mark.parametrize("scale", [pytest.param("paper", marks=pytest.mark.slow), "simulate", "demo"])
def test_every_table_and_figure_is_made(made, scale):
    planned = plan.load({"papers": ["smoothnets"], "scale": scale})
    for name, spec in planned.artifacts.items():
        if spec["kind"] != "claims":
            made(name, scale)


def test_kept_records_without_weights_have_no_row_of_parameters(made, monkeypatch):
    whole = fill
    monkeypatch.setitem(globals(), "fill", lambda file: None if file.suffix == ".safetensors" else whole(file))
    rows, text = made("smoothnets_table2_found")
    assert {row["metric"] for row in rows} == {"top1"} and "no finite value" not in text


def test_a_panel_in_which_there_is_nothing_to_draw_is_left_out(made):
    _, text = made("smoothnets_components_activation", "simulate")
    assert ">with noise<" in text and ">without noise<" not in text


def test_simulated_components_name_no_private_panel(made):
    rows, text = made("smoothnets_components_connection", "simulate")
    assert {row["privacy"] for row in rows} == {"private", "not private"}
    assert ">with noise<" in text and ">without noise<" in text
    assert ">private<" not in text and ">not private<" not in text


def test_each_tick_of_a_component_has_a_point():
    options = {"connection": "none", "width": 1, "depth": 1, "pool": "max", "norm": "group"}
    same = {"model": "m", "privacy": "private", "component": "activation", "of": "ours"} | options
    rows = [same | {"activation": name, "x": name, "accuracy": 50.0} for name in ("relu", "selu")]
    lonely = {"activation": "leaky_relu", "x": "leaky_relu", "accuracy": 60.0, "norm": "none"}
    (axis,) = KINDS["components"].draw(pd.DataFrame([*rows, same | lonely]), {}).axes
    assert [label.get_text() for label in axis.get_xticklabels()] == ["ReLU", "SELU"]
    assert list(axis.get_xticks()) == list(axis.get_lines()[0].get_xdata()) == [0, 1]
