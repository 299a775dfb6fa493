"""Numbers laid out as people know tables: panels, rows and columns by coordinates."""

import pytest

from dpvision.errors import UserError
from dpvision.reporting.layout import Entry, Panel, lay_out


def entry(text: str = "1", **at) -> Entry:
    return Entry({"dataset": "cifar10", "model": "wrn", "epsilon": 8.0, "metric": "top1"} | at, text)


def laid(entries: list[Entry], names: dict | None = None, **said: list[str]) -> list[Panel]:
    cells = [{key: value for key, value in one.at.items() if key not in ("metric", "statistic", "split")} for one in entries]
    return lay_out(entries, cells, said, names or {})


def grid(panel: Panel) -> list[list[str]]:
    return [[*panel.names, *panel.columns], *panel.rows]


# De et al., table 3: networks as rows, ε as columns
NETWORKS = [
    entry(f"{model} {epsilon}", model=model, epsilon=epsilon) for model in ("wrn16_4", "wrn40_4") for epsilon in (8, 1, 2)
]


def test_rows_and_columns_are_those_that_are_said_and_epsilon_grows_from_left_to_right():
    (panel,) = laid(NETWORKS, rows=["model"], columns=["epsilon"])
    assert grid(panel) == [
        ["model", "ε = 1", "ε = 2", "ε = 8"],
        ["wrn16_4", "wrn16_4 1", "wrn16_4 2", "wrn16_4 8"],
        ["wrn40_4", "wrn40_4 1", "wrn40_4 2", "wrn40_4 8"],
    ]
    assert panel.heading == "cifar10, top-1"


def test_without_a_word_data_sets_are_panels_and_epsilons_columns():
    entries = [entry(dataset=dataset, epsilon=epsilon) for dataset in ("b", "a") for epsilon in (None, 1.0)]
    first, second = laid(entries)
    assert (first.heading, second.heading) == ("b, wrn, top-1", "a, wrn, top-1")
    assert first.columns == ["ε = 1", "not private"]


def test_without_several_epsilons_metrics_are_columns():
    (panel,) = laid([entry("70", metric="top1"), entry("90", metric="top5")])
    assert grid(panel) == [["top-1", "top-5"], ["70", "90"]]


def test_what_tells_numbers_apart_and_is_not_said_becomes_a_row():
    entries = [entry(str(batch), epsilon=epsilon, **{"recipe.batch": batch}) for batch in (256, 512) for epsilon in (1.0, 2.0)]
    (panel,) = laid(entries, columns=["epsilon"])
    assert grid(panel) == [["batch", "ε = 1", "ε = 2"], ["256", "256", "256"], ["512", "512", "512"]]


def test_values_are_called_and_ordered_as_they_are_named():
    names = {"model": {"wrn40_4": "large", "wrn16_4": "small"}}
    (panel,) = laid(NETWORKS, names, rows=["model"], columns=["epsilon"])
    assert [row[0] for row in panel.rows] == ["large", "small"]


def test_values_that_are_called_the_same_share_a_row():
    """Lay out as ScaleNorm does in table 2: two networks with and without, each at its ε, in four places."""
    models = {"scalewrn": ("wide", 8.0), "wrn": ("wide", 8.0), "scaleresnet9": ("narrow", 7.42), "resnet9": ("narrow", 7.42)}
    entries = [entry(model, model=model, recipe=recipe, epsilon=epsilon) for model, (recipe, epsilon) in models.items()]
    called = {model: "ScaleNorm" if model.startswith("scale") else "No ScaleNorm" for model in models}
    (panel,) = laid(entries, {"model": called, "recipe": {"wide": "WRN"}}, rows=["model"], columns=["recipe", "epsilon"])
    assert grid(panel) == [
        ["model", "WRN, ε = 8", "narrow, ε = 7.42"],
        ["ScaleNorm", "scalewrn", "scaleresnet9"],
        ["No ScaleNorm", "wrn", "resnet9"],
    ]


def test_two_numbers_in_one_place_are_refused():
    entries = [entry(metric=metric) for metric in ("trace", "trace, all samples")]
    with pytest.raises(UserError, match="two numbers have one place.*do not call their coordinates the same"):
        laid(entries, {"metric": {"trace": "trace", "trace, all samples": "trace"}}, rows=["metric"])


def test_a_place_without_a_number_has_a_dash_and_a_row_that_says_nothing_is_left_out():
    entries = [entry("a", protocol="clean", epsilon=1.0), entry("b", protocol="clean", epsilon=2.0)]
    entries += [entry("c", model="other", protocol="clean", epsilon=2.0)]
    (panel,) = laid(entries, rows=["model", "protocol"], columns=["epsilon"])
    assert grid(panel) == [["model", "ε = 1", "ε = 2"], ["wrn", "a", "b"], ["other", "–", "c"]]


def test_a_column_says_its_statistic_and_split_only_where_these_tell_it_from_another():
    entries = [
        entry("1", statistic="best trial", split="validation"),
        entry("2", statistic="mean", split="test"),
        entry("3", statistic="mean", split="validation"),
        entry("4", metric="million_parameters", statistic="mean", split=None),
    ]
    (panel,) = laid(entries, columns=["metric", "split", "statistic"])
    assert panel.columns == [
        "top-1, validation, best trial",
        "top-1, validation, mean",
        "top-1, test",
        "million parameters",
    ]


def test_a_coordinate_that_is_not_known_has_a_dash_beside_those_that_are():
    entries = [entry("ours", search="tune"), Entry({"dataset": "cifar10", "model": "vgg", "metric": "top1"}, "26.6")]
    (panel,) = lay_out(entries, [entries[0].at], {"rows": ["model", "search"], "columns": ["metric"]}, {})
    assert ["vgg", "–", "–", "26.6"] in panel.rows  # neither its search nor its ε
