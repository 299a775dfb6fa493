"""Every experiment that Remerscheid et al. print is planned, and those of the scales are parts of it."""

from collections import Counter

import pytest

from dpvision import plan
from dpvision.plan import cost, specs
from dpvision.privacy.accounting import calibrate

SCALES = ["paper", "simulate", "demo"]
CARD = 1e12  # multiply-adds a second, as the scale paper says


PAPER = "smoothnets"


def studies_of(planned: plan.Plan, artifact: str) -> list[specs.Spec]:
    return [planned.work["search", name] for stage, name in planned.work_of(artifact) if stage == "search"]


def test_trainings_and_searches_by_artifact(shipped):
    planned = shipped("paper")
    counts = {name: Counter(stage for stage, _ in set(planned.work_of(name))) for name in planned.artifacts}
    networks = 66 + 29  # of the notebook, and SmoothNet's parts with one of them changed
    blocks = {"train": 3 * (2 * networks + 3), "search": networks}
    standard = {"train": 3 * 2 * (3 * 3 + 8), "search": 3 * 3 + 8}  # three with three norms
    assert {name: dict(count) for name, count in counts.items()} == {
        "smoothnets_table1": {},
        "smoothnets_table2": {"train": 3 * 15, "search": 15},  # five, and four fair ones; five, and one fair one
        "smoothnets_table2_variants": {"train": 3 * 4, "search": 4},
        "smoothnets_table2_found": {"train": 3 * 2},
        "smoothnets_figure1": {},
        "smoothnets_figure2": {"train": 3 * 5, "search": 5},
        "smoothnets_search_price": {},
        "smoothnets_components": blocks,
        "smoothnets_components_standard": standard,
        "smoothnets_components_pairs": {"train": 3 * 2 * 6, "search": 6},
        "smoothnets_components_benchmark": {"train": 3 * 4, "search": 4},
        **{f"smoothnets_components_{x}": blocks for x in ("ratio", "connection", "normalisation", "activation", "pooling")},
        "smoothnets_components_privacy": blocks,
        "smoothnets_components_normalisation_standard": standard,
        "smoothnets_components_privacy_standard": standard,
        "smoothnets_claims": {"train": len(set(planned.runs_of("smoothnets_claims")))},
    }


def test_what_is_the_same_training_is_planned_once(shipped):
    """SmoothNet at ε = 7 is in table 2 and figure 2, at ε = 10 in figure 2 and the study; pairs are of the notebook."""
    planned = shipped("paper")
    assert (len(planned.runs), len(planned.of("search"))) == (
        3 * (15 + 4 + 2 + (5 - 1) + (4 - 1)) + 3 * (2 * 95 + 3) + 3 * 2 * 17,
        15 + 4 + (5 - 1) + (4 - 1) + 95 + 17,
    )
    pairs = set(planned.runs_of("smoothnets_components_pairs"))
    assert pairs <= set(planned.runs_of("smoothnets_components"))


def test_the_benchmark_s_search_is_as_printed(shipped):
    for name in ("smoothnets_table2", "smoothnets_table2_variants", "smoothnets_figure2", "smoothnets_components_benchmark"):
        for study in studies_of(shipped("paper"), name):
            assert study["space"] == {"recipe.clip": {"uniform": [0.1, 20.0]}, "recipe.epochs": [90, 120, 180]}
            assert (study["trials"], study["objective"]) == (15, "validation_loss")
            recipe = study["run"]["recipe"]
            sgd = {"name": "sgd", "learning_rate": 0.002, "momentum": 0.9, "weight_decay": 2e-4}
            assert (recipe["optimizer"], recipe["batch"]) == (sgd, 256)
            assert recipe["schedule"] == {"name": "step", "factor": 0.9, "every": 5, "unit": "epochs"}
            assert "stop" not in recipe


def test_the_study_s_search_is_as_printed(shipped):
    studies = studies_of(shipped("paper"), "smoothnets_components") + studies_of(
        shipped("paper"), "smoothnets_components_standard"
    )
    for study in studies:
        assert study["space"] == {"recipe.clip": {"uniform": [0.1, 10.0]}, "recipe.epochs": [15, 30]}
        assert (study["trials"], study["run"]["budget"]["epsilon"], study["run"]["recipe"]["batch"]) == (15, 10.0, 128)
        assert study["run"]["recipe"]["stop"] == {"patience": 15, "above": 1000.0}
        assert study["run"]["recipe"]["schedule"] == {"name": "step", "factor": 0.7, "every": 1, "unit": "epochs"}


def test_the_starts_are_the_code_s_and_that_of_relu_is_a_variant(shipped):
    gains = Counter(
        study["run"]["recipe"]["initialization"]["gain"] for study in studies_of(shipped("paper"), "smoothnets_table2")
    )
    assert gains == {0.75: 15}
    gains = Counter(
        round(study["run"]["recipe"]["initialization"]["gain"], 6)
        for study in studies_of(shipped("paper"), "smoothnets_table2_variants")
    )
    assert gains == {0.75: 1, 1.414214: 3}
    assert not any(
        study["run"]["recipe"].get("initialization") for study in studies_of(shipped("paper"), "smoothnets_components")
    )


@pytest.mark.parametrize(
    ("data", "count", "sigmas"),
    [("cifar10", 40_000, (0.841, 0.903, 1.014)), ("imagenette224", 7_576, (1.446, 1.617, 1.911))],
)
def test_the_noise_of_the_benchmark_is_that_which_was_decided(shipped, data, count, sigmas):
    (study,) = [
        study
        for study in studies_of(shipped("paper"), "smoothnets_table2")
        if study["run"]["data"]["name"] == data and study["run"]["model"]["family"] == "smoothnet"
    ]
    assert specs.training_count(study["run"]) == count
    found = []
    for epochs in study["space"]["recipe.epochs"]:
        run = specs.with_values(study["run"], {"recipe.epochs": epochs})
        found.append(calibrate(7.0, run["budget"]["delta"], specs.sampling_rate(run), specs.step_count(run)))
    assert found == pytest.approx(sigmas, abs=6e-4)


def test_a_cell_of_table_2_says_its_data_network_and_search(shipped):
    first = shipped("paper").artifacts["smoothnets_table2"]["cells"][0]["at"]
    assert first == {
        "dataset": "cifar10",
        "model": "resnet18_literal",
        "recipe": "benchmark",
        "search": "sweep",
        "epsilon": 7.0,
        "delta": 1e-5,
        "protocol": "clean",
        "held_out": 10_000,
    }


def test_a_network_of_the_study_says_what_it_is_built_of(shipped):
    cells = [cell["at"] for cell in shipped("paper").artifacts["smoothnets_components"]["cells"]]
    keys = [f"model.{key}" for key in ("connection", "width", "depth", "pool", "norm", "activation")]
    assert all([key for key in at if key.startswith("model.")] == keys for at in cells)
    private = [tuple(at[key] for key in keys) for at in cells if at["epsilon"] is not None]
    not_private = [tuple(at[key] for key in keys) for at in cells if at["epsilon"] is None]
    assert len(private) == len(set(private)) == 95
    assert set(not_private) - set(private) == {
        ("dense", 8.0, 5, "max", "batch", "selu"),
        ("dense", 8.0, 1, "max", "batch", "selu"),
        ("residual", 8.0, 1, "max", "batch", "selu"),
    }


OTHERS = {"papernot2020", "klause2022", "doermann2021", "de2022"}
NOT_BUILT = {
    *("xception", "mobilenetv1"),
    *(f"mobilenetv1_x0{share}" for share in (25, 50, 75)),
    *(f"resnet18_x0{share}" for share in (25, 50, 75)),
    *(f"densenet121_x0{share}" for share in (25, 50, 75)),
    *("resnet18_x025_ln", "resnet18_x025_in"),
}


def test_every_number_has_a_cell_of_ours_but_those_of_other_works_and_of_networks_that_are_not_built(shipped):
    planned, without = shipped("paper"), set()
    for name, artifact in planned.artifacts.items():
        for row in artifact.get("published", []):
            found = [cell for cell in artifact["cells"] if row["at"].items() <= cell["at"].items()]
            assert len(found) <= 1, (name, row)
            without |= set() if found else {row["at"]["model"]}
    assert without == OTHERS | NOT_BUILT


def test_numbers_by_artifact(shipped):
    artifacts = shipped("paper").artifacts
    assert {name: len(artifacts[f"smoothnets_{name}"]["published"]) for name in ("table1", "table2", "figure2")} == {
        "table1": 5,
        "table2": 2 * 10,
        "figure2": 5 + 4,
    }
    assert len(artifacts["smoothnets_components"]["published"]) == 2 * 66


def test_every_claim_is_decided_by_cells_that_are_there(shipped):
    for claim in shipped("paper").artifacts["smoothnets_claims"]["claims"]:
        for comparison in claim["comparisons"]:
            assert all(side["work"]["train"] for side in comparison["sides"]), claim["name"]


def test_what_the_paper_counts_on_held_out_examples_is_compared_on_them(shipped):
    found = {claim["name"]: claim["comparisons"] for claim in shipped("paper").artifacts["smoothnets_claims"]["claims"]}
    printed = [one for of in found.values() for one in of if one.get("printed")]
    assert len(printed) == 46 and {one["split"] for one in printed} == {"validation"}
    (beside,) = found["best_with_the_authors_values"]
    assert (beside["split"], beside["printed"]) == ("validation", [73.5, 59.8]) and "source" not in beside
    first = found["residual_beneficial"][0]
    assert (first["printed"], first["source"]) == ([46.4, 49.3], "the authors' notebook")
    of_others = [one for name in ("best_architecture", "better_than_all_but_de") for one in found[name]]
    assert {(one.get("split"), one["printed"], one["published"]) for one in of_others} == {(None, None, None)}


def test_every_number_of_the_study_says_that_the_notebook_has_it(shipped):
    for name, artifact in shipped("paper").artifacts.items():
        if name.startswith("smoothnets_components"):
            assert {row["source"] for row in artifact["published"]} == {"the authors' notebook"}


@pytest.mark.parametrize(
    ("scale", "trainings", "searches", "data"),
    [("simulate", 2 + 9 + 3 * 7, 0, {"cifar10"}), ("demo", 2 + 1 + 4, 2, {"digits"})],
)
def test_scales_show_what_their_data_allow(shipped, scale, trainings, searches, data):
    planned = shipped(scale)
    assert (len(planned.runs), len(planned.of("search"))) == (trainings, searches)
    assert {run["data"]["name"] for run in planned.runs.values()} == data


def test_the_demo_shows_every_kind_of_artifact(shipped):
    kinds = [{artifact["kind"] for artifact in shipped(scale).artifacts.values()} for scale in ("paper", "demo")]
    assert kinds[0] == kinds[1]


def test_what_is_simulated_is_not_private_and_says_so(shipped):
    planned = shipped("simulate")
    assert {run["recipe"]["simulate"] for run in planned.runs.values()} == {8, 64}
    for name, artifact in planned.artifacts.items():
        assert all(cell.get("simulated") in (8, 64) for cell in artifact.get("cells", [])), name


def test_a_long_simulation_has_the_printed_rate_whenever_it_is_looked_at(shipped):
    (recipe,) = (run["recipe"] for name, run in shipped("simulate").runs.items() if "-smoothnet-w8d5-" in name)
    passes = recipe["schedule"]["every"] / (40_000 / 256)
    assert recipe["schedule"]["unit"] == "steps" and recipe["schedule"]["factor"] == 0.9
    assert passes == pytest.approx(5, abs=0.01)  # section 3: times 0.9 every five epochs


def test_every_training_with_the_greatest_values_of_its_search_ends_in_days_on_one_card(shipped):
    planned = shipped("paper")
    for name, run in planned.runs.items():
        found = cost.training(planned.dearest_run_of(("train", name)), 256)
        assert found.devices == 1
        days = found.minutes(CARD) / (24 * 60)
        assert 0 < days < (1 if run["data"]["name"] == "cifar10" else 4), name


@pytest.mark.parametrize("scale", SCALES)
def test_another_paper_beside_it_changes_nothing_of_a_paper(shipped, scale):
    alone = plan.load({"papers": ["scalenorm"], "scale": scale})
    both = plan.load({"papers": ["scalenorm", "smoothnets"], "scale": scale})
    assert alone.work.items() <= both.work.items()
    assert alone.artifacts.items() <= both.artifacts.items()
    assert set(both.papers["smoothnets"]) == set(shipped(scale).papers["smoothnets"])
