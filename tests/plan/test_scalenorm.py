"""Every experiment that Klause et al. print is planned, and those of the scales are parts of it."""

from collections import Counter
from collections.abc import Callable

import pytest

from dpvision import plan
from dpvision.plan import cost, specs
from dpvision.plan.reading import read_yaml
from dpvision.privacy.accounting import calibrate

SPEEDS = {"paper": 1e12, "simulate": 4e10, "demo": 5e9}  # multiply-adds a second, as the scales say


@pytest.fixture(scope="module")
def shipped() -> Callable[[str], plan.Plan]:
    content = read_yaml(plan.ROOT, "config/config.yaml").content
    return lambda scale: plan.load(content | {"papers": ["scalenorm"], "scale": scale}, plan.ROOT)


def test_trainings_by_artifact(shipped):
    planned = shipped("paper")
    assert {name: len(set(planned.runs_of(name))) for name in planned.artifacts} == {
        "table1": 2 * (18 + 18 + 18),  # in two protocols
        "table1_augmented": 2 * (18 + 18 + 18),
        "table2": 6 + 6,
        "table2_large": 6 + 6,
        "table3": 2 * 6,
        "table4": 2 * (6 + 6 + 6),
        "bn": 6,
        "hessian": 6,
        "groups": 0,
        "groups_imagenette": 0,
        "groups_tinyimagenet": 0,
        "figure1": 0,
        "figure2": 2,
        "figure3": 6,
        "figure3_cifar10": 6,
        "spectrum": 6,
        "search_price": 0,
        "claims": 18 + 18 + 18 + 6 + 6 + 6,  # of table 1 in the protocol clean, of tables 2 and 3, without privacy
    }
    by_cell = Counter(name.split("-seed")[0] for name in planned.runs)
    assert sum(by_cell.values()) == 2 * 54 + 18 + 6 + 6 + 2 * 6 + 6
    assert {cell: count for cell, count in by_cell.items() if count != 3} == {
        f"{cell}-eps{epsilon}": count
        for cell, epsilons, count in [
            ("tinyimagenet-resnet9", (5, 10, 70), 9),  # plain, augmented, the authors' protocol
            ("tinyimagenet-scaleresnet9", (5, 10, 70), 9),
            ("cifar10-wrn16-4", (8,), 6),  # De et al.'s tables 13 and 14
            ("cifar10-scalewrn16-4", (8,), 6),
        ]
        for epsilon in epsilons
    }


def test_each_network_is_searched_once_on_each_data_set(shipped):
    planned = shipped("paper")
    found = sorted(name.rsplit("-", 1)[0] for name in planned.of("search"))
    datasets = ("cifar10-{}-eps7.42-groups", "imagenette-{}-eps7.42-groups", "tinyimagenet-{}-eps10-groups")
    assert found == sorted(name.format(arm) for name in datasets for arm in ("resnet9", "scaleresnet9"))
    for name in ("groups", "groups_imagenette", "groups_tinyimagenet"):
        assert [stage for stage, _ in planned.work_of(name)] == ["search"] * 2


def test_every_printed_number_has_a_cell_of_ours(shipped):
    planned = shipped("paper")
    for name, artifact in planned.artifacts.items():
        for row in artifact.get("published", []):
            assert any(row["at"].items() <= cell["at"].items() for cell in artifact["cells"]), (name, row)
    assert len(planned.artifacts["table1_augmented"]["published"]) == 24


def test_the_noise_of_the_wide_residual_networks_is_that_of_de_et_al(shipped):
    """De et al.'s multiplier of 3 with 2,468 steps is for 45,000 examples, that of 9.4 with 2,000 steps for 50,000."""
    found = {}
    for run in shipped("paper").runs.values():
        if run["model"]["family"] == "wrn":
            found[run["recipe"]["batch"]] = calibrate(8.0, 1e-5, specs.sampling_rate(run), specs.step_count(run))
    assert found[4096] == pytest.approx(3.0, rel=0.005)
    assert found[16384] == pytest.approx(9.4 * 50 / 45, rel=0.02)


@pytest.mark.parametrize(
    ("scale", "trainings", "data"), [("simulate", 18 + 6, {"cifar10"}), ("demo", 18 + 6 + 6 + 6, {"digits"})]
)
def test_scales_show_what_their_data_allow(shipped, scale, trainings, data):
    planned = shipped(scale)
    assert len(planned.runs) == trainings
    assert {run["data"]["name"] for run in planned.runs.values()} == data


def test_the_demo_shows_every_kind_of_artifact(shipped):
    kinds = [{artifact["kind"] for artifact in shipped(scale).artifacts.values()} for scale in ("paper", "demo")]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("scale", SPEEDS)
def test_every_training_ends_in_days_and_asks_for_the_cards_of_one_machine(shipped, scale):
    for name, run in shipped(scale).runs.items():
        found = cost.training(run, 256)
        assert 1 <= found.devices <= 8
        days = found.minutes(SPEEDS[scale] * found.devices) / (24 * 60)
        assert 0 < days < 3, name
