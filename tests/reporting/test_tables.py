"""Tables say what the records say, and no more."""

import csv
import json
import math
from pathlib import Path

import pytest

from dpvision.reporting import html
from dpvision.reporting.kinds import KINDS
from dpvision.reporting.layout import Panel
from dpvision.reporting.markup import latex, markdown, number, tex
from dpvision.reporting.tables import write_table

LABELS = {"paper": "A paper", "title": "A title", "models": {"resnet9": "ResNet-9 & co", "scaleresnet9": "ScaleResNet-9"}}
AT = {"dataset": "cifar10", "model": "resnet9", "recipe": "one", "search": None, "epsilon": 7.42, "delta": 1e-5}
AT |= {"protocol": "clean", "held_out": 100}
CELLS = [
    {"at": AT, "work": {"train": {"1": "a1", "2": "a2", "3": "a3"}}},
    {"at": AT | {"dataset": "digits"}, "work": {"train": {"1": "b1"}}},
]
PRINTED = {"dataset": "cifar10", "model": "resnet9", "epsilon": 7.42}
PUBLISHED = [
    {"at": PRINTED, "metric": "top1", "statistic": "median", "value": 71.4},
    {"at": PRINTED | {"dataset": "imagenette", "epsilon": 9.88}, "metric": "top1", "statistic": "median", "value": 65.0},
]
INPUTS = ("metrics", "ledgers", "provenance")
ACCURACY = {"a1": 0.70, "a2": 0.75, "a3": 0.71, "b1": 0.95}


RUN = {
    "stage": "dpvision.training.run",
    "code": "c0de",
    "commit": "f00d",
    "lock": "10c",
    "data": "da7a",
    "sessions": [{"code": "c0de", "seconds": 90}],
}


def record(folder: Path, run: str, top1: float, averaged: float | None, made_by: dict, said: dict) -> dict[str, str]:
    """Write a record whose best epoch is a point better than its last step; `said` replaces these metrics."""
    (folder / run).mkdir(parents=True, exist_ok=True)
    metrics = {
        name: {"test": {"top1": value, "top5": 1.0}} for name, value in (("last_step", top1), ("best_epoch", top1 + 0.01))
    }
    if averaged is not None:
        metrics["averaged"] = {"test": {"top1": averaged, "top5": 1.0}}
    ledger = {"epsilon": {"target": 7.42, "rdp": 7.4, "prv": 6.4}}
    if "ledger" in said:
        ledger |= said["ledger"]
    own = {key: value for key, value in said.items() if key not in ("ledger", "spec")}
    contents = {"metrics": own or metrics, "ledger": ledger, "provenance": made_by}
    if "spec" in said:
        contents["spec"] = said["spec"]
    for name, content in contents.items():
        (folder / run / f"{name}.json").write_text(json.dumps(content))
    return {key: str(folder / run / f"{key.removesuffix('s') if key == 'ledgers' else key}.json") for key in INPUTS}


@pytest.fixture
def table(tmp_path):
    """Write the table and return its rows, its Markdown and its LaTeX."""

    def write(accuracy=ACCURACY, averaged=None, made_by=None, said=None, labels=None, **changes):
        """Take by run the averaged weights' accuracy, and what its provenance and its metrics say instead."""
        files = [
            record(
                tmp_path / "runs",
                run,
                top1,
                (averaged or {}).get(run),
                RUN | (made_by or {}).get(run, {}),
                (said or {}).get(run, {}),
            )
            for run, top1 in accuracy.items()
        ]
        inputs = {key: [file[key] for file in files] for key in INPUTS}
        spec = {"kind": "accuracy", "artifact": "table1", "scale": "paper", "cells": CELLS, "statistic": "median"}
        write_table(spec | {"published": PUBLISHED} | changes, LABELS | (labels or {}), inputs, tmp_path / "table1.csv")
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


def test_gives_the_mean_of_the_seeds_where_the_artifact_asks_for_it(table):
    assert table(statistic="mean")[0][0]["ours"] == "72.0"


def test_numbers_that_no_paper_prints_say_who_has_them(table):
    _, markdown, latex = table(published=[PUBLISHED[0] | {"source": "the authors' notebook", "statistic": "best trial"}])
    for text in (markdown, latex):
        assert "(n) / in the authors' notebook." in text and "Statistic in the authors' notebook: best trial." in text
        assert "in print" not in text
    assert "(n) / in print." in table()[1] and "Statistic in print: median." in table()[1]


SPREADS = [("standard_deviation", math.sqrt(7), "2.65"), ("standard_error", math.sqrt(7 / 3), "1.53")]


@pytest.mark.parametrize(("spread", "of_three", "text"), SPREADS)
def test_the_spread_of_the_seeds_stands_behind_ours_where_the_artifact_asks_for_it(table, spread, of_three, text):
    (cifar10, digits, printed), markdown, latex = table(statistic="mean", spread=spread)
    assert float(cifar10["spread"]) == pytest.approx(of_three)
    assert [row["spread_is"] for row in (cifar10, digits, printed)] == [spread, spread, ""]
    assert (digits["n"], digits["spread"], printed["spread"]) == ("1", "", "")  # one value has none
    assert f"| 72.00 ± {text} (3) / 71.4 |" in markdown and "| 95.00 (1) |" in markdown
    assert f"Ours: the mean of n trainings, one a seed, ± their {spread.replace('_', ' ')} (" in markdown
    assert rf"72.00 $\pm$ {text} (3) / 71.4" in latex and "±" not in latex


def test_people_read_the_standard_deviation_where_no_spread_is_asked_for_and_the_csv_has_none(table):
    rows, markdown, _ = table()
    assert not {"spread", "spread_is"} & {*rows[0]}
    assert "| 71.00 ± 2.65 (3) / 71.4 |" in markdown and "one a seed, ± their standard deviation (n - 1)" in markdown


def test_the_best_of_several_has_no_spread(table):
    assert "| 75.00 (3) / 71.4 |" in table(statistic="best")[1]


def test_equal_numbers_have_no_spread(table):
    assert "| 70.00 (3) / 71.4 |" in table(accuracy=dict.fromkeys(ACCURACY, 0.7))[1]


def test_gives_the_privacy_that_was_spent_by_both_accountants(table):
    row = table()[0][0]
    assert (row["epsilon_rdp"], row["epsilon_prv"]) == ("7.4", "6.4")


def curve(mu: float) -> dict:
    """Return what a new ledger says beside an old one's, with a search that a theorem covers."""
    said = {"mu": mu, "true_positives": mu / 100, "advantage": mu / 10, "at_false_positives": 0.001}
    epsilon = {"target": 7.42, "rdp": 7.4, "prv": 6.4, "pld": 6.0 + mu}
    searches = [{"epsilon_covered": 13.0 + mu}, {"epsilon_all_composed": 22.0 + mu}]
    return {"ledger": {"epsilon": epsilon, "curve": said, "searches": searches}}


def test_gives_the_whole_privacy_curve_where_a_ledger_says_it_and_people_read_what_is_asked_for(table):
    new = {"a1": curve(1.2), "a2": curve(1.4)}  # a3 and b1 are old
    (cifar10, digits, _), markdown, _ = table(said=new)
    names = ("epsilon_pld", "mu", "true_positives", "advantage", "epsilon_covered")
    assert [float(cifar10[name]) for name in names] == pytest.approx([7.4, 1.4, 0.014, 0.14, 14.4])
    assert not any(digits[name] for name in names)
    assert "7.400 by RDP, 6.400 by PRV, 7.400 by PLD, 23.400 with all trials of its search, 14.400 with" in markdown
    assert "1.400" not in markdown
    assert not {*names} & {*table()[0][0]}
    markdown = table(said=new, privacy=["mu", "epsilon_covered"], columns=["metric"], rows=["dataset"])[1]
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert lines[0] == "| data set | ε | top-1 | μ | ε with its search |"
    assert lines[2].endswith("| 1.400 | 14.400 |") and all(line.endswith("| – | – |") for line in lines[3:])


def test_says_of_a_published_number_without_a_run_that_it_was_not_run(table):
    rows, markdown, _ = table()
    assert [(row["dataset"], row["state"], row["n"], row["ours"]) for row in rows][-1] == ("imagenette", "not run", "0", "")
    assert "**imagenette, ResNet-9 & co, top-1**" in markdown and "| not run / 65.0 |" in markdown


def test_compares_only_what_is_the_same_cell(table):
    digits = next(row for row in table()[0] if row["dataset"] == "digits")
    assert (digits["published"], digits["difference"], digits["seed_2"]) == ("", "", "")


def test_a_number_of_the_hessian_that_no_seed_has_is_told(tmp_path):
    keys = {key: 2.5 for key, _ in KINDS["hessian"].NUMBERS.values()} | {"condition_most_negative_to_largest": None}
    keys |= {"examples": 16, "lanczos_steps": 20}
    file = tmp_path / "b1-h" / "hessian.json"
    file.parent.mkdir()
    file.write_text(json.dumps(keys))
    cells = [{"at": CELLS[1]["at"], "work": {"hessian": {"1": "b1-h"}}}]
    spec = {"kind": "hessian", "artifact": "hessian", "scale": "paper", "cells": cells, "statistic": "median"}
    trace = PUBLISHED[0] | {"at": PRINTED | {"dataset": "digits"}, "metric": "trace", "value": 2.0}
    negative = trace | {"metric": "negative_eigenvalues", "value": 115}
    spec |= {"published": [trace, negative]}
    made_by = file.with_name("provenance.json")
    made_by.write_text(json.dumps({"stage": "dpvision.curvature.job", "code": "c0de", "commit": "f00d", "lock": "10c"}))
    write_table(spec, LABELS, {"hessians": [str(file)], "provenance": [str(made_by)]}, tmp_path / "hessian.csv")
    rows = {row["metric"]: row for row in csv.DictReader((tmp_path / "hessian.csv").open())}
    assert rows["condition: most negative to largest"]["state"] == "no finite value"
    assert (rows["trace"]["ours"], rows["trace"]["published"], rows["trace"]["difference"]) == ("2.5", "2.0", "0.5")
    assert rows["trace, all samples"]["published"] == "2.0"
    few = rows["negative eigenvalues"]  # of 20 steps of Lanczos, which cannot find 115
    assert (few["published"], few["difference"]) == ("115.0", "")
    assert "By 16 examples, 20 steps of Lanczos." in (tmp_path / "hessian.md").read_text()


def test_markdown_and_latex_have_the_same_rows_and_panels(table):
    rows, markdown, latex = table()
    panels = len({row["dataset"] for row in rows})
    assert sum(line.startswith("|") for line in markdown.splitlines()) == len(rows) + 2 * panels
    assert sum(line.endswith(r"\\") for line in latex.splitlines()) == len(rows) + 2 * panels  # a head and a heading each


def test_latex_is_escaped(table):
    latex = table()[2]
    assert r"ResNet-9 \& co" in latex
    assert "ε" not in latex and "–" not in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 3
    assert latex.count("{") == latex.count("}")


def test_markdown_keeps_the_cells_of_labels_with_pipes_lines_and_tags():
    panel = Panel("<img src=x>", ["model"], ["a | b", "ε < 8"], [["x\n| y |", "<script>alert(1)</script>", "`a <b> c`"]])
    text = markdown([panel], "one\ntwo", ["see </p> and `unclosed <i>", "`snakemake --scale <name>`"])
    assert text == (
        "**one two**\n\n**&lt;img src=x>**\n\n| model | a &#124; b | ε < 8 |\n| --- | --- | --- |\n"
        "| x &#124; y &#124; | &lt;script>alert(1)&lt;/script> | `a <b> c` |\n\n"
        "- see &lt;/p> and `unclosed &lt;i>\n- `snakemake --scale <name>`\n"
    )
    shown = html.markdown(text, {})
    assert shown.count("<td") == 3 and "<script" not in shown
    assert "a | b" in shown and "&lt;script&gt;alert(1)&lt;/script&gt;" in shown and "&amp;lt;" not in shown


def test_a_table_that_is_longer_than_a_page_is_cut_for_print_and_its_notes_stand_behind_it():
    long = Panel("many", ["model"], ["top-1"], [[str(i), "1"] for i in range(70)])
    printed = latex([long, Panel("few", ["model"], ["top-1"], [["a", "1"]])], "A caption", ["A note."], "one")
    first, second, notes = printed.split(r"\end{table}")
    assert (first.count(" & 1 "), second.count(" & 1 ")) == (40, 31)
    assert r"\caption{A caption}" in first and r"\emph{Continued}" in second and "A note." in notes


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("50 % of a_b & #3", r"50 \% of a\_b \& \#3"),
        ("{x} ~ y^2 \\ $", r"\{x\} \textasciitilde{} y\textasciicircum{}2 \textbackslash{} \$"),
        ("the protocol `paper_2`", r"the protocol \texttt{paper\_2}"),
        ("ε ≤ 1 ± 2 – σ < 3", r"$\varepsilon$ $\le$ 1 $\pm$ 2 -- $\sigma$ $<$ 3"),
    ],
)
def test_what_latex_would_take_for_its_own_is_escaped(text, escaped):
    assert tex(text) == escaped


def test_a_table_of_another_scale_than_the_papers_says_so(table):
    assert "Scale demo, not the paper's" in table(scale="demo")[1]


def test_caption_names_nothing_twice(table):
    titles = {"title": "A paper beside De et al.", "as_written": True}
    assert table(scale="laptop", labels=titles)[1].startswith("**A paper beside De et al. Scale laptop.**")
    assert table(scale="laptop")[1].startswith("**A title. A paper. Scale laptop, not the paper's.**")


def test_table_by_class_says_which_class_has_no_test_picture(tmp_path):
    files = {"classes": tmp_path / "c1/classes.csv", "provenance": tmp_path / "c1/provenance.json"}
    files["classes"].parent.mkdir()
    files["classes"].write_text("class,right,examples\nchurch,3,4\nhorn,0,0\n")
    files["provenance"].write_text(json.dumps(RUN))
    cells = [{"at": AT, "work": {"by_class": {"1": "c1"}}}]
    spec = {"kind": "by_class", "artifact": "classes", "scale": "paper", "cells": cells, "statistic": "median"}
    inputs = {name: [str(file)] for name, file in files.items()}
    write_table(spec | {"published": [], "columns": ["epsilon"]}, LABELS, inputs, tmp_path / "classes.csv")
    lines = [line for line in (tmp_path / "classes.md").read_text().splitlines() if line.startswith("|")]
    assert lines == ["| class | ε = 7.42 |", "| --- | --- |", "| church | 75.0 (1) |", "| horn | no test picture |"]


def test_a_table_of_simulations_says_so_in_its_caption_and_in_every_cell(table):
    rows, markdown, _ = table(scale="simulate", cells=[CELLS[0] | {"simulated": 8}, CELLS[1]])
    assert "Simulated, not private: batch and noise divided by 8, steps kept." in markdown
    assert [row["simulated"] for row in rows[:2]] == ["8.0", ""]
    assert "| 71.00 ± 2.65 (3, simulated) / 71.4 |" in markdown and "| 95.00 (1) |" in markdown
    assert "ε is that of the training whose batch and noise were divided" in markdown


def test_a_table_of_real_trainings_speaks_of_no_simulation(table):
    rows, markdown, _ = table()
    assert "imulated" not in markdown and "simulated" not in rows[0]


# --- the protocols side by side ---

AUTHORS = {"at": AT | {"protocol": "paper", "held_out": 0}, "work": {"train": {"1": "p1", "2": "p2", "3": "p3"}}}
BOTH = {"cells": [CELLS[0], AUTHORS], "accuracy": ACCURACY | {"p1": 0.72, "p2": 0.73, "p3": 0.80}}


def test_the_authors_protocol_has_a_row_of_its_own_and_changes_nothing_of_ours(table):
    clean, paper, printed = table(**BOTH)[0]
    assert [row["protocol"] for row in (clean, paper, printed)] == ["clean", "paper", ""]  # the third is only published
    assert (clean["ours"], clean["n"], clean["difference"][:4]) == ("71.0", "3", "-0.4")
    assert (clean["last_step"], clean["selection"]) == ("", "")
    assert [float(paper[key]) for key in ("ours", "last_step", "n", "epsilon_rdp")] == [74.0, 73.0, 3, 7.4]
    assert float(paper["difference"]) == pytest.approx(2.6)
    assert paper["published"] == clean["published"] == "71.4"


def test_a_table_of_both_protocols_has_a_row_of_each_and_the_printed_number_beside_both(table):
    markdown = table(**BOTH)[1]
    assert "| protocol | ε = 7.42 |" in markdown
    assert "| clean | 71.00 ± 2.65 (3) / 71.4 |" in markdown and "| authors' code | 74.00 ± 4.36 (3) / 71.4 |" in markdown


def test_a_table_lays_the_protocols_out_as_columns_where_it_says_so(table):
    markdown = table(**BOTH, columns=["protocol"])[1]
    assert "| data set | ε | clean | authors' code |" in markdown
    assert "| cifar10 | 7.42 | 71.00 ± 2.65 (3) / 71.4 | 74.00 ± 4.36 (3) / 71.4 |" in markdown
    assert "| imagenette | 9.88 | not run / 65.0 | – |" in markdown


def test_a_printed_number_of_one_protocol_alone_stands_beside_that_one(table):
    printed = {"at": PRINTED | {"protocol": "paper"}, "metric": "top1", "statistic": "median", "value": 72.5}
    rows, markdown, _ = table(**BOTH, published=[printed])
    assert [row["published"] for row in rows] == ["", "72.5"]
    assert "| clean | 71.00 ± 2.65 (3) |" in markdown and "| authors' code | 74.00 ± 4.36 (3) / 72.5 |" in markdown


def test_a_coordinate_that_no_two_cells_differ_in_is_not_shown_but_for_what_a_cell_is_called_by(table):
    others = [CELLS[0], {"at": AT | {"recipe": "another"}, "work": {"train": {"1": "b1"}}}]
    rows, markdown, _ = table(cells=others)
    assert [(row["recipe"], row["delta"], row["protocol"]) for row in rows[:2]] == [
        ("one", "1e-05", "clean"),
        ("another", "1e-05", "clean"),
    ]
    assert "**cifar10, ResNet-9 & co, top-1**" in markdown and "| recipe | ε = 7.42 |" in markdown


def test_what_was_gained_by_choosing_on_the_test_split_is_told(table):
    rows, markdown, _ = table(**BOTH)
    assert float(rows[1]["selection"]) == pytest.approx(1.0)
    assert "choosing the best epoch on the test split gained 1.00 to 1.00 points" in markdown


def test_averaged_weights_have_a_column_where_every_seed_has_them(table):
    rows, markdown, _ = table(averaged={"a1": 0.7, "a2": 0.9, "a3": 0.8})
    assert [row["averaged"] for row in rows] == ["80.0", "", ""]
    assert "| last step | 71.00 ± 2.65 (3) / 71.4 |" in markdown and "| averaged | 80.00 (3) |" in markdown
    assert "moving average" in markdown


def test_a_table_without_averages_and_the_authors_protocol_says_nothing_of_them(table):
    rows, markdown, _ = table()
    assert not {"averaged", "last_step", "selection"} & {*rows[0]}
    assert "moving average" not in markdown and "Authors' code" not in markdown


def test_a_printed_training_time_has_ours_beside_it_with_what_interrupted_sessions_took(table):
    minutes = PUBLISHED[0] | {"metric": "minutes", "value": 22}
    again = {"a2": {"sessions": [{"code": "c0de", "seconds": 60}, {"code": "c0de", "seconds": 120}]}}
    rows, markdown, _ = table(published=[*PUBLISHED, minutes], made_by=again, averaged=dict.fromkeys(ACCURACY, 0.5))
    row = next(row for row in rows if row["metric"] == "minutes")
    assert (row["seed_1"], row["seed_2"], row["published"], row["averaged"]) == ("1.5", "3.0", "22.0", "")
    assert "Minutes: of one training" in markdown


# --- the metrics that an artifact asks for ---


def of(top1: float, *splits: str) -> dict[str, dict[str, float]]:
    return {split: {"top1": top1, "top5": top1 + 0.2} for split in splits}


ALL = ("train", "validation", "test")
HELD_OUT = {"last_step": of(0.5, *ALL), "best_epoch": of(0.6, *ALL), "averaged": of(0.7, *ALL)}
PLAIN = {"last_step": of(0.5, "train", "test")}  # nothing held out, no average
LAST, AVERAGED = ({"weights": weights, "split": "test", "name": "top1"} for weights in ("last_step", "averaged"))
TOP5 = {"weights": "best_epoch", "split": "validation", "name": "top5"}
MINUTES = {"weights": "last_step", "split": "test", "name": "minutes"}
ONE = {"cells": [CELLS[1]], "accuracy": {"b1": 0.5}, "published": []}


def test_a_table_has_a_row_of_a_cell_for_each_metric_that_it_asks_for(table):
    rows, markdown, _ = table(**ONE, said={"b1": HELD_OUT}, metrics=[LAST, AVERAGED, TOP5, MINUTES])
    found = [tuple(row[name] for name in ("weights", "split", "metric", "ours")) for row in rows]
    assert found == [
        ("last_step", "test", "top1", "50.0"),
        ("averaged", "test", "top1", "70.0"),
        ("best_epoch", "validation", "top5", "80.0"),
        ("", "", "minutes", "1.5"),
    ]
    assert "| top-1, last step | top-1, averaged | top-5 | minutes |" in markdown
    assert "| 50.00 (1) | 70.00 (1) | 80.00 (1) | 1.50 (1) |" in markdown
    assert "Accuracies in per cent of the test and validation examples." in markdown
    assert not {"averaged", "last_step", "selection"} & {*rows[0]}  # they are rows


def test_weights_and_split_are_shown_only_where_they_differ(table):
    rows, markdown, _ = table(**ONE, said={"b1": HELD_OUT}, metrics=[AVERAGED, AVERAGED | {"name": "top5"}])
    assert [(row["weights"], row["split"]) for row in rows] == [("averaged", "test")] * 2
    assert "| top-1 | top-5 |" in markdown
    assert "of the moving average of the weights at the last step" in markdown


@pytest.mark.parametrize(
    ("metric", "state"),
    [
        (AVERAGED, "no averaged weights"),
        (AVERAGED | {"split": "validation"}, "no averaged weights"),
        (LAST | {"split": "validation"}, "nothing held out"),
        (LAST | {"weights": "best_epoch"}, "nothing held out"),
    ],
)
def test_a_number_that_no_record_has_is_empty_and_says_why(table, metric, state):
    (row,), markdown, _ = table(**ONE, said={"b1": PLAIN}, metrics=[metric], spread="standard_error")
    assert (row["ours"], row["seed_1"], row["n"], row["state"]) == ("", "", "0", state)
    assert f"| {state} |" in markdown


def test_the_authors_protocol_holds_nothing_out_though_its_test_split_stands_for_it(table):
    runs = dict.fromkeys(("p1", "p2", "p3"), HELD_OUT)
    metrics = [LAST | {"split": "validation"}, LAST]
    rows, markdown, _ = table(cells=[AUTHORS], accuracy=dict.fromkeys(runs, 0.5), said=runs, metrics=metrics, published=[])
    assert [row["state"] for row in rows] == ["nothing held out", "run"]
    assert "Authors' code (the protocol `paper`):" in markdown and "choosing the best epoch" not in markdown


TRAINING = {"said": dict.fromkeys(("a1", "a2", "a3"), HELD_OUT), "cells": CELLS[:1]}


def test_a_printed_number_stands_beside_what_it_says_it_is_of(table):
    averaged = PUBLISHED[0] | {"weights": "averaged", "value": 80.0}
    rows = table(**TRAINING, metrics=[LAST, AVERAGED], published=[PUBLISHED[0], averaged])[0]
    assert [(row["weights"], row["published"]) for row in rows] == [("last_step", "71.4"), ("averaged", "80.0")]


def test_a_printed_number_that_says_nothing_is_of_what_the_protocol_s_row_shows(table):
    said = dict.fromkeys(("p1", "p2", "p3"), HELD_OUT)
    best = LAST | {"weights": "best_epoch"}
    rows = table(cells=[AUTHORS], accuracy=dict.fromkeys(said, 0.5), said=said, metrics=[LAST, best], published=PUBLISHED[:1])[
        0
    ]
    assert [(row["weights"], row["published"]) for row in rows] == [("last_step", ""), ("best_epoch", "71.4")]


@pytest.mark.parametrize("metrics", [{}, {"metrics": [LAST]}])
def test_a_printed_number_of_other_weights_or_examples_than_are_shown_was_not_asked_for(table, metrics):
    validation = PUBLISHED[0] | {"split": "validation"}
    rows = table(**TRAINING, **metrics, published=[validation])[0]
    assert [(row["split"], row["published"], row["state"]) for row in rows] == [
        ("test", "", "run"),
        ("validation", "71.4", "not asked for"),
    ]


# --- how they were made ---


@pytest.mark.parametrize(
    ("of_a2", "sentence"),
    [
        ({"code": "other"}, "Made by different code: 2 versions of dpvision.training.run."),
        ({"lock": "other"}, "Made with different packages: more than one lock."),
        ({"commit": "f00d+"}, "1 of 4 records: made from a dirty tree."),
        ({"commit": None}, "1 of 4 records: made at no known commit."),
        ({"sessions": [{"code": "c0de", "seconds": 1}] * 2}, "1 of 4 records: made by a run that was resumed."),
        ({"sessions": [{"code": "c0de", "seconds": 1}, {"code": "b", "seconds": 1}]}, "2 versions of dpvision.training.run"),
    ],
)
def test_a_note_tells_what_a_reader_should_know_of_how_the_records_were_made(table, of_a2, sentence):
    _, markdown, latex = table(made_by={"a2": of_a2})
    assert sentence in markdown and sentence in latex


WITH = "dpvision.training.run dpvision.training.optimizers."


@pytest.mark.parametrize(
    ("of_a2", "versions"),
    [
        ({"stage": f"{WITH}sgd", "code": "of sgd"}, 1),
        ({"stage": f"{WITH}nadam", "code": "other"}, 2),
        ({"code": "before optimisers were named"}, 2),
    ],
)
def test_trainings_with_different_optimisers_are_not_of_different_code_for_that(table, of_a2, versions):
    others = {run: {"stage": f"{WITH}nadam"} for run in ("a1", "a3", "b1")}
    markdown = table(made_by=others | {"a2": of_a2 | {"sessions": [{"code": of_a2["code"], "seconds": 1}]}})[1]
    assert ("2 versions of dpvision.training.run." in markdown) == (versions == 2)
    assert ("different code" in markdown) == (versions > 1)


def test_nothing_is_said_of_records_of_one_code_commit_and_lock(table):
    markdown = table()[1]
    assert not any(word in markdown for word in ("Made by", "Made with", "of 4 records"))


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


CONSTANT = {"recipe.schedule": {"name": "constant"}}
WHOLE = CONSTANT | {"data.validation": 0, "budget.delta": 1e-6}


@pytest.mark.parametrize(
    ("at", "changes", "said", "unsaid"),
    [
        ({}, {}, ["σ the least for the ε", "examples steered a learning rate that follows the loss."], "search"),
        ({}, CONSTANT, ["examples steered nothing."], "learning rate"),
        ({}, CONSTANT | {"found_by": {"recipe.clip": "one"}}, ["examples decided what a search found."], "steered"),
        ({"held_out": 0}, WHOLE, ["nothing was chosen"], "held-out"),
        ({"sigma": 3.0}, {}, ["σ as the configuration gives it"], "σ the least"),
        ({"epsilon": None}, {"budget": None}, ["at the last step; held-out"], "σ"),
    ],
)
def test_the_note_says_only_what_its_runs_did(table, run_spec, at, changes, said, unsaid):
    cells = [{"at": AT | at, "work": {"train": {"1": "a1"}}}]
    markdown = table(cells=cells, accuracy={"a1": 0.7}, said={"a1": {"spec": run_spec(changes)}})[1]
    note = next(line for line in markdown.splitlines() if line.startswith("- Accuracies in per cent"))
    assert all(text in note for text in said) and unsaid not in note


# --- what ε leaves out ---


@pytest.fixture
def left_out(table, run_spec, tmp_path):
    """Write a table of trainings with these changes to their specs; return its notes."""
    best = tmp_path / "studies/one/best.json"
    best.parent.mkdir(parents=True)
    best.write_text(json.dumps({"privacy": {"split": {"validation": 48, "by": "permutation"}}}))

    def write(*changes):
        said = {f"a{i}": {"spec": run_spec(change)} for i, change in enumerate(changes, 1)}
        cells = [{"at": AT, "work": {"train": {run[1:]: run for run in said}}}]
        return table(cells=cells, accuracy=dict.fromkeys(said, 0.7), said=said)[1]

    return write


def test_notes_say_for_whom_no_epsilon_holds(left_out):
    notes = left_out(WHOLE | {"found_by": {"recipe.clip": "one"}}, WHOLE, CONSTANT)
    assert "1 of 3 trainings with an ε: no ε holds for the 48 examples that the search held out and this run" in notes
    assert "1 of 3 trainings with an ε: no ε holds for the 437 held-out examples" in notes
    assert "1 of 3 trainings with an ε: δ N = " in notes
    assert "As a whole it has no ε: none holds for examples that searches held out" in notes


def test_notes_say_that_a_table_with_a_public_training_has_no_epsilon(left_out):
    assert "As a whole it has no ε: 1 of its 2 trainings is not private" in left_out(WHOLE, {"budget": None})
    private, public = left_out(WHOLE, WHOLE), left_out({"budget": None})
    assert "As a whole" not in private and "All 2 trainings together spend more" in private
    assert "As a whole" not in public and "together" not in public  # no ε is shown


# --- cells that have no record yet ---


def test_what_is_planned_and_has_no_record_says_so_at_its_own_place(table):
    """Show a folder of kept results in which the authors' protocol and another ε are planned, and not there."""
    absent = [AUTHORS["at"], AT | {"epsilon": 9.88}]
    printed = [PUBLISHED[0], PUBLISHED[0] | {"at": PRINTED | {"epsilon": 9.88}, "value": 73.0}]
    rows, markdown, _ = table(cells=CELLS[:1], absent=absent, published=printed, rows=["protocol"], columns=["epsilon"])
    assert [row["state"] for row in rows] == ["run", "not run"]
    assert "| clean | 71.00 ± 2.65 (3) / 71.4 | not run / 73.0 |" in markdown
    assert "| authors' code | not run / 71.4 | – |" in markdown


def test_a_printed_number_keeps_the_decimals_that_its_like_have(table):
    printed = [
        PUBLISHED[0] | {"at": PRINTED | {"epsilon": epsilon}, "value": value} for epsilon, value in ((1, 73.0), (2, 81.25))
    ]
    markdown = table(published=[PUBLISHED[0], *printed])[1]
    assert "not run / 73.0 |" in markdown and "not run / 81.25 |" in markdown and "/ 71.4 |" in markdown


OTHER = {
    "at": {"dataset": "cifar10", "model": "other", "epsilon": 7.42},
    "metric": "top1",
    "statistic": "quoted",
    "value": 66.2,
}


def test_other_works_stand_with_their_name_and_their_number_alone(table):
    _, markdown, _ = table(published=[*PUBLISHED, OTHER], works={"other": "Papernot et al."})
    (line,) = [line for line in markdown.splitlines() if "Papernot et al." in line]
    assert "| 66.2 |" in line
    assert "not run" not in line
    assert "; of other works what they print. Ours:" in markdown


def test_what_is_no_other_work_was_not_run(table):
    _, markdown, _ = table(published=[*PUBLISHED, OTHER])
    (line,) = [line for line in markdown.splitlines() if "| other |" in line]
    assert "not run / 66.2" in line


def test_another_scale_shows_the_printed_numbers_of_its_own_cells_and_counts_the_others(table):
    level = {"at": PRINTED | {"epsilon": 9.88}, "metric": "top1", "statistic": "median", "value": 72.4}
    rows, markdown, _ = table(scale="simulate", published=[*PUBLISHED, level])
    assert [row["published"] for row in rows if row["state"] == "not run"] == ["65.0", "72.4"]  # the CSV has all of them
    assert "71.4" in markdown and "72.4" not in markdown
    assert "2 published numbers of what this scale does not run: in table1.csv." in markdown
    assert "72.4" in table(published=[*PUBLISHED, level])[1]
    absent = [AT | {"epsilon": 9.88}]
    assert "not run / 72.4" in table(scale="simulate", published=[*PUBLISHED, level], absent=absent)[1]
