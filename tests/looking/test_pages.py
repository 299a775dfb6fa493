"""The pages of the report, of records written by hand."""

import dataclasses
import re
from pathlib import Path

import pytest

from dpvision.data.prepared import content_digest
from dpvision.files import file_digest, read_json, write_json, write_text
from dpvision.plan import DATA
from dpvision.plan.stages import ANALYSES
from dpvision.provenance import LOCK
from dpvision.reporting import html
from dpvision.reporting.outcome import effect_sentence
from dpvision.reporting.pages import rows_shown, scale_banner, write_pages
from dpvision.reporting.report import run_labels
from dpvision.verify.finding import Finding

ARRAYS = {"sha256": {"train_images.npy": "1"}}
GOOD = {"commit": "abc", "lock": file_digest(LOCK)[:12], "data": content_digest(ARRAYS)}
FETCHED = re.compile(r"""(?:src|href|xlink:href)\s*=\s*["'](?!#)|url\((?!#)|@import""")


@pytest.fixture
def whole(results, monkeypatch):
    """Write every record, all of them good, and every table as Markdown and CSV. What is made up would not verify."""
    monkeypatch.setattr("dpvision.reporting.pages.record", lambda place, key: [])
    results.everything()
    root, made = results.root, results.plan
    for name in results.names("data"):
        write_json(root / DATA / "prepared" / name / "dataset.json", ARRAYS)
    for run in results.runs:
        change(results, run, **GOOD)
    for key in made.kept():
        if key[0] in ("search", *ANALYSES):
            write_json(root / made.folder(key) / "provenance.json", {"stage": "dpvision.search.study", **GOOD})
    for name in made.of_kind("tables"):
        file = root / made.results / f"tables/{name}.csv"
        write_text(file.with_suffix(".md"), "**A table.**\n\n| model | ε = 8 |\n| --- | --- |\n| ours | 70.11 / 71.8 |\n")
        write_text(file, "model,recipe,ours,state\none,big,70.1111111,run\ntwo,big,,not run\n")
    return results


def change(results, run: str, **changes) -> None:
    file = results.root / results.plan.results / "runs" / run / "provenance.json"
    write_json(file, read_json(file) | changes)


def pages(results) -> dict[str, str]:
    folder = results.root / "pages"
    write_pages(results.plan, results.root, folder)
    return {file.relative_to(folder).with_suffix("").as_posix(): file.read_text() for file in folder.rglob("*.html")}


def test_there_is_a_page_for_every_table_and_every_run(whole):
    made = pages(whole)
    expected = {f"tables/{name}" for name in whole.plan.of_kind("tables")} | {f"runs/{run}" for run in whole.runs}
    assert set(made) == {"home", "overview", "cost", "environment", *expected}
    assert "None: all" in made["overview"]


def test_a_table_s_page_has_what_the_paper_has_first_and_every_number_behind_a_click(whole):
    text = pages(whole)[f"tables/{whole.plan.of_kind('tables')[0]}"]
    short, long = text.split("<details>")
    assert "<td>70.11 / 71.8</td>" in short and "70.111" not in short
    assert "The same in all rows: recipe big." in long and "<td>70.111</td>" in long and "<td>not run</td>" in long


def test_the_first_two_lines_of_a_card_say_what_the_run_is_and_that_nothing_is_wrong(whole):
    run = whole.runs[0]
    whole.respec(run, {"data.validation": 0, "model.groups": 4, "budget.delta": 1e-6})  # an ε that leaves nothing out
    lines = re.findall("<p.*?</p>", pages(whole)[f"runs/{run}"].split("</h1>")[1])[:2]
    spec = whole.plan.runs[run]
    assert lines[0].startswith(
        f'<p class="lead">ScaleResNet-9 on digits, ε = {spec["budget"]["epsilon"]:g}, seed {spec["seed"]}: '
    )
    assert lines[0].endswith("% test accuracy, last step.</p>")
    assert lines[1] == '<p class="fine">Nothing to warn of.</p>'


def test_card_says_what_its_epsilon_leaves_out(whole):
    run = whole.runs[0]
    whole.respec(run, {"data.validation": 0, "model.groups": 4, "found_by": {"model.groups": whole.names("search")[0]}})
    text = pages(whole)[f"runs/{run}"]
    assert "Nothing to warn of" not in text
    assert '<p class="limit">No ε holds for the 180 examples that the search held out and this run trains on.</p>' in text


def test_card_of_the_authors_protocol_shows_the_test_split_once(whole):
    run = whole.runs[0]
    whole.respec(run, {"data.validation": 0, "model.groups": 4, "protocol": {"name": "paper", "steps": 294}})
    text = pages(whole)[f"runs/{run}"].split("<h2>What it is")[0]
    assert "Nothing to warn of" not in text and '<p class="limit">The test examples steer the learning rate' in text
    assert "best epoch, by the test split" in text
    assert "validation" not in text


def test_the_second_line_of_a_card_says_everything_that_is_wrong(whole, monkeypatch):
    run = whole.runs[0]
    whole.record(run, sessions=2)
    change(whole, run, **GOOD | {"commit": "abc+"})
    file = whole.root / whole.plan.results / "runs" / run / "metrics.json"
    metrics = read_json(file)
    metrics["last_step"]["test"]["top1"] = None  # a number that was not finite
    write_json(file, metrics)
    found = Finding("ledger.json", "epsilon.rdp, recomputed", 2.8, 1.0)
    monkeypatch.setattr("dpvision.reporting.pages.record", lambda place, key: [found] if key[1] == run else [])
    first, second = re.findall("<p.*?</p>", pages(whole)[f"runs/{run}"].split("</h1>")[1])[:2]
    assert "no finite test accuracy" in first
    for words in (
        "dirty tree",
        "resumed",
        "no finite number",
        "does not verify (ledger.json: epsilon.rdp, recomputed: expected",
    ):
        assert words in second
    assert "1 of" in pages(whole)["overview"] and "records: does not verify" in pages(whole)["overview"]


def test_a_record_that_cannot_be_read_to_its_end_is_told_and_not_an_error(whole, monkeypatch):
    def broken(place, key):
        raise KeyError("validation_top5")

    monkeypatch.setattr("dpvision.reporting.pages.record", broken)
    assert "does not verify" in pages(whole)[f"runs/{whole.runs[0]}"]


def test_every_page_says_the_scale_and_fetches_nothing(whole):
    for name, text in pages(whole).items():
        if name == "home":  # a part of Snakemake's page, which says the scale itself
            continue
        assert "Scale demo, not the paper&#x27;s" in text
        assert not FETCHED.search(text)
    assert scale_banner(whole.plan).startswith("Scale demo, not the paper's: ")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"commit": "abc+"}, "made from a dirty tree"),
        ({"lock": "another"}, "made with another lock"),
        ({"data": "another"}, "made with other data than what is prepared now"),
        ({"code": "another"}, "made by other code than is here"),
    ],
)
def test_what_one_should_know_of_a_run_stands_on_its_card_and_in_the_overview(whole, changes, words):
    change(whole, whole.runs[0], **changes)
    made = pages(whole)
    assert words in made[f"runs/{whole.runs[0]}"]
    assert words not in made[f"runs/{whole.runs[1]}"]
    assert f"records: {words}" in made["overview"] and whole.runs[0] in made["overview"]


def test_a_resumed_run_says_so_and_shows_its_sessions(whole):
    whole.record(whole.runs[0], sessions=2)
    change(whole, whole.runs[0], **GOOD)
    card = pages(whole)[f"runs/{whole.runs[0]}"]
    assert "made by a run that was resumed" in card
    assert card.count("<td>2026-01-01</td>") == 2


def test_an_analysis_from_a_dirty_tree_is_in_the_overview(whole):
    name = whole.names("hessian")[0]
    file = whole.root / whole.plan.folder(("hessian", name)) / "provenance.json"
    write_json(file, {"stage": "dpvision.search.study", **GOOD, "commit": "abc+"})
    assert f"hessians/{name}" in pages(whole)["overview"]


def test_a_card_has_the_spec_the_curve_the_ledger_and_the_provenance(whole):
    card = pages(whole)[f"runs/{whole.runs[0]}"]
    for words in ("30 epochs, 294 steps", "ε 2.800 by RDP", "A Processor, 1 thread", "best epoch, by validation", "<path"):
        assert words in card


def test_cost_is_the_sum_of_the_benchmarks_of_what_is_shown(whole):
    for run in (*whole.runs[:2], "of-another-configuration"):
        whole.log("train", run, '{"s": 30.0, "max_rss": 500.0, "cpu_time": 20.0}\n', "jsonl")
    text = pages(whole)["cost"]
    assert "<tr><td>train</td><td>2</td><td>1:00</td><td>0:30</td><td>0:30</td><td>0:40</td><td>0.50 GB</td></tr>" in text


def test_first_page_and_overview_begin_with_what_came_out(whole):
    whole.plan.left_out.append("table_of_other_data")
    made = pages(whole)
    table = whole.plan.of_kind("tables")[0]
    for name, next_part in (("home", "Open a page"), ("overview", "Warnings")):
        first = made[name].split(f"<h2>{next_part}</h2>")[0]
        assert whole.plan.labels[table]["paper"] in first and "<td>70.11 / 71.8</td>" in first
        assert "What is missing" in first and "table_of_other_data" in first
    assert f"/report/tables/{table}.html" in made["home"]


def test_graph_has_each_stage_once_and_its_text_fits(whole):
    home = pages(whole)["home"]
    names = re.findall('class="name">(.*?)<', home)
    assert {"train", "tables", "figures"} <= set(names) and len(set(names)) == len(names)
    drawn = html.graph([[("activations", "6 histograms of activations")], [("figures", "1")]], [("activations", "figures")])
    texts = re.findall('text-anchor="middle">(.*?)</text>', drawn)
    assert " ".join(texts[:-1]) == "6 histograms of activations" and max(map(len, texts)) <= html.BOX_LETTERS


def test_a_table_that_needs_no_training_is_no_drawing(whole):
    table, figure = whole.plan.of_kind("tables")[0], whole.plan.of_kind("figures")[0]
    untrained = {name: whole.plan.artifacts[name] | {"cells": []} for name in (table, figure)}
    planned = dataclasses.replace(whole.plan, artifacts=untrained)
    rests_on = {name: words for name, _, words in rows_shown(planned)}
    assert "nothing was trained" in rests_on[table] and "drawing" in rests_on[figure]


def test_a_number_is_not_broken_from_its_spread():
    assert "<td>82.50\u00a0±\u00a02.31\u00a0(3) / 71.8</td>" in html.table(["ours"], [["82.50 ± 2.31 (3) / 71.8"]])


def test_effect_is_said_by_the_first_measured_difference():
    same = {
        "row": "comparison",
        "claim": "better",
        "kind": "difference",
        "dataset": "digits",
        "n": "3",
        "text": "It is better.",
    }
    same |= {"verdict": "no verdict: stand-ins"}
    what = "test accuracy, A − B: digits, ε = {}"
    rows = [same | {"comparison": what.format(level), "epsilon": level, "of_medians": by} for level, by in EFFECTS.items()]
    sentence = effect_sentence([same | {"row": "claim", "of_medians": ""}, *rows], {"digits": "Handwritten digits"})
    for words in (
        "**−5.0, +1.5 points** at ε = 2.89, 7.42",
        "Handwritten digits",
        "medians",
        "n = 3",
        "**no verdict: stand-ins**",
    ):
        assert words in sentence
    assert effect_sentence(rows[:0], {}) == ""


EFFECTS = {"2.89": "-5.0", "7.42": "1.5"}


def test_no_two_runs_of_a_report_are_called_the_same(results):
    called = [tuple(run_labels(results.plan, run).values()) for run in results.runs]
    assert len(set(called)) == len(called)


def test_text_is_escaped_wherever_it_stands():
    bad = "<script>alert(1)</script>"
    made = html.page(bad, bad, html.table([bad], [[bad]]), html.facts([(bad, bad)]), html.items([bad]), html.folded(bad, ""))
    made += html.markdown(f"# {bad}\n\n{bad}\n\n> {bad}\n\n- {bad}\n\n| {bad} |\n| --- |\n| {bad} |", {})
    assert "<script" not in made
    assert made.count("&lt;script&gt;") == 15


def test_markdown_of_the_claims_becomes_links_that_lead_somewhere():
    made = html.markdown(
        '| claim |\n| --- |\n| [V_A [...] is > 0](#here) |\n\n<a id="here"></a>\n\n### ✔ here\n\n*How:* by **two**', {}
    )
    assert '<a href="#here">V_A [...] is &gt; 0</a>' in made
    assert '<span id="here"></span>' in made
    assert "<em>How:</em> by <strong>two</strong>" in made


def test_a_curve_of_one_epoch_that_never_moved_is_drawn():
    assert "nan" not in html.curves({"test top-1": [(1.0, 0.5)]}, "epoch")


def test_captions_exist_for_all_that_asks_for_one():
    rules = Path(__file__).parents[2] / "workflow/rules"
    asked = {name for file in rules.glob("*.smk") for name in re.findall(r'caption="\.\./report/(\w+\.rst)"', file.read_text())}
    assert asked == {file.name for file in rules.with_name("report").iterdir()} - {"workflow.rst"}
