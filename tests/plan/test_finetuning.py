"""De et al.'s fine-tuning is planned as printed: what it starts from, what trains, and the ε of each row of its tables."""

from collections.abc import Callable

import pytest
from planned import cells_of, runs_of

from dpvision import plan
from dpvision.plan import specs
from dpvision.privacy.accounting import Mechanism, most_steps


@pytest.fixture(scope="module")
def planned() -> Callable[[bool], plan.Plan]:
    """Return the plan of De et al. with or without somebody's copy of ImageNet-32."""
    found: dict[bool, plan.Plan] = {}

    def load(brought: bool = True) -> plan.Plan:
        if brought not in found:
            folders = {"imagenet32": "somewhere"} if brought else {}
            found[brought] = plan.load({"papers": ["de2022"], "scale": "paper", "folders": folders}, plan.ROOT)
        return found[brought]

    return load


def test_what_rests_on_imagenet32_waits_for_a_copy_and_the_rest_does_not(planned):
    made = planned(False)
    alone = [name for name, wanted in made.wanting.items() if wanted == ["imagenet32"]]
    assert alone == ["de2022_before", "de2022_table5", "de2022_table10"]
    for name in ("de2022_table11", *(f"de2022_table{number}" for number in range(16, 21))):
        assert name in made.artifacts
    assert all(made.work["train", name]["data"]["name"] != "imagenet32" for name in made.runs_of("de2022_table11"))
    assert not any("imagenet32" in wanted for wanted in planned(True).wanting.values())


@pytest.mark.parametrize(
    ("artifact", "before", "settings"),
    [
        ("de2022_table5", "imagenet32", (0.3, 5e-5, 1024, 240000)),
        ("de2022_table10", "imagenet32", (0.3, 5e-5, 1024, 240000)),
        ("de2022_table11", "cifar100", (0.1, 5e-4, 128, 100000)),
    ],
)
def test_all_start_from_one_training_without_privacy(planned, artifact, before, settings):
    made = planned(True)
    runs = runs_of(made, artifact)
    (name,) = {run["start"]["run"] for run in runs}
    start = made.work["train", name]
    assert (start["data"]["name"], start["budget"]) == (before, None)
    assert start["model"] == runs[0]["model"]
    optimizer, recipe = start["recipe"]["optimizer"], start["recipe"]
    assert (optimizer["learning_rate"], optimizer["weight_decay"], recipe["batch"], recipe["steps"]) == settings
    assert optimizer["momentum"] == 0.9
    assert recipe["augmentation"]["views"] == 1


def test_images_are_from_minus_1_to_1_before_and_standardised_after(planned):
    made = planned(True)
    after = runs_of(made, "de2022_table5")[0]
    before = made.work["train", after["start"]["run"]]
    assert (before["data"]["mean"], before["data"]["std"]) == ([0.5] * 3, [0.5] * 3)
    assert after["data"]["mean"] == [0.4914, 0.4822, 0.4465]


def test_table_5_has_the_classifier_and_all_layers_on_both_data_sets(planned):
    made = planned(True)
    for dataset in ("cifar10", "cifar100"):
        for train, rate in (("head", 4.0), ("all", 1.0)):
            runs = runs_of(made, "de2022_table5", dataset=dataset, train=train)
            assert len(runs) == 4 * 5
            assert {specs.trained_part(run) for run in runs} == {train}
            assert {run["recipe"]["optimizer"]["learning_rate"] for run in runs} == {rate}
            assert [run["budget"]["epsilon"] for run in runs[::5]] == [1.0, 2.0, 4.0, 8.0]
            assert {run["data"]["validation"] for run in runs} == {0}


# ε in print, and ε by Rényi accounting at N = 50,000: computed with dp_accounting 0.6.0, the orders 1.1 to 10.9 by tenths and
# 12 to 63 (δ = 1e-5; Poisson sampling with q = batch / N).
TABLE16 = [(1, 0.998), (2, 2.003), (4, 4.020), (8, 7.998)]
TABLE20 = [(0.5, 0.446), (1, 0.873), (1.5, 1.330), (2, 1.777), (4, 3.545), (6, 5.306), (8, 7.061)]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(16, TABLE16), (17, TABLE16), (18, TABLE16), (19, TABLE16), (20, TABLE20)],
    ids=lambda v: str(v)[:2],
)
def test_rows_in_print_spend_what_was_computed_elsewhere(planned, number, expected):
    cells = [cell["at"] for cell in planned(False).artifacts[f"de2022_table{number}"]["cells"]]
    assert [at["budget.nominal"] for at in cells] == [printed for printed, _ in expected]
    for at, (_, epsilon) in zip(cells, expected, strict=True):
        mechanism = Mechanism(at["recipe.batch"] / 50000, at["budget.sigma"], at["recipe.steps"])
        assert mechanism.epsilon(at["delta"]) == pytest.approx(epsilon, abs=0.01)


def test_table_11_has_the_steps_that_epsilon_allows_beside_those_in_print(planned):
    made = planned(False)
    solved = cells_of(made, "de2022_table11", recipe="finetuned")
    printed = cells_of(made, "de2022_table11", recipe="finetuned_as_printed")
    assert len(solved) == len(printed) == 7
    for allowed, said in zip(solved, printed, strict=True):
        (at, of) = (allowed["at"], said["at"])
        assert (at["epsilon"], of["epsilon"], at["budget.nominal"]) == (of["budget.nominal"], "solve", of["budget.nominal"])
        steps = most_steps(at["epsilon"], at["delta"], at["recipe.batch"] / 50000, at["budget.sigma"])
        assert steps > of["recipe.steps"] * 1.2
