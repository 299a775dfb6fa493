"""Claims: what they may say, and what they rest on at each scale."""

from pathlib import Path

import pytest
import yaml

CLAIMS = "papers/scalenorm/claims.yaml"
PAPER = "papers/scalenorm/paper.yaml"
DEMO = "papers/scalenorm/demo.yaml"
PAGE = ("  claims:\n    kind: claims\n    title: What the paper says, and whether it holds\n", "")
ONE = "- {kind: level, dataset: cifar10, model: scaleresnet9, epsilon: 7.42, than: 71.2, claimed: {above: -2, below: 2}}"
AT = "comparable_to_baseline.comparisons[0]"
AMONG = "among the cells of table1 with protocol: clean"
RESNET9S = "table1 with protocol: clean, dataset: cifar10, model:"


def said(**changes: str) -> str:
    """Return the comparison above with other words."""
    words = {"kind": "level", "dataset": "cifar10", "model": "scaleresnet9", "epsilon": "7.42", "than": "71.2"}
    words |= {"claimed": "{above: -2, below: 2}"} | changes
    return "- {" + ", ".join(f"{key}: {value}" for key, value in words.items() if value) + "}"


PAIR = {"kind": "difference", "model": "", "epsilon": "", "than": "", "epsilons": "[7.42]"}
BASELINE = "{dataset: cifar10, models: [resnet9, resnet50], epsilon: 7.42}"
MOMENT = {"kind": "moment", "than": "", "moment": "mean"}

SPOILT = [
    (said(kind="levle"), f'{AT}.kind = "levle": must be "best_of" or "best_trend" or "best_value" or "bounds" or '),
    (
        said(model="scalresnet9"),
        f'{AT}.model = "scalresnet9": there is no model "scalresnet9" {AMONG}, dataset: cifar10. Did you mean "scaleresnet9"?',
    ),
    (
        said(dataset="cifar100"),
        f'{AT}.dataset = "cifar100": there is no data set "cifar100" {AMONG}. Did you mean "cifar10"?',
    ),
    (said(epsilon="7.4"), f"{AT}.epsilon = 7.4: no cell of {RESNET9S} scaleresnet9 has this ε; allowed: 2.89, 7.42, 9.88"),
    (said(epsilon="null"), f"{AT}.epsilon = null: no cell of {RESNET9S} scaleresnet9 has this ε; allowed: 2.89, 7.42, 9.88"),
    (said(where="{varied: {recipe.batch: 5}}"), f'{AT}.where.recipe.batch = 5: there is no recipe.batch "5" among the cells '),
    (said(tahn="3"), f'{AT}.tahn = 3: unknown key. Did you mean "than"?'),
    (said(claimed="{}"), f"{AT}.claimed: must say above, below or both"),
    (said(claimed="{about: [1, 2]}"), f"{AT}.claimed: must say above, below or both"),
    (said(claimed="{above: 2, below: 1}"), f"{AT}.claimed: nothing lies above 2 and below 1"),
    (said(claimed="{above: 0, about: [2, 1]}"), f"{AT}.claimed: nothing lies above 2 and below 1"),
    (said(**PAIR, models="[resnet9]"), f'{AT}.models = ["resnet9"]: must be a list of 2 values'),
    (
        said(**PAIR, models="[resnet9, resnet9]"),
        f"{AT}: compares resnet9 with itself; say what differs, as by against: {{recipe: ...}}",
    ),
    (
        said(**PAIR | {"kind": "reach"}, models="[resnet9, resnet9]"),
        f"{AT}: compares resnet9 with itself; say what differs, as by against: {{recipe: ...}}",
    ),
    (
        said(**PAIR, models="[resnet9, resnet8]"),
        f'{AT}.models[1] = "resnet8": there is no model "resnet8" {AMONG}, dataset: cifar10. Did you mean "resnet9"?',
    ),
    (
        said(**PAIR, models="[scaleresnet9, resnet9]", other_epsilon="3.5"),
        f"{AT}.other_epsilon = 3.5: no cell of {RESNET9S} resnet9 has this ε; allowed: 2.89, 7.42, 9.88",
    ),
    (
        said(
            **PAIR | {"kind": "interaction"},
            models="[scaleresnet9, resnet9]",
            minus=BASELINE,
        ),
        f'{AT}.minus.models[1] = "resnet50": there is no model "resnet50" {AMONG}, dataset: cifar10. Did you mean "resnet9"?',
    ),
    (
        said(**PAIR | {"kind": "curvature"}, models="[scaleresnet9, resnet9]", quantity="trce"),
        f'{AT}.quantity = "trce": must be "trace" or "trace_full" or ',
    ),
    (
        said(**MOMENT | {"model": "resnet9"}, place="V_A^S"),
        f'{AT}.place = "V_A^S": resnet9 has no ScaleNorm to look behind; allowed: V_R, V_F, V_A',
    ),
    (
        said(**MOMENT, place="V_A", minus="{model: resnet9, place: V_A^S}"),
        f'{AT}.minus.place = "V_A^S": resnet9 has no ScaleNorm to look behind; allowed: V_R, V_F, V_A',
    ),
]


PUBLISHED = "papers/scalenorm/published.yaml"
PRINTED = "model: scaleresnet9, epsilon: 7.42, metric: top1, statistic: median, value: 71.8"


def test_a_number_in_print_is_not_set_beside_other_examples_than_its_own(configuration):
    level = said(published="0.6")
    configuration.change(CLAIMS, ONE, level).plan()  # of test examples, both
    for row in (PRINTED, PRINTED.replace("median, value: 71.8", "best, value: 72.4")):
        configuration.change(PUBLISHED, row, row.replace("top1,", "top1, split: validation,"))
    (complaint,) = configuration.complaints()
    says = "the numbers in print are of validation examples, not of test: say split: validation"
    assert complaint.startswith(f"config/{CLAIMS}: {AT}.published = 0.6: {says}")
    planned = configuration.change(CLAIMS, level, said(split="validation")).plan()
    (found,) = comparisons(planned.artifacts["claims"], "comparable_to_baseline")
    assert (found["split"], found["printed"]) == ("validation", [71.8])


def test_a_comparison_says_what_has_the_numbers_that_no_paper_prints(configuration):
    def sources() -> list[str | None]:
        found = comparisons(page(configuration), "better_on_all_tasks")
        return [one.get("source") for one in found]

    assert sources() == [None] * 3
    configuration.change(PUBLISHED, PRINTED, PRINTED + ", source: the authors' notebook")
    assert sources() == [None, "the authors' notebook", None]


@pytest.mark.parametrize(("new", "says"), SPOILT, ids=[says[:60] for _, says in SPOILT])
def test_a_claim_that_cannot_be_decided_is_refused(configuration, new, says):
    complaints = configuration.change(CLAIMS, ONE, new).complaints()
    assert len(complaints) == 1
    assert complaints[0].startswith(f"config/{CLAIMS}: {says}")


def test_a_quotation_leaves_out_in_brackets_and_what_is_in_our_words_says_so(configuration):
    files = [*(Path(__file__).parents[2] / "config/papers").rglob("claims.yaml")]
    claims = {name: claim for file in files for name, claim in yaml.safe_load(file.read_text("utf-8")).items()}
    assert [name for name, claim in claims.items() if "…" in claim["text"]] == []
    assert claims["not_better_below_3"]["in_our_words"] and "in_our_words" not in claims["audit_finds_no_violation"]
    configuration.change(CLAIMS, "  section:", "  in_our_words: true\n  section:")
    assert [claim["in_our_words"] for claim in page(configuration)["claims"]][:2] == [True, False]


def test_a_claim_by_an_artifact_that_there_is_not_is_refused(configuration):
    (complaint,) = configuration.change(CLAIMS, "artifacts: [table1]", "artifacts: [table11]").complaints()
    says = 'better_on_all_tasks.artifacts[0] = "table11": there is no artifact "table11". Did you mean "table1"?'
    assert complaint.startswith(f"config/{CLAIMS}: {says}")


def test_a_cell_of_no_artifact_of_the_claim_is_not_meant(configuration):
    before = configuration.plan().artifacts["claims"]["claims"]
    again = "  again: {dataset: cifar10, models: [resnet9], recipe: resnet9, epsilons: [7.42], delta: 1.0e-6}"
    configuration.change(PAPER, "\nhessian:", f"\n{again}\nhessian:")
    assert configuration.plan().artifacts["claims"]["claims"] == before


def test_a_figure_may_be_called_claims_where_no_page_is(configuration):
    configuration.change(CLAIMS, "artifacts: [figure3]", "artifacts: [claims]")
    configuration.change(CLAIMS, "artifacts: [figure3]", "artifacts: [claims]")
    planned = configuration.change(PAPER, *PAGE).change(PAPER, "  figure3:", "  claims:").plan()
    assert planned.targets("claims")[0] == "results/figures/claims.csv"


def page(configuration, **settings) -> dict:
    return configuration.plan(**settings).artifacts["claims"]


def comparisons(of: dict, name: str) -> list[dict]:
    return next(claim["comparisons"] for claim in of["claims"] if claim["name"] == name)


def seeds(comparison: dict) -> int:
    """Count the seeds of its first side: none where the scale leaves it out."""
    return len(comparison["sides"][0]["work"].get("train", {}))


def test_there_is_a_comparison_for_each_epsilon_with_every_seed_of_both_models(configuration):
    planned = configuration.plan()
    found = comparisons(planned.artifacts["claims"], "better_on_all_tasks")
    assert [one["sides"][0]["at"]["epsilon"] for one in found] == [2.89, 7.42, 9.88]
    assert [one["printed"] for one in found] == [[65.6, 65.0], [71.8, 71.4], [73.0, 72.4]]
    for one in found:
        assert [side["at"]["model"] for side in one["sides"]] == ["scaleresnet9", "resnet9"]
        assert all(set(side["work"]["train"]) == {"34", "50", "113"} for side in one["sides"])
        assert {run for side in one["sides"] for run in side["work"]["train"].values()} <= set(planned.runs_of("table1"))


def test_the_best_in_print_stand_before_the_medians(configuration):
    (one,) = comparisons(page(configuration), "best_further_apart")
    assert one["printed"] == [72.4, 71.5, 71.8, 71.4]


def test_nothing_is_trained_for_a_claim_alone(configuration):
    planned = configuration.plan()
    of_others = {run for name in planned.artifacts if name != "claims" for run in planned.runs_of(name)}
    assert set(planned.runs_of("claims")) == of_others == set(planned.runs)


def test_activations_are_looked_at_with_every_seed(configuration):
    planned = configuration.plan()
    assert len(planned.of("activations")) == 6
    assert len(planned.inputs_of("figure2")["histograms"]) == 2
    assert sum(file.endswith("/histograms.csv") for file in planned.inputs_of("claims")["records"]) == 6


def stand_ins(comparison: dict) -> list[dict]:
    return [side.get("instead", {}) for side in comparison["sides"]]


def test_another_scale_shows_what_it_has_in_the_place_of_data_and_networks_and_says_what_that_is(configuration):
    for one in comparisons(page(configuration, scale="demo"), "better_on_all_tasks"):
        assert {side["at"]["dataset"] for side in one["sides"]} == {"digits"}
        assert all(len(side["work"]["train"]) == 3 for side in one["sides"])
        assert stand_ins(one) == [{"dataset": ["cifar10", "digits"], "model.width": [1.0, 0.125]}] * 2


def test_a_scale_that_keeps_data_and_networks_has_no_stand_ins(configuration):
    for scale in ("paper", "simulate"):
        found = [one for claim in page(configuration, scale=scale)["claims"] for one in claim["comparisons"]]
        assert not any(map(any, map(stand_ins, found)))


@pytest.mark.parametrize("value", ["16", "{search: groups}"])
def test_what_the_paper_leaves_to_a_search_is_its_own_with_any_value(configuration, value):
    configuration.change(DEMO, "resnet9: {width: 0.125}", f"resnet9: {{groups: {value}}}")
    configuration.change(DEMO, "dataset: digits, delta: 1.0e-4", "delta: 1.0e-5")
    (one,) = comparisons(page(configuration, scale="demo"), "comparable_to_baseline")
    assert stand_ins(one) == [{"model.width": [1.0, 0.125]}]  # of the other model, which is narrow
    found = comparisons(page(configuration, scale="demo"), "better_on_all_tasks")
    assert [stand_ins(one)[1] for one in found] == [{}] * 3


@pytest.mark.parametrize("name", ["comparable_to_baseline", "parameters_resnet9"])
def test_numbers_in_print_are_not_held_against_other_data_or_another_network(configuration, name):
    for scale, there in (("paper", True), ("simulate", True), ("demo", False)):
        (one,) = comparisons(page(configuration, scale=scale), name)
        assert bool(one["sides"][0]["work"]) == there
        assert any(stand_ins(one)) != there


def test_parameters_are_counted_in_one_run_s_weights(configuration):
    files = configuration.plan().inputs_of("claims")["records"]
    assert sum(file.endswith("/weights.safetensors") for file in files) == 1


@pytest.mark.parametrize(
    ("left_out", "without"),
    [
        ("{hessian: null, spectrum: null}", {"lower_trace", "lower_condition_number", "fewer_negative_eigenvalues"}),
        ("{figure2: null}", {"lopsided_without", "normal_behind_scale_norm", "more_symmetric"}),
        ("{table1: null, table4: null, hessian: null, spectrum: null, figure2: null, figure3: null}", {"better_on_all_tasks"}),
    ],
)
def test_what_a_scale_leaves_out_is_not_asked_for(configuration, left_out, without):
    configuration.change(DEMO, "hessian:", f"artifacts: {left_out}\nhessian:")
    planned = configuration.plan(scale="demo")
    for name in without:
        sides = [side for one in comparisons(planned.artifacts["claims"], name) for side in one["sides"]]
        assert [side["work"] for side in sides] == [{}] * len(sides)
    if "hessian" in left_out:
        assert planned.of("hessian") == {}
        assert not any("/hessians/" in file for file in planned.inputs_of("claims")["records"])


def test_who_trains_at_another_epsilon_need_not_touch_the_claims(configuration):
    configuration.change("papers/scalenorm/paper.yaml", "epsilons: [2.89,", "epsilons: [3.0,")
    found = comparisons(page(configuration), "better_on_all_tasks")
    assert [seeds(one) for one in found] == [0, 3, 3]


def test_an_epsilon_that_a_scale_does_not_train_at_is_left_out(configuration):
    configuration.change(DEMO, "dataset: digits, delta", "dataset: digits, epsilons: [7.42], delta")
    found = comparisons(page(configuration, scale="demo"), "better_on_all_tasks")
    assert [seeds(one) for one in found] == [0, 3, 0]
    assert found[0]["sides"][0]["at"]["dataset"] == "cifar10"


def test_the_page_is_a_target_of_its_own_of_everything_and_of_the_only_paper_that_it_is_about(configuration):
    planned = configuration.plan()
    for target in ("claims", "all", "scalenorm"):
        assert {"results/claims.csv", "results/claims.md", "results/figures/claims.svg"} <= set(planned.targets(target))
        assert "results/hessians" in " ".join(planned.everything(target))
    assert not set(planned.targets("claims")) & set(planned.targets("table1"))


def test_a_paper_without_claims_makes_no_page(configuration):
    configuration.change(PAPER, *PAGE)
    (configuration.root / "config" / CLAIMS).unlink()
    planned = configuration.plan()
    assert "claims" not in planned.artifacts and planned.of_kind("") == []


def test_a_page_without_claims_is_refused_with_their_file(configuration):
    (configuration.root / "config" / CLAIMS).unlink()
    assert configuration.complaints() == [f"config/{CLAIMS}: this file cannot be read: No such file or directory"]
