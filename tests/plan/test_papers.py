"""Several papers, several recipes in one table, data that somebody has to bring."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpvision import plan
from dpvision.errors import UserError
from dpvision.files import write_json
from dpvision.looking.overview import overview

ROOT = Path(__file__).parents[2]
PAPER = "papers/scalenorm/paper.yaml"
PUBLISHED = "papers/scalenorm/published.yaml"
CLAIMS = "papers/scalenorm/claims.yaml"
DEMO = "papers/scalenorm/demo.yaml"


# --- two recipes of one model ---

TABLE2 = ("    cells: [wrn, cifar10]\n    epsilons: [8.0, 7.42]\n", "    cells: [wrn, wrn_large]\n")
ROW = "{{artifact: table2, dataset: cifar10, model: wrn16_4, epsilon: 8.0, {}metric: top1, statistic: best, value: 81}}"
CLAIM = "one:\n  text: It is.\n  section: '1'\n  artifacts: [table2]\n  comparisons:\n    - {}\n"
LEVEL = "{kind: level, dataset: cifar10, model: wrn16_4, epsilon: 8, than: 80, claimed: {above: 0}}"
SAID = "{{kind: {}, dataset: cifar10, models: [wrn16_4, wrn16_4], epsilons: [8], {}claimed: {{above: 0}}}}"


@pytest.fixture
def two_recipes(as_shipped):
    """Show the wide residual networks by both recipes in the shipped table 2; none of it is printed or claimed."""
    (as_shipped.root / "config" / PUBLISHED).write_text("[]\n")
    (as_shipped.root / "config" / CLAIMS).write_text(CLAIM.format(LEVEL).replace("table2", "table2_large"))
    return as_shipped.change(PAPER, *TABLE2)


def cells(planned: plan.Plan, artifact: str) -> list[dict[str, Any]]:
    return [cell["at"] for cell in planned.artifacts[artifact]["cells"]]


def sides(planned: plan.Plan, page: str = "claims", claim: int = 0) -> list[dict[str, Any]]:
    return [side for one in planned.artifacts[page]["claims"][claim]["comparisons"] for side in one["sides"]]


def test_cells_of_two_recipes_in_one_table_differ_in_that_coordinate(two_recipes):
    first, *_, last = cells(two_recipes.plan(), "table2")
    assert [at["recipe"] for at in cells(two_recipes.plan(), "table2")] == ["wrn", "wrn", "wrn_large", "wrn_large"]
    assert (first["dataset"], first["epsilon"]) == (last["dataset"], last["epsilon"])


def test_a_table_says_the_recipe_where_its_cells_differ_in_it_and_only_there(two_recipes):
    from dpvision.reporting.tables import frame_of, row, shown_panels

    planned = two_recipes.plan()
    for artifact, there in (("table2", True), ("table3", False)):
        spec = planned.artifacts[artifact]
        rows = [row(spec, cell, "top1", {"34": 70.0 + i}, "top1") for i, cell in enumerate(spec["cells"])]
        (panel,) = shown_panels(frame_of(spec, rows), spec, planned.labels[artifact], 2)
        assert ("wrn_large, ε = 8" in panel.columns) == there


def test_a_printed_number_of_two_cells_is_refused_with_both(two_recipes):
    (line,) = two_recipes.change(PUBLISHED, "[]", f"[{ROW.format('')}]").complaints()
    assert line.startswith(f"config/{PUBLISHED}: entry 1: is of two cells of table2: ")
    assert "recipe: wrn;" in line and "recipe: wrn_large." in line


def test_a_printed_number_that_names_the_recipe_is_of_one_cell(two_recipes):
    planned = two_recipes.change(PUBLISHED, "[]", f"[{ROW.format('recipe: wrn, ')}]").plan()
    (row,) = planned.artifacts["table2"]["published"]
    assert [at["recipe"] for at in cells(planned, "table2") if row["at"].items() <= at.items()] == ["wrn"]


def test_two_cells_with_the_same_coordinates_are_refused_with_both_groups(configuration):
    again = "  again: {dataset: cifar10, models: [resnet9], recipe: resnet9, epsilons: [7.42]}\n"
    configuration.change(PAPER, "\nhessian:", f"\n{again}\nhessian:")
    (line,) = configuration.change(PAPER, "cells: [cifar10]", "cells: [cifar10, again]").complaints()
    assert line.startswith(
        f'config/{PAPER}: artifacts.table1.cells = ["cifar10", "again"]: cifar10 and again both have the cell '
    )
    assert "model: resnet9" in line


def test_a_claim_that_selects_two_cells_is_refused_with_both_and_holds_where_one_is_named(two_recipes):
    claims = two_recipes.root / "config" / CLAIMS
    claims.write_text(CLAIM.format(LEVEL))
    (line,) = two_recipes.complaints()
    two = "selects two cells of table2, wrn (recipe: wrn) and wrn_large (recipe: wrn_large): say which, as by where: "
    assert line == f"config/{CLAIMS}: one.comparisons[0]: {two}{{recipe: wrn}}"
    claims.write_text(CLAIM.format(LEVEL).replace("  comparisons", "  where: {recipe: wrn}\n  comparisons"))
    (side,) = sides(two_recipes.plan())
    assert side["at"]["recipe"] == "wrn"
    claims.write_text(CLAIM.format(LEVEL.replace("kind: level", "kind: level, where: {recipe: wrn_large}")))
    (side,) = sides(two_recipes.plan())
    assert side["at"]["recipe"] == "wrn_large"


@pytest.mark.parametrize("kind", ["difference", "times"])
def test_two_recipes_of_one_model_are_compared(two_recipes, kind):
    from dpvision.reporting.claims import described

    against = "where: {recipe: wrn}, against: {recipe: wrn_large}, "
    (two_recipes.root / "config" / CLAIMS).write_text(CLAIM.format(SAID.format(kind, against)))
    planned = two_recipes.plan()
    one, other = sides(planned)
    assert (one["at"]["recipe"], other["at"]["recipe"]) == ("wrn", "wrn_large")
    assert not set(one["work"]["train"].values()) & set(other["work"]["train"].values())
    (comparison,) = planned.artifacts["claims"]["claims"][0]["comparisons"]
    text = described(comparison, planned.labels["claims"])
    assert "recipe wrn " in text and text.endswith("recipe wrn_large: WRN-16-4, CIFAR-10, ε = 8")


# --- several papers ---


def copied(configuration: Any, name: str, title: str = "Another paper") -> None:
    """Copy ScaleNorm as a paper of this name, its artifacts called other_table1 and so on."""
    folder = configuration.root / "config/papers" / name
    shutil.copytree(configuration.root / "config/papers/scalenorm", folder)

    def changed(file: str, change: Any) -> None:
        content = yaml.safe_load((folder / file).read_text())
        (folder / file).write_text(yaml.safe_dump(change(content), sort_keys=False))

    def renamed(content: dict) -> dict:
        there = content.get("artifacts", {})
        return content | {"artifacts": {f"other_{key}": value for key, value in there.items()}}

    changed("paper.yaml", lambda content: renamed(content) | {"title": title})
    for scale in ("demo.yaml", "simulate.yaml"):
        changed(scale, renamed)
    changed("published.yaml", lambda rows: [row | {"artifact": f"other_{row['artifact']}"} for row in rows])
    of_others = lambda claim: {"artifacts": [f"other_{artifact}" for artifact in claim.get("artifacts", [])]}  # noqa: E731
    changed("claims.yaml", lambda claims: {key: claim | of_others(claim) for key, claim in claims.items()})


@pytest.mark.parametrize("name", ["other", "scale", "data", "claims2", "paper"])
def test_each_paper_has_its_own_page_of_claims_and_its_own_labels(configuration, name):
    copied(configuration, name)
    for scale, results in (("paper", "results"), ("demo", "results/demo")):
        planned = configuration.plan(papers=["scalenorm", name], scale=scale)
        for target, page in (("scalenorm", "claims"), (name, "other_claims")):
            pages = [file for file in planned.targets(target) if file.endswith("claims.md")]
            assert pages == [f"{results}/{page}.md"]
            assert planned.artifacts[page]["paper"] == target
        assert {planned.labels[key]["paper"] for key in planned.papers[name]} == {"Another paper"}
        assert {planned.labels[key]["paper"] for key in planned.papers["scalenorm"]} == {"ScaleNorm (Klause et al. 2022)"}
        assert set(planned.targets("all")) == set(planned.targets("scalenorm")) | set(planned.targets(name))


def test_papers_with_the_same_cells_share_their_work(configuration):
    copied(configuration, "other")
    assert configuration.plan(papers=["scalenorm", "other"]).work == configuration.plan().work


def test_a_paper_called_like_a_rule_is_refused(configuration):
    copied(configuration, "train")
    assert configuration.complaints(papers=["scalenorm", "train"]) == [
        'config/config.yaml or the command line: papers[1] = "train": '
        "this is the name of a rule of the workflow; rename the folder"
    ]


def test_a_paper_without_a_file_for_the_scale_is_left_out_there(configuration):
    copied(configuration, "other")
    (configuration.root / "config/papers/other/demo.yaml").unlink()
    planned = configuration.plan(papers=["scalenorm", "other"], scale="demo")
    assert (list(planned.papers), planned.left_out) == (["scalenorm"], ["other"])
    assert not any(name.startswith("other_") for name in planned.artifacts)
    assert list(configuration.plan(papers=["scalenorm", "other"]).papers) == ["scalenorm", "other"]


def test_no_paper_with_a_file_for_the_scale_is_an_error_that_names_it(configuration):
    (configuration.root / "config" / DEMO).unlink()
    (line,) = configuration.complaints(scale="demo")
    assert line.startswith(f"no paper has the scale demo: there is no config/{DEMO}")


# --- a selection ---


@pytest.fixture
def select(configuration) -> Any:
    """Two papers at the scale demo, of which the second has this line in its demo.yaml."""

    def plan_with(line: str, artifacts: str = "selection") -> Any:
        if not (configuration.root / "config/papers/other").exists():
            copied(configuration, "other")
        with (configuration.root / "config/papers/other/demo.yaml").open("a", encoding="utf-8") as end:
            end.write(f"{line}\n")
        settings = {"papers": ["scalenorm", "other"], "scale": "demo", "artifacts": artifacts}
        return configuration.plan(**settings)

    return plan_with


def test_of_a_paper_with_a_selection_that_alone_is_built_and_of_others_all(select):
    planned = select("selection: [other_figure3, other_groups]\nseeds: [7]")
    assert planned.papers["other"] == ["other_groups", "other_figure3"]  # in the paper's own order
    assert planned.papers["scalenorm"] == [name for name in planned.artifacts if not name.startswith("other_")]
    assert "claims" in planned.artifacts and "other_claims" in planned.left_out
    assert {run["seed"] for run in planned.runs.values()} == {34, 50, 113, 7}
    assert not any("other_table1" in file for file in (*planned.targets("all"), *planned.kept_files()))


def test_nothing_is_kept_that_only_artifacts_outside_of_the_selection_show(select):
    planned = select("selection: [other_table4]\nseeds: [7]")
    kept = {name for stage, name in planned.kept() if stage == "train" and planned.runs[name]["seed"] == 7}
    assert kept == set(planned.runs_of("other_table4"))
    assert {planned.runs[name]["budget"]["epsilon"] for name in kept} == {7.42}
    assert "hessian" in {stage for stage, _ in planned.kept()}  # the first paper's


def test_a_selection_changes_nothing_where_it_is_not_asked_for(select):
    whole = select("seeds: [7]", "all")
    assert select("selection: [other_table1]", "all") == whole
    assert select("").work.items() <= whole.work.items()


def test_a_selection_says_of_itself_what_a_job_needs_to_plan_it_again(select, configuration):
    from dpvision.archive.contents import configuration as said

    planned = select("selection: [other_table1]")
    assert configuration.plan(**said(planned)) == planned
    assert "artifacts" not in said(configuration.plan(scale="demo"))


@pytest.mark.parametrize(("name", "near"), [("other_tabel1", ' Did you mean "other_table1"?'), ("zzz", "")])
def test_an_unknown_artifact_in_a_selection_is_an_error_that_names_it(select, name, near):
    there = f'there is no artifact "{name}" at this scale.{near} Allowed: other_table1, other_table4, '
    for line, artifacts in ((f"selection: [{name}]", "selection"), ("", "all")):
        with pytest.raises(UserError) as raised:
            select(line, artifacts)
        assert str(raised.value).startswith(f'config/papers/other/demo.yaml: selection[0] = "{name}": {there}')


def test_an_artifact_that_the_scale_leaves_out_cannot_be_selected(configuration):
    configuration.append(DEMO, "selection: [table4]\nartifacts: {table4: null}\n")
    (line,) = configuration.complaints(scale="demo", artifacts="selection")
    assert 'selection[0] = "table4": there is no artifact "table4" at this scale' in line


# --- data that somebody has to bring ---

TABLE = "  own_table: {kind: accuracy, title: Mine, cells: [own]}\n"
CELLS = "  own: {dataset: own, models: [resnet9], recipe: resnet9, epsilons: [7.42], delta: 1.0e-4}\n"
OWN_CLAIM = """
mine:
  text: It is.
  section: "1"
  artifacts: [own_table]
  comparisons:
    - {kind: level, dataset: own, model: resnet9, epsilon: 7.42, than: 71.2, claimed: {above: -2}}
"""


@pytest.fixture
def own(configuration):
    """Add a table and a claim about images that nobody may download."""
    entry = yaml.safe_load((configuration.root / "config/datasets.yaml").read_text())["digits"] | {"sources": []}
    configuration.append("datasets.yaml", yaml.safe_dump({"own": entry})).append(CLAIMS, OWN_CLAIM)
    configuration.change(PAPER, "\nhessian:", f"\n{CELLS}\nhessian:")
    return configuration.change(PAPER, "artifacts:\n", f"artifacts:\n{TABLE}")


def test_what_rests_on_data_that_nobody_brought_is_left_out_and_said(own):
    planned = own.plan()
    assert planned.wanting == {"own_table": ["own"]}
    for target in ("all", "scalenorm"):
        assert "results/tables/table1.csv" in planned.targets(target)
        assert not any("own_table" in file for file in planned.everything(target))
    assert overview(planned, ["all"], own.root).splitlines()[-1].startswith("left out: own_table: made of own")


def test_an_artifact_of_missing_data_is_refused_with_what_to_bring(own):
    says = "own_table: made of own, which nobody can download; .*config.yaml, folders: {own: /your/copy}"
    planned = own.plan()
    with pytest.raises(UserError, match=says):
        planned.targets("own_table")
    with pytest.raises(UserError, match=says):
        overview(planned, ["own_table"], own.root)


def test_an_artifact_is_planned_where_a_folder_of_its_data_is_named(own):
    planned = own.plan(folders={"own": "/somewhere"})
    assert planned.wanting == {}
    assert "results/tables/own_table.csv" in planned.targets("all")
    assert len(planned.runs_of("own_table")) == 3


def test_an_artifact_is_planned_where_its_data_were_taken_already(own):
    write_json(own.root / plan.DATA / "raw/own/files.json", {})
    assert own.plan().wanting == {}


def test_claims_on_missing_data_are_not_run_and_the_page_is_still_there(own):
    without, there = own.plan(), own.plan(folders={"own": "/somewhere"})
    for planned, runs in ((without, 0), (there, 3)):
        (side,) = sides(planned, claim=-1)
        assert len(side["work"].get("train", {})) == runs
        assert "results/claims.md" in planned.targets("all")
    assert len(sides(without)[0]["work"]["train"]) == 3
    assert not any("/own-" in file for file in without.kept_files())


def test_a_page_so_far_says_that_claims_on_missing_data_are_not_run(own):
    from dpvision.reporting.so_far import write_so_far

    judged = {claim.claim["name"]: claim.verdict for claim in write_so_far(own.plan(), "claims", own.root)}
    assert judged["mine"] == "not run"
    assert Path(own.root / "results/claims.md").exists()


def test_a_scale_s_file_with_a_mistyped_name_is_refused(configuration):
    folder = configuration.root / "config/papers/scalenorm"
    (folder / "demo.yaml").rename(folder / "dmeo.yaml")
    assert configuration.complaints() == [
        'config/papers/scalenorm/dmeo.yaml: there is no scale of this name. Did you mean "demo"? '
        "Allowed: paper, published, claims, demo, laptop, own, simulate, transfer"
    ]


def test_what_a_table_says_of_its_numbers_reaches_its_maker_and_nothing_that_it_leaves_out(configuration):
    said = "statistic: mean\n    spread: standard_error\n    metrics: [{name: top1, weights: averaged}]"
    configuration.change(PAPER, "statistic: best", said)
    configuration.change(PUBLISHED, "metric: top1, statistic", "metric: top1, split: test, statistic")
    made = configuration.plan().artifacts
    averaged = {"weights": "averaged", "split": "test", "name": "top1"}
    assert [made["table4"][key] for key in ("statistic", "spread", "metrics")] == ["mean", "standard_error", [averaged]]
    assert not {"spread", "metrics", "panels", "rows", "columns", "names"} & made["table1"].keys()
    first, second = made["table1"]["published"][:2]
    assert (first["split"], "weights" in first, "split" in second) == ("test", False, False)


# --- how tables are laid out ---

BEST = "statistic: best\n"
COORDINATES = "dataset, model, recipe, search, epsilon, delta, protocol, held_out, metric, weights, split, statistic"


def laid(configuration, said: str):
    return configuration.change(PAPER, BEST, f"{BEST}    {said}\n")


def test_the_layout_of_a_table_reaches_its_maker(configuration):
    said = "panels: [dataset]\n    rows: [model]\n    columns: [epsilon, metric]\n    names: {model: {resnet9: Plain}}"
    made = laid(configuration, said).plan().artifacts["table4"]
    assert [made[key] for key in ("panels", "rows", "columns")] == [["dataset"], ["model"], ["epsilon", "metric"]]
    assert made["names"] == {"model": {"resnet9": "Plain"}}


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            "rows: [model, epsilonn]",
            'rows[1] = "epsilonn": there is no coordinate "epsilonn" of its cells. Did you mean "epsilon"? '
            f"Allowed: {COORDINATES}",
        ),
        (
            "names: {modle: {resnet9: Plain}}",
            f'names.modle: there is no coordinate "modle" of its cells. Did you mean "model"? Allowed: {COORDINATES}',
        ),
        (
            "names: {model: {resnet8: Plain}}",
            'names.model.resnet8: there is no model "resnet8". Did you mean "resnet9"? Allowed: ',
        ),
        ("rows: [model]\n    columns: [model]", 'columns[0] = "model": stands in rows already; keep one of them'),
        (
            "names: {model: {resnet9: Same, scaleresnet9: Same}}",
            "names: cells of cifar10 and cifar10 would share a place: they differ only in what is called the same",
        ),
    ],
)
def test_a_layout_that_no_table_can_have_is_refused_in_the_plan_with_what_is_allowed(configuration, said, line):
    (complaint,) = laid(configuration, said).complaints()
    assert complaint.startswith(f"config/{PAPER}: artifacts.table4.{line}")


@pytest.mark.parametrize(
    ("kind", "option", "name"),
    [
        ("{kind: heatmap, x: model, y: epsilonn, metric: {name: top1}}", "y", "epsilonn"),
        ("{kind: sweep, x: [epsilon, sigma, mu, stepps], metrics: [{name: top1}]}", "x[3]", "stepps"),
        ("{kind: sweep, x: [epsilon], lines: [modle], metrics: [{name: top1}]}", "lines[0]", "modle"),
        ("{kind: by_epsilon, levels: [1.0], lines: model, panels: datset, metric: {name: top1}}", "panels", "datset"),
    ],
)
def test_an_axis_that_is_no_coordinate_of_its_cells_is_refused_in_the_plan(configuration, kind, option, name):
    figure = kind.replace("{", "{title: A figure, cells: [cifar10], ", 1)
    configuration.change(PAPER, "artifacts:\n", f"artifacts:\n  drawn: {figure}\n")
    (complaint,) = configuration.complaints()
    said = f'artifacts.drawn.{option} = "{name}": there is no coordinate "{name}" of its cells. Did you mean '
    assert complaint.startswith(f"config/{PAPER}: {said}")


def test_a_scale_may_have_papers_of_its_own(configuration):
    shutil.copytree(configuration.root / "config/papers/scalenorm", configuration.root / "config/papers/other")
    for name in ("demo.yaml", "simulate.yaml"):
        (configuration.root / "config/papers/scalenorm" / name).unlink()
    configuration.change("scales/demo.yaml", "title:", "papers: [other]\ntitle:")
    assert list(configuration.plan(scale="demo").papers) == ["other"]
    assert list(configuration.plan(scale="paper").papers) == ["scalenorm"]


def test_a_papers_name_that_a_scale_mistypes_is_named(configuration):
    configuration.change("scales/demo.yaml", "title:", "papers: [scalenrom]\ntitle:")
    (line,) = configuration.complaints(scale="demo")
    assert line.startswith(
        'config/scales/demo.yaml: papers[0] = "scalenrom": there is no paper "scalenrom". Did you mean "scalenorm"?'
    )


def test_every_number_in_print_on_a_laptop_is_another_work_beside_ours():
    made = plan.load({"papers": ["laptop"], "scale": "laptop"}, ROOT)
    for name in ("laptop_table", "laptop_figure"):
        spec = made.artifacts[name]
        assert {row["at"]["dataset"] for row in spec["published"]} == {cell["at"]["dataset"] for cell in spec["cells"]}
        assert {row["at"]["model"] for row in spec["published"]} == set(spec["works"])
