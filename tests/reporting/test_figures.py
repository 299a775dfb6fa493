"""Figures show what their CSV holds, the same every time, and in grey too."""

import json
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from dpvision import plan
from dpvision.config.artifacts import Figure
from dpvision.reporting import figures, points
from dpvision.reporting.kinds import KINDS as ALL

LABELS = {"paper": "A paper", "title": "A title", "models": {"resnet9": "ResNet-9", "scaleresnet9": "ScaleResNet-9"}}
RUNS = {"scaleresnet9": {"1": "s1", "2": "s2"}, "resnet9": {"1": "r1", "2": "r2"}}
EVERY_RUN = [run for runs in RUNS.values() for run in runs.values()]


def at(model: str, **changes: Any) -> dict[str, Any]:
    """Return all coordinates of a cell."""
    there = {"dataset": "digits", "model": model, "recipe": "one", "search": None, "epsilon": 7.42, "delta": 1e-4}
    return there | {"protocol": "clean"} | changes


def spec_of(kind: str, stage: str, name: str, seeds: tuple[str, ...] = ("1", "2")) -> dict[str, Any]:
    """Return the spec of a figure whose cells have the work of a stage, each called by its run."""
    work = {model: {stage: {seed: name.format(runs[seed]) for seed in seeds}} for model, runs in RUNS.items()}
    cells = [{"at": at(model), "work": there} for model, there in work.items()]
    return {"kind": kind, "artifact": "figure", "scale": "demo", "cells": cells}


def written(folder: Path, name: str, file: str, content: str) -> str:
    path = folder / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return str(path)


def curves(folder: Path) -> tuple[dict, dict]:
    history = "epoch,step,epsilon,validation_top1,test_top1\n1,10,3.0,0.5,0.4\n2,20,7.4,0.7,0.6\n"
    return spec_of("curves", "train", "{}"), {"histories": [written(folder, run, "history.csv", history) for run in EVERY_RUN]}


def spectrum(folder: Path) -> tuple[dict, dict]:
    found = json.dumps({"ritz_values": [-1.0, 0.0, 5.0], "ritz_weights": [0.1, 0.8, 0.1]})
    files = [written(folder, f"{run}-h", "hessian.json", found) for run in EVERY_RUN]
    return spec_of("spectrum", "hessian", "{}-h"), {"hessians": files}


def activations(folder: Path) -> tuple[dict, dict]:
    places = {"s1": ("V_R", "V_F", "V_A", "V_A^S"), "r1": ("V_R", "V_F", "V_A")}
    files = []
    for run, there in places.items():
        rows = [f"{place},{i},{i + 1},0.5,0.72,0.76" for place in there for i in range(2)]
        files.append(written(folder, f"{run}-a", "histograms.csv", "\n".join(["place,left,right,density,mean,std", *rows])))
    return spec_of("activations", "activations", "{}-a", ("1",)), {"histograms": files}


def search(folder: Path) -> tuple[dict, dict]:
    rows = ["0,complete,0.9,5,1,8", "1,fail,,0,,1", "2,pruned,0.1,2,1,channels", "3,complete,0.95,5,1,1"]
    trials = "\n".join(["trial,state,validation_top1,epochs,seconds,model.groups", *rows])
    files = [written(folder, f"{run}-s", "trials.csv", trials) for run in ("s1", "r1")]
    return spec_of("search", "search", "{}-s", ("1",)), {"trials": files}


def schematic(folder: Path) -> tuple[dict, dict]:
    return spec_of("schematic", "train", "{}") | {"cells": []}, {}


KINDS = {"curves": curves, "spectrum": spectrum, "activations": activations, "search": search, "schematic": schematic}


def draw(kind: str, folder: Path):
    spec, inputs = KINDS[kind](folder)
    return ALL[kind].draw(ALL[kind].read(spec, inputs), LABELS)


def legend_of(figure: Any) -> list[str]:
    """Return the labels of the one legend of a figure."""
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("kind", ["curves", "spectrum", "search"])
def test_a_legend_lies_below_all_panels(kind, tmp_path):
    with plt.style.context(figures.STYLE):
        figure = draw(kind, tmp_path)
        figure.draw_without_rendering()
    top = figure.legends[0].get_window_extent().y1
    assert all(axis.get_legend() is None and top <= axis.get_tightbbox().y0 for axis in figure.axes)
    assert len(set(legend_of(figure))) == len(legend_of(figure)) > 1
    plt.close("all")


def test_a_long_title_and_note_are_no_wider_than_the_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(ALL["curves"], "NOTE", "a note that goes on and on; " * 8)
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, csv: drawn.append(figure))
    spec, inputs = curves(tmp_path)
    figures.write_figure(spec, LABELS | {"title": "A title that goes on and on " * 8}, inputs, tmp_path / "figure.csv")
    (figure,) = drawn
    figure.draw_without_rendering()
    texts = [figure._suptitle, *figure.texts]
    assert len(texts) > 1
    assert all(text.get_window_extent().width <= figure.bbox.width for text in texts)
    plt.close("all")


@pytest.mark.parametrize(
    ("budget", "whole"),
    [(None, "it has no ε: 2 of its 4 trainings are not private"), ({"epsilon": 8.0, "delta": 1e-5}, None)],
)
def test_figure_with_public_trainings_says_it_has_no_epsilon(tmp_path, monkeypatch, run_spec, budget, whole):
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, csv: drawn.append(figure))
    spec, inputs = curves(tmp_path)
    for run in EVERY_RUN:
        written(tmp_path, run, "spec.json", json.dumps(run_spec({"budget": budget} if run.startswith("r") else {})))
    figures.write_figure(spec, LABELS, inputs, tmp_path / "figure.csv")
    note = " ".join(text.get_text() for text in drawn[0].texts).replace("\n", " ")
    assert whole in note if whole else "As a whole" not in note
    plt.close("all")


@pytest.mark.parametrize(
    ("values", "printed", "labels"),
    [
        ([0, 1, 4], [], ["none", "1", "4"]),
        ([0, 1, 4], [32], ["none", "1", "4"]),
        ([2, 3], [], ["2", "3"]),
        ([256, 4096], [], ["256", "4096"]),
        ([0.125, 1], [], ["0.125", "1"]),
    ],
)
def test_an_axis_has_one_tick_for_each_value_run(values, printed, labels):
    figure, axis = plt.subplots()
    every = pd.Series([*values, *printed], dtype=float)
    axis.plot(points.on_axis(every, every), every)
    points.set_axis(axis, "x", values, beside=every)
    figure.draw_without_rendering()
    assert [label.get_text() for label in axis.get_xticklabels()] == labels
    assert list(axis.get_xticks()) == list(points.on_axis(every, every)[: len(values)])
    assert not axis.get_xticks(minor=True).size
    plt.close("all")


def test_marks_of_two_searches_at_one_place_hide_nothing(tmp_path):
    _, history = draw("search", tmp_path).axes
    marks = [line for line in history.get_lines() if line.get_marker() in ("o", "s")]
    assert {line.get_fillstyle() for line in marks} == {"none"}
    assert len({line.get_markersize() for line in marks}) == len(marks) == 2
    plt.close("all")


def test_curves_call_a_data_set_by_its_label(tmp_path):
    spec, inputs = curves(tmp_path)
    labels = LABELS | {"datasets": {"digits": "Handwritten digits"}}
    (axis,) = ALL["curves"].draw(ALL["curves"].read(spec, inputs), labels).axes
    assert axis.get_title() == "Handwritten digits, ε = 7.42"
    plt.close("all")


def test_readme_has_the_numbers_of_its_table():
    text = (plan.ROOT / "README.md").read_text(encoding="utf-8")
    caption = text[text.index("*`make laptop`") :].split("\n\n")[0]
    table = (plan.ROOT / "docs/results/laptop/tables/laptop_table.md").read_text(encoding="utf-8")
    (ours,) = [line for line in table.splitlines() if line.startswith("| head on MobileNetV2")]
    numbers = re.findall(r"(\d+\.\d+) %", caption)
    assert numbers and all(number in re.findall(r"\d+\.\d+", ours) for number in numbers)
    assert "median" in caption and "the median of n trainings" in table


def test_every_kind_of_figure_is_tried_here_or_where_a_paper_s_own_kinds_are():
    figures = {name for name, kind in ALL.items() if issubclass(kind.Options, Figure)}
    papers = [file.stem.removeprefix("test_").removesuffix("_kinds") for file in Path(__file__).parent.glob("test_*_kinds.py")]
    theirs = "".join((plan.ROOT / "config" / "papers" / paper / "paper.yaml").read_text() for paper in papers)
    assert set(KINDS) <= figures
    assert [name for name in figures - set(KINDS) if not re.search(rf"kind: {name}\b", theirs)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_writes_three_formats_and_the_data_the_same_every_time(kind, tmp_path):
    spec, inputs = KINDS[kind](tmp_path / "in")
    made = []
    for attempt in ("once", "again"):
        figures.write_figure(spec, LABELS, inputs, tmp_path / attempt / "figure.csv")
        made.append({path.name: path.read_bytes() for path in (tmp_path / attempt).iterdir()})
    assert set(made[0]) == {"figure.csv", "figure.svg", "figure.pdf", "figure.png"}
    assert made[0] == made[1]
    assert len(pd.read_csv(tmp_path / "once/figure.csv"))


@pytest.mark.parametrize("kind", ["curves", "spectrum"])
def test_lines_of_one_panel_differ_in_more_than_colour(kind, tmp_path):
    for axis in draw(kind, tmp_path).axes:
        lines = [line for line in axis.get_lines() if not line.get_label().startswith("_")]
        assert len({line.get_linestyle() for line in lines}) == len(lines) > 1
    plt.close("all")


def test_curves_show_the_median_of_the_seeds(tmp_path):
    spec, inputs = curves(tmp_path)
    better = Path(inputs["histories"][0])
    better.write_text(better.read_text().replace("0.6\n", "0.8\n"))
    line = ALL["curves"].draw(ALL["curves"].read(spec, inputs), LABELS).axes[0].get_lines()[0]
    assert list(line.get_ydata()) == pytest.approx([40, 70])
    assert line.get_label() == "ScaleResNet-9 (n = 2)"


HISTORY = """\
epoch,step,validation_top1,test_top1,averaged_validation_top1,averaged_test_top1
1,10,0.1,0.2,0.3,0.4
2,20,0.5,0.6,0.7,0.8
"""


@pytest.mark.parametrize(
    ("metric", "drawn", "called"),
    [
        ("validation_top1", [10, 50], "validation accuracy (%)"),
        ("averaged_test_top1", [40, 80], "test accuracy (%),\naveraged weights"),
        ("averaged_validation_top1", [30, 70], "validation accuracy (%),\naveraged weights"),
    ],
)
def test_curves_show_the_metric_that_the_artifact_asks_for(metric, drawn, called, tmp_path):
    spec, inputs = curves(tmp_path)
    for file in inputs["histories"]:
        Path(file).write_text(HISTORY)
    frame = ALL["curves"].read(spec | {"metric": metric}, inputs)
    (axis,) = ALL["curves"].draw(frame, LABELS).axes
    assert list(frame.columns)[-4:] == ["seed", "epoch", "step", metric]
    assert list(axis.get_lines()[0].get_ydata()) == pytest.approx(drawn)
    assert axis.get_ylabel() == called
    plt.close("all")


@pytest.mark.parametrize(
    ("metric", "protocol", "why"),
    [
        ("averaged_test_top1", "clean", "no averaged weights"),
        ("validation_top1", "paper", "nothing held out"),  # though the test split's numbers stand there
        ("averaged_validation_top1", "paper", "no averaged weights or nothing held out"),
    ],
)
def test_curves_of_trainings_without_the_metric_are_empty_and_say_why(metric, protocol, why, tmp_path):
    spec, inputs = curves(tmp_path)
    spec |= {"metric": metric}
    spec["cells"] = [cell | {"at": cell["at"] | {"protocol": protocol}} for cell in spec["cells"]]
    figures.write_figure(spec, LABELS, inputs, tmp_path / "figure.csv")
    frame = pd.read_csv(tmp_path / "figure.csv")
    assert len(frame) == 8 and frame[metric].isna().all()
    (axis,) = ALL["curves"].draw(ALL["curves"].read(spec, inputs), LABELS).axes
    assert [line.get_label() for line in axis.get_lines()] == [f"ScaleResNet-9 ({why})", f"ResNet-9 ({why})"]
    plt.close("all")


def test_curves_of_cells_that_differ_in_more_than_the_model_are_called_by_it(tmp_path):
    spec, inputs = curves(tmp_path)
    spec["cells"][1]["at"] = at("scaleresnet9", recipe="another")
    spec["cells"].append({"at": at("scaleresnet9", dataset="cifar10", epsilon=None), "work": spec["cells"][0]["work"]})
    axes = ALL["curves"].draw(ALL["curves"].read(spec, inputs), LABELS).axes
    assert [axis.get_title() for axis in axes] == ["digits, ε = 7.42", "cifar10, not private"]
    called = [[line.get_label() for line in axis.get_lines()] for axis in axes]
    assert called[0] == ["ScaleResNet-9, recipe one (n = 2)", "ScaleResNet-9, recipe another (n = 2)"]
    plt.close("all")


def test_activations_have_scale_norm_below_and_nothing_where_there_is_none(tmp_path):
    axes = draw("activations", tmp_path).axes
    assert [axis.axison for axis in axes] == [True, True, True, False, True, True, True, True]
    assert axes[-1].get_title() == "$V_A^S$: mean 0.72, std 0.76"


def test_a_search_shows_finished_trials_only_and_marks_those_given_up(tmp_path):
    figure = draw("search", tmp_path)
    values, history = figure.axes
    assert [label.get_text() for label in values.get_xticklabels()] == ["1", "8", "channels"]
    assert any("given up" in text for text in legend_of(figure))
    assert list(history.get_lines()[0].get_ydata()) == pytest.approx([90, 90, 95])


def test_a_search_over_ranges_has_axes_of_numbers_and_an_arm_for_each_search(tmp_path):
    spec, inputs = search(tmp_path)
    rows = ["0,complete,0.9,0.0012,1.5,10", "1,complete,0.8,0.1,19.5,11", "2,pruned,0.1,0.5,3.25,12"]
    header = "trial,state,validation_top1,recipe.optimizer.learning_rate,recipe.clip,recipe.epochs"
    for file in inputs["trials"]:
        Path(file).write_text("\n".join([header, *rows]))
    for cell, level in zip(spec["cells"], (2.89, 7.42), strict=True):
        cell["at"] |= {"model": "resnet9", "epsilon": level, "sigma": 1.0}
    frame = ALL["search"].read(spec, inputs)
    figure = ALL["search"].draw(frame, LABELS)
    rate, clip, epochs, _ = figure.axes
    assert (rate.get_xscale(), clip.get_xscale()) == ("log", "linear")
    assert list(clip.get_lines()[0].get_xdata()) == [1.5, 19.5]
    assert [label.get_text() for label in epochs.get_xticklabels()] == ["10", "11", "12"]
    arms = [text for text in legend_of(figure) if "best so far" in text]
    assert arms == ["ResNet-9, digits, ε = 2.89, best so far", "ResNet-9, digits, ε = 7.42, best so far"]
    plt.close("all")


def test_the_schematic_calls_activations_as_the_paper_does_and_has_scale_norm_in_one_block(tmp_path):
    without, having = draw("schematic", tmp_path).axes
    called = [[text.get_text() for text in axis.texts if text.get_text().startswith("$V")] for axis in (without, having)]
    assert called == [["$V_R$", "$V_F$", "$V_A$"], ["$V_R$", "$V_F$", "$V_A$", "$V_A^S$"]]
    named = [[text.get_text() for text in axis.texts].count("ScaleNorm") for axis in (without, having)]
    assert named == [0, 1]
    plt.close("all")


def test_groups_that_vary_different_things_stand_in_one_figure(tmp_path):
    places = [("a", {"recipe.batch": 256}), ("b", {"recipe.batch": 512}), ("c", {"ladder": "plain"})]
    cells, files = [], []
    for name, varied in places:
        (tmp_path / name).mkdir()
        file = tmp_path / name / "history.csv"
        file.write_text("epoch,step,epsilon,validation_top1,test_top1\n1,10,1,0.5,0.5\n2,20,2,0.6,0.6\n")
        files.append(str(file))
        at = {"dataset": "digits", "model": "m", "epsilon": 8.0, **varied}
        cells.append({"at": at, "work": {"train": {"1": name}}})
    frame = ALL["curves"].read({"cells": cells}, {"histories": files})
    assert list(frame.columns[:5]) == ["dataset", "model", "epsilon", "recipe.batch", "ladder"]
    found = [(arm, cell) for arm, cell, _ in figures.cells_in(frame, {"models": {"m": "M"}})]
    assert found == [
        ("M, batch 256", "digits, ε = 8"),
        ("M, batch 512", "digits, ε = 8"),
        ("M, ladder plain", "digits, ε = 8"),
    ]
