"""Each kind of comparison, from records of a few lines; what is missing is not run, and never an error."""

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from dpvision.files import write_text
from dpvision.reporting import claims
from dpvision.reporting.claims import compared, described, write_claims
from dpvision.reporting.comparisons import COMPARISONS
from dpvision.reporting.records import Records

LABELS = {"paper": "A paper", "title": "Claims", "scale": "what it is for", "models": {m: m.upper() for m in "abcd"}}
SEEDS = ("1", "2", "3")
ABOVE = {"above": 0, "below": None, "about": None}


def side(model: str, seeds: tuple[str, ...] = SEEDS, epsilon: float | None = 7.42, **more: Any) -> dict[str, Any]:
    """Return a side with work of whatever stage a comparison looks at. Analyses have names of their own."""
    at = {"dataset": "digits", "model": model, "epsilon": epsilon}
    names = {"train": "{}{}", "hessian": "{}{}-x", "activations": "{}{}-x", "attack": "{}{}-x"}
    return {"at": at, "work": {stage: {s: name.format(model, s) for s in seeds} for stage, name in names.items()}} | more


READS = {"curvature": "hessian/hessian.json", "moment": "activations/histograms.csv", "times": "train/provenance.json"}
READS |= {"reach": "train/history.csv", "parameters": "train/weights.safetensors", "targets": "attack/tried.csv"}
READS |= dict.fromkeys(("bounds", "violations"), "attack/attack.json")


def comparison(kind: str, *sides: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a comparison as the plan writes it down: a count is exact, whatever else is claimed."""
    about = {"kind": kind, "reads": READS.get(kind, "train/metrics.json"), "sides": list(sides)}
    claimed = {} if kind in ("parameters", "violations") else {"claimed": ABOVE, "published": None, "printed": None}
    return about | claimed | {"metric": "top1"} | more


def claim(*comparisons: dict[str, Any], name: str = "better", **more: Any) -> dict[str, Any]:
    about = {"name": name, "text": "A is better.", "section": "3", "artifacts": [], "reading": None}
    return about | {"combined": "all", "comparisons": list(comparisons)} | more


def page(*stated: dict[str, Any], scale: str = "paper", **more: Any) -> dict[str, Any]:
    return {"paper": "paper", "artifact": "claims", "scale": scale, "claims": list(stated), "cells": []} | more


class Made:
    """A folder of records, and the files that they are."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, []

    def add(self, run: str, name: str, text: str) -> None:
        write_text(self.folder / run / name, text)
        self.files.append(str(self.folder / run / name))

    def accuracies(self, model: str, *percent: float, top5: float = 100, **more: Any) -> None:
        for seed, value in zip(SEEDS, percent, strict=False):
            test = {"test": {"top1": value / 100, "top5": top5 / 100}}
            self.add(f"{model}{seed}", "metrics.json", json.dumps({"last_step": test, **more}))

    def outcome(self, of: dict[str, Any]) -> claims.Outcome:
        return compared(of, Records({"records": self.files}))


@pytest.fixture
def made(tmp_path) -> Made:
    return Made(tmp_path / "runs")


def approx(values: dict[str, float]) -> Any:
    return pytest.approx(values)


def test_a_difference_is_within_a_seed_in_points_with_that_of_medians_beside_it(made):
    made.accuracies("a", 72, 74, 79)
    made.accuracies("b", 71, 72, 73)
    found = made.outcome(comparison("difference", side("a"), side("b"), printed=[71.8, 71.4]))
    assert found.values == approx({"1": 1, "2": 2, "3": 6})
    assert (found.found.effect, found.of_medians, found.published) == pytest.approx((3, 2, 0.4))
    assert found.verdict == "undecided"


def test_a_difference_in_another_metric(made):
    made.accuracies("a", 10, 10, top5=40)
    made.accuracies("b", 10, 10, top5=30)
    assert made.outcome(comparison("difference", side("a"), side("b"), metric="top5")).values == approx({"1": 10, "2": 10})


def test_a_recipe_that_averages_is_compared_by_its_averaged_weights(made):
    made.accuracies("a", 70, 70, averaged={"test": {"top1": 0.75, "top5": 1}})
    made.accuracies("b", 70, 70)
    assert made.outcome(comparison("difference", side("a"), side("b"))).values == approx({"1": 5, "2": 5})


SPLITS = {"train": {"top1": 0.9}, "validation": {"top1": 0.7}, "test": {"top1": 0.6}}


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ({}, 60),
        ({"split": "train"}, 90),
        ({"split": "validation", "weights": "averaged"}, 75),
        ({"split": "train", "less": "validation", "weights": "last_step"}, 20),
        ({"split": "train", "less": "validation"}, 15),
        ({"weights": "best_epoch"}, 65),
    ],
)
def test_an_accuracy_may_be_of_any_examples_and_weights_and_a_gap_between_two(made, asked, value):
    averaged, best = SPLITS | {"validation": {"top1": 0.75}}, SPLITS | {"test": {"top1": 0.65}}
    made.add("a1", "metrics.json", json.dumps({"last_step": SPLITS, "averaged": averaged, "best_epoch": best}))
    asked = {"weights": "last_step"} | asked if "split" not in asked else asked
    assert made.outcome(comparison("level", side("a", ("1",)), than=0, **asked)).values == approx({"1": value})


def test_a_gap_may_be_between_weights_of_one_training(made):
    averaged = SPLITS | {"validation": {"top1": 0.75}}
    made.add("a1", "metrics.json", json.dumps({"last_step": SPLITS, "averaged": averaged}))
    found = made.outcome(comparison("level", side("a", ("1",)), than=0, split="validation", less="last_step"))
    assert found.values == approx({"1": 5})


HISTORY = "epoch,epsilon,validation_top1,averaged_validation_top1\n1,1.5,0.3,0.35\n2,3.9,0.5,0.6\n3,8.0,0.7,0.8\n"


@pytest.mark.parametrize(("asked", "value"), [({}, 60), ({"weights": "last_step"}, 50), ({"spent": 64.0}, None)])
def test_an_accuracy_may_be_read_where_a_training_had_spent_some_epsilon(made, asked, value):
    made.add("a1", "history.csv", HISTORY)
    words = {"reads": "train/history.csv", "split": "validation", "spent": 4.0} | asked
    assert made.outcome(comparison("level", side("a", ("1",)), than=0, **words)).values == approx({"1": value} if value else {})


@pytest.mark.parametrize("asked", [{"split": "validation"}, {"less": "validation"}, {"weights": "averaged"}])
def test_an_accuracy_that_a_record_has_not_is_not_run(made, asked):
    made.accuracies("a", 70)
    assert made.outcome(comparison("level", side("a", ("1",)), than=0, **asked)).verdict == "not run"


def batches(*values: int, epsilon: float | None = 8.0, seeds: tuple[str, ...] = SEEDS) -> list[dict[str, Any]]:
    """Sides that differ in their batch alone, which their runs are named by."""
    found = [side(f"b{value}-", seeds, epsilon) for value in values]
    for one, value in zip(found, values, strict=True):
        one["at"] |= {"model": "a", "recipe.batch": value}
    return found


def test_a_step_is_a_value_s_accuracy_less_that_of_the_value_before(made):
    made.accuracies("b512-", 61, 62, 63)
    made.accuracies("b256-", 60, 60, 60)
    found = made.outcome(comparison("steps", *batches(512, 256), printed=[62, 60]))
    assert (found.values, found.published) == (approx({"1": 1, "2": 2, "3": 3}), 2)


def test_a_trend_is_the_slope_of_accuracy_by_each_doubling(made):
    """Two points a doubling from 256 to 1024; the second seed rises at the end alone: 0, 0, 6 is 3 a doubling."""
    for batch, values in {256: (60, 60), 512: (62, 60), 1024: (64, 66)}.items():
        made.accuracies(f"b{batch}-", *values)
    found = made.outcome(
        comparison("trend", *batches(256, 512, 1024, seeds=("1", "2")), along="recipe.batch", over=[256, 512, 1024])
    )
    assert found.values == approx({"1": 2, "2": 3})


def test_the_best_value_has_the_highest_accuracy_on_the_held_out_examples(made):
    for batch, values in {256: (60, 64), 512: (63, 60), 1024: (61, 61)}.items():
        for seed, value in zip("12", values, strict=True):
            made.add(f"b{batch}-{seed}", "metrics.json", json.dumps({"last_step": {"validation": {"top1": value / 100}}}))
    asked = {"key": "recipe.batch", "among": [256, 512, 1024], "split": "validation", "than": 512}
    found = made.outcome(comparison("best_value", *batches(256, 512, 1024, seeds=("1", "2")), **asked))
    assert found.values == approx({"1": 1, "2": 0.5})
    assert found.found.effect == pytest.approx(0.5**0.5)


def searched(made: Made, **found: float) -> None:
    for folder, value in found.items():
        made.add(folder, "best.json", json.dumps({"values": {"recipe.clip": value}}))


def of_search(*folders: str) -> list[dict[str, Any]]:
    at = {"dataset": "digits", "model": "a", "epsilon": 8.0}
    return [{"at": at, "work": {"search": {"0": folder}}} for folder in folders]


def test_the_best_value_may_be_what_a_search_found(made):
    searched(made, one=1.5)
    asked = {"reads": "search/best.json", "key": "recipe.clip", "than": 1.0}
    assert made.outcome(comparison("best_value", *of_search("one"), **asked)).values == approx({"0": 1.5})


def test_a_best_value_of_each_seed_grows_as_a_power_of_the_coordinate(made):
    """The best of 1 and 4 is 1 at ε = 1 and 4 at ε = 4: as ε itself; the second seed's is 4 at both: it does not grow."""
    best = {"1": {1.0: "a", 4.0: "b"}, "2": {1.0: "b", 4.0: "b"}}
    sides = [side(f"{model}{epsilon:g}-", ("1", "2"), epsilon) for epsilon in (1.0, 4.0) for model in "ab"]
    for seed, winners in best.items():
        for epsilon, winner in winners.items():
            for model in "ab":
                made.add(
                    f"{model}{epsilon:g}-{seed}", "metrics.json", json.dumps({"last_step": {"test": {"top1": model == winner}}})
                )
    asked = {"along": "epsilon", "over": [1.0, 4.0], "key": "recipe.clip", "among": [1.0, 4.0]}
    assert made.outcome(comparison("best_trend", *sides, **asked)).values == approx({"1": 1, "2": 0})


@pytest.mark.parametrize(
    ("values", "verdict"), [((1, 2.1, 3.9), "supported"), ((4, 2.1, 1), "contradicted"), ((1, 4, 1), "undecided")]
)
def test_the_power_of_what_searches_found_has_the_interval_of_its_line(made, values, verdict):
    """Slope and standard error by scipy.stats.linregress, Student's t by a table: 12.706 for one degree of freedom."""
    from scipy import stats

    searched(made, one=values[0], two=values[1], three=values[2])
    asked = {"reads": "search/best.json", "key": "recipe.clip", "along": "epsilon", "over": [1.0, 2.0, 4.0]}
    found = made.outcome(comparison("best_trend", *of_search("one", "two", "three"), **asked))
    line = stats.linregress([0, math.log(2), math.log(4)], [math.log(value) for value in values])
    assert found.found == pytest.approx(
        (line.slope, line.slope - 12.706 * line.stderr, line.slope + 12.706 * line.stderr), rel=1e-3
    )
    assert found.verdict == verdict


def test_updates_grow_as_a_power_of_the_coordinate_by_a_line_those_of_a_simulation_by_what_it_simulates(made):
    made.add("a1", "ledger.json", json.dumps({"steps": {"made": 100}}))
    made.add("b1", "ledger.json", json.dumps({"steps": {"made": 9}, "simulated": {"steps": {"made": 210}}}))
    made.add("c1", "ledger.json", json.dumps({"steps": {"made": 400}}))
    sides = [side(name, ("1",), epsilon=epsilon) for name, epsilon in (("a", 1.0), ("b", 4.0), ("c", 16.0))]
    asked = {"reads": "train/ledger.json", "along": "epsilon", "over": [1.0, 4.0, 16.0]}
    outcome = made.outcome(comparison("updates_trend", *sides, **asked))
    assert outcome.values == approx({"1": 0.5}) and outcome.verdict == "supported"


def test_an_interaction_is_a_difference_less_another(made):
    for model, values in {"a": (72, 73), "b": (70, 70), "c": (90, 91), "d": (89, 90)}.items():
        made.accuracies(model, *values)
    sides = [side("a"), side("b"), side("c", epsilon=None), side("d", epsilon=None)]
    found = made.outcome(comparison("interaction", *sides, printed=[71.8, 71.4, 89.8, 89.3]))
    assert found.values == approx({"1": 1, "2": 2})
    assert found.published == pytest.approx(-0.1)


def test_a_level_is_the_accuracy_less_a_number_in_print(made):
    made.accuracies("a", 82, 83, 84)
    found = made.outcome(comparison("level", side("a"), than=81.4, printed=[82.5]))
    assert found.values == approx({"1": 0.6, "2": 1.6, "3": 2.6})
    assert found.published == pytest.approx(1.1)


def test_a_best_of_three_is_one_observation(made):
    made.accuracies("a", 70, 71, 75)
    made.accuracies("b", 70, 71, 72)
    found = made.outcome(comparison("best_of", side("a"), side("b"), seeds=3, printed=[72.4, 71.5, 71.8, 71.4]))
    assert found.values == approx({"1 2 3": 3})
    assert (found.verdict, found.published) == ("undecided", pytest.approx(0.5))


def test_a_best_of_three_takes_seeds_by_threes_and_leaves_the_rest(made):
    seeds = tuple(map(str, range(7)))
    for i in seeds:
        for model in "ab":
            gain = 2 if model == "a" and i in "25" else 0
            text = json.dumps({"last_step": {"test": {"top1": (70 + int(i) % 3 + gain) / 100}}})
            made.add(f"{model}{i}", "metrics.json", text)
    found = made.outcome(comparison("best_of", side("a", seeds), side("b", seeds), seeds=3))
    assert found.values == approx({"0 1 2": 2, "3 4 5": 2})


def test_curvature_is_a_ratio(made):
    for run, value in {"a1": 2.0, "a2": 8.0, "b1": 4.0, "b2": 4.0, "a3": -1.0, "b3": 4.0}.items():
        made.add(f"{run}-x", "hessian.json", json.dumps({"trace": value}))
    found = made.outcome(comparison("curvature", side("a"), side("b"), quantity="trace", printed=[6637.3, 9045.7]))
    assert found.values == approx({"1": 0.5, "2": 2})  # the third has no ratio
    assert (found.found.effect, found.published) == pytest.approx((1, 0.7337), rel=1e-3)


def test_curvature_that_has_no_finite_value_is_left_out(made):
    for run in ("a1", "b1"):
        made.add(f"{run}-x", "hessian.json", json.dumps({"trace": None}))
    assert made.outcome(comparison("curvature", side("a"), side("b"), quantity="trace")).verdict == "not run"


def histogram(*shares: float, mean: float = 0.7, place: str = "V_A") -> str:
    """Return a histogram's CSV, with bars of width one from -1 on."""
    rows = [f"{place},{left - 1},{left},{share},{mean},0.76" for left, share in enumerate(shares)]
    return "\n".join(["place,left,right,density,mean,std", *rows, "V_R,0,1,1,9,9"])


@pytest.mark.parametrize(
    ("moment", "value"), [("mean", 0.7), ("std", 0.76), ("positive", 0.75), ("skewness", 0.6873), ("asymmetry", 0.6873)]
)
def test_moments_of_activations(made, moment, value):
    """Shares 1/4, 1/2, 0, 1/4 at -0.5, 0.5, 1.5, 2.5 have mean 0.75, variance 1.1875, third moment 0.84375."""
    made.add("a1-x", "histograms.csv", histogram(0.25, 0.5, 0, 0.25))
    found = made.outcome(comparison("moment", side("a"), places=["V_A"], moment=moment))
    expected = 0.84375 / 1.1875**1.5 if moment in ("skewness", "asymmetry") else value
    assert found.values == approx({"1": expected})


def test_asymmetry_has_no_sign_and_is_compared_between_places(made):
    made.add("a1-x", "histograms.csv", histogram(0.5, 0.5, place="V_A^S"))
    made.add("b1-x", "histograms.csv", histogram(0.25, 0, 0.75))
    found = made.outcome(comparison("moment", side("a"), side("b"), places=["V_A^S", "V_A"], moment="asymmetry"))
    assert found.values == approx({"1": -2 / 3**0.5})  # a coin that falls on one side three times of four


def test_times_are_of_all_sessions(made):
    for run, sessions in {"a1": [60, 40], "b1": [10]}.items():
        made.add(run, "provenance.json", json.dumps({"seconds": 1, "sessions": [{"seconds": s} for s in sessions]}))
    assert made.outcome(comparison("times", side("a"), side("b"))).values == approx({"1": 10})


@pytest.mark.parametrize(("unit", "value"), [("epoch", -2), ("epsilon", -2.5)])
def test_what_both_end_with_is_reached_when_it_is_first_there(made, unit, value):
    for run, accuracies in {"a1": (0.3, 0.6, 0.4, 0.7), "b1": (0.2, 0.3, 0.4, 0.5)}.items():
        rows = [f"{epoch},{1.25 * epoch},{top1}" for epoch, top1 in enumerate(accuracies, 1)]
        made.add(run, "history.csv", "\n".join(["epoch,epsilon,test_top1", *rows]))
    assert made.outcome(comparison("reach", side("a"), side("b"), unit=unit)).values == approx({"1": value})


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_swapping_the_sides_changes_the_sign_and_no_more(made, names):
    """A goal at the second side's own end would let the better of two equals win by more than it can lose."""
    histories = {"a1": (0.1, 0.2, 0.3), "b1": (0.6, 0.5, 0.5)}
    for run, accuracies in histories.items():
        rows = [f"{epoch},{top1}" for epoch, top1 in enumerate(accuracies, 1)]
        made.add(run, "history.csv", "\n".join(["epoch,test_top1", *rows]))
    found = made.outcome(comparison("reach", *map(side, names), unit="epoch"))
    assert found.values == approx({"1": {"ab": 2, "ba": -2}[names]})


def weights(shapes: dict[str, list[int]]) -> bytes:
    head = json.dumps(
        {name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    ).encode()
    return len(head).to_bytes(8, "little") + head


@pytest.mark.parametrize(("count", "verdict"), [(26, "supported"), (25, "contradicted"), (30, "contradicted")])
def test_parameters_are_those_of_the_weights_and_not_the_statistics_of_batch_normalisation(made, count, verdict):
    made.add("a1", "weights.safetensors", "")
    shapes = {"conv.weight": [2, 3, 2, 2], "norm.bias": [2], "norm.running_mean": [2], "norm.num_batches_tracked": []}
    Path(made.files[-1]).write_bytes(weights(shapes))
    found = made.outcome(comparison("parameters", side("a", ("1",)), count=count))
    assert (found.verdict, found.found.effect, found.published) == (verdict, 26, count)


def test_parameters_are_counted_as_torch_counts_them(made, narrow, tmp_path):
    from safetensors.torch import save_file

    from dpvision.models.count import parameter_count

    network = narrow(norm="batch")
    made.add("a1", "weights.safetensors", "")
    save_file(network.state_dict(), made.files[-1])
    assert Records({"records": made.files}).parameters("a1") == parameter_count(network)


def attacked(made, model: str, *bounds: float, by: str = "models", nominal: float = 2.0) -> None:
    for seed, bound in zip(SEEDS, bounds, strict=False):
        made.add(f"{model}{seed}-x", "attack.json", json.dumps({"by": by, "lower_bound": bound, "nominal": nominal}))


@pytest.mark.parametrize(("unit", "values"), [("epsilon", {"1": 1.0, "2": 1.5}), ("ratio", {"1": 3.0, "2": 2.0})])
def test_bounds_of_attacks_are_compared_by_their_difference_or_ratio(made, unit, values):
    attacked(made, "a", 1.5, 3.0)
    attacked(made, "b", 0.5, 1.5)
    assert made.outcome(comparison("bounds", side("a"), side("b"), unit=unit)).values == approx(values)


def test_a_bound_by_canaries_is_of_another_attack(made):
    attacked(made, "a", 1.5, 3.0)
    attacked(made, "b", 0.5, 1.5, by="canaries")
    assert made.outcome(comparison("bounds", side("a"), side("b"), unit="epsilon")).verdict == "not run"


@pytest.mark.parametrize(("bounds", "verdict"), [((1.9, 1.0), "supported"), ((1.9, 2.1), "contradicted")])
def test_an_attack_that_proves_more_than_is_claimed_is_a_violation(made, bounds, verdict):
    attacked(made, "a", *bounds)
    found = made.outcome(comparison("violations", side("a"), count=0))
    assert found.values == {str(i): float(bound > 2) for i, bound in enumerate(bounds, 1)}
    assert found.verdict == verdict


def test_a_target_leads_others_of_a_kind_by_what_phase_one_found(made):
    rows = "target,total_variation\nblank as 9,0.5\nblank as 9,0.7\n7 as 8,0.4\n6 as 7,0.6\nnoise as 9,\n"
    made.add("a1-x", "tried.csv", rows)
    blank = comparison("targets", side("a"), image="blank", other="mislabelled")
    assert made.outcome(blank).values == approx({"1": 0.1})
    noise = blank | {"other": "noise"}
    assert made.outcome(noise).verdict == "not run"  # what was not tried decides nothing
    assert described(noise, LABELS) == "total variation, blank − uniform noise, A: digits, ε = 7.42"


def test_a_target_is_not_compared_with_itself():
    of = {"kind": "targets", "dataset": "digits", "model": "a", "epsilon": 1.0, "image": "blank", "claimed": {"above": 0.0}}
    faults = [list(COMPARISONS["targets"].Options(**of, other=other).faults({})) for other in ("noise", "blank")]
    assert faults == [[], [(("other",), "compares blank with itself")]]


ATTACKED = {"by": "models", "targets": ["blank as 9", "7 as 8"], "examples": 60000, "q": 0.0625, "steps": 500}


def test_a_target_s_comparison_names_the_others_that_were_tried():
    def text(*targets: str) -> str:
        of = side("a", attacked=ATTACKED | {"targets": ["blank as 9", *targets]})
        return described(comparison("targets", of, image="blank", other="mislabelled"), LABELS)

    assert text("7 as 8") == "total variation, blank − 7 as 8, A: digits, ε = 7.42, 60,000 examples"
    assert text("noise as 9", "7 as 8", "6 as 7").startswith("total variation, blank − best of 7 as 8, 6 as 7, A")
    assert text("noise as 9").startswith("total variation, blank − a mislabelled example, A")


def test_a_violation_is_of_this_program_and_says_what_was_attacked_of_it():
    one, other = side("a", attacked=ATTACKED), side("a", attacked=ATTACKED | {"by": "canaries"})
    for of in (one, other):
        of["at"] = of["at"] | {"recipe": "long"}
    places = [one["at"], side("a")["at"]]
    text, by_canaries = (described(comparison("violations", of, count=0), LABELS, places) for of in (one, other))
    assert text == (
        "of this program's stacked trainer: bounds above the claim, A: digits, ε = 7.42, recipe long, 60,000 examples"
    )
    assert by_canaries == (
        "of this program's engine: bounds above the claim, canaries: ε = 7.42, q = 0.0625, 500 steps, 60,000 examples"
    )


def test_every_kind_is_tried_here():
    text = Path(__file__).read_text()
    assert [kind for kind in COMPARISONS if f'comparison("{kind}"' not in text] == []


# --- what is missing ---


def test_seeds_that_one_side_lacks_are_left_out(made):
    made.accuracies("a", 72, 74, 79)
    made.accuracies("b", 71, 72)
    found = made.outcome(comparison("difference", side("a"), side("b")))
    assert found.values == approx({"1": 1, "2": 2})
    assert found.of_medians == pytest.approx(1.5)


@pytest.mark.parametrize("sides", [(side("a"), side("b")), (side("a"), side("b", ()))], ids=["not made", "left out"])
def test_without_a_pair_a_comparison_is_not_run(made, sides):
    made.accuracies("a", 72, 74, 79)
    assert made.outcome(comparison("difference", *sides)).verdict == "not run"


def test_every_kind_is_not_run_without_records(made):
    more = {"quantity": "trace", "places": ["V_A", "V_A"], "moment": "mean", "unit": "epoch", "than": 1, "seeds": 3}
    more |= {"count": 3, "along": "epsilon", "over": [1, 2], "key": "recipe.clip", "among": [1, 2]}
    more |= {"image": "blank", "other": "noise"}
    for kind in COMPARISONS:
        assert made.outcome(comparison(kind, side("a"), side("b"), **more)).verdict == "not run"


# --- stand-ins ---


def test_what_a_scale_has_in_the_place_of_the_paper_s_decides_nothing_and_is_shown(made, written):
    replaced = side("a", instead={"dataset": ["cifar10", "digits"], "model.width": [1.0, 0.125]})
    of_others = comparison("difference", replaced, side("b"))
    made.accuracies("a", 72.0, 72.1, 72.2)
    made.accuracies("b", 71.0, 71.0, 71.2)
    assert made.outcome(of_others).verdict == "no verdict: stand-ins"
    rows, text = written(claim(of_others), claim(of_others, BETTER, name="both"), claim(LEFT_OUT, of_others, name="neither"))
    assert [row["verdict"] for row in rows if row["row"] == "claim"] == [
        "no verdict: stand-ins",
        "undecided",
        "no verdict: stand-ins",
    ]
    assert float(rows[0]["effect"]) == pytest.approx(1.0333, rel=1e-3)
    assert rows[0]["stand_ins"] == "dataset digits for cifar10, a: width 0.125 for 1"
    assert "| – no verdict: stand-ins | 3 | 2 | stand-ins: +1.03 points [+0.89, +1.18] |" in text
    assert "2 of 3 sentences have no verdict" in text
    assert "*Stand-ins, which decide nothing:* dataset digits for cifar10, a: width 0.125 for 1." in text


# --- what is written ---


@pytest.fixture
def written(made, tmp_path):
    """Write the page and return the rows of its CSV and its text."""
    made.accuracies("a", 72.0, 72.1, 72.2)
    made.accuracies("b", 71.0, 71.0, 71.2)

    def write(*stated: dict[str, Any], **more: Any) -> tuple[list[dict[str, str]], str]:
        table, figure = tmp_path / "out/claims.csv", tmp_path / "out/figures/claims.csv"
        write_claims(page(*stated, **more), LABELS, {"records": made.files}, table, figure)
        return list(csv.DictReader(table.open())), table.with_suffix(".md").read_text()

    return write


def test_page_says_what_its_epsilon_leave_out(written, made, run_spec):
    (made.folder / "a1/spec.json").write_text(json.dumps(run_spec()))
    text = written(claim(BETTER), cells=[{"at": side("a")["at"], "work": {"train": {"1": "a1"}}}])[1]
    assert "## What these ε leave out" in text and "no ε holds for the 437 held-out examples" in text


BETTER = comparison("difference", side("a"), side("b"), printed=[71.8, 71.4])
WORSE = comparison("difference", side("b"), side("a"))
LEFT_OUT = comparison("difference", side("a", ()), side("b", ()))


def test_a_claim_has_a_row_and_each_of_its_comparisons_one(written):
    rows, _ = written(claim(BETTER), claim(BETTER, LEFT_OUT, name="everywhere"), claim(BETTER, WORSE, name="both"))
    assert [(row["row"], row["claim"], row["verdict"]) for row in rows] == [
        ("claim", "better", "supported"),
        ("comparison", "better", "supported"),
        ("claim", "everywhere", "undecided"),
        ("comparison", "everywhere", "supported"),
        ("comparison", "everywhere", "not run"),
        ("claim", "both", "contradicted"),
        ("comparison", "both", "supported"),
        ("comparison", "both", "contradicted"),
    ]
    assert [float(rows[0][number]) for number in ("n", "effect", "published")] == pytest.approx([3, 1.0333, 0.4], rel=1e-3)
    assert rows[0]["by_seed"] == "1: 1; 2: 1.1; 3: 1"
    assert float(rows[0]["low"]) == pytest.approx(1.0333 - 4.3027 * 0.057735 / math.sqrt(3), rel=1e-3)


def test_the_page_says_what_its_epsilons_protect_from_where_ledgers_do(made, written):
    said = {"epsilon": {"pld": 6.8}, "curve": {"mu": 1.39, "true_positives": 0.045, "advantage": 0.51}}
    made.add("a1", "ledger.json", json.dumps(said))
    made.add("a2", "ledger.json", json.dumps({"epsilon": None, "simulated": said | {"epsilon": {"pld": 6.9}}}))
    made.add("b1", "ledger.json", json.dumps({"epsilon": {"rdp": 7.4, "prv": 6.4}}))
    assert "protect from" not in written(claim(BETTER))[1]
    text = written(claim(BETTER), cells=[side("a"), side("b")])[1]
    assert "| digits, ε = 7.42 | 6.90 | 1.39 | 4.5% | 51.0% |" in text


def test_a_verdict_needs_power_for_the_effect_seen_or_for_the_one_in_print(made):
    made.accuracies("a", 71.7, 72.0, 72.5)
    made.accuracies("b", 71.0, 71.0, 71.0)
    seen = made.outcome(comparison("difference", side("a"), side("b")))
    assert seen.found.low > 0 and seen.verdict == seen.together == "undecided"
    assert seen.seeds > 3 and seen.seeds_for_print is None
    foretold = made.outcome(comparison("difference", side("a"), side("b"), printed=[72.5, 71.0]))
    assert (foretold.verdict, foretold.seeds_for_print) == ("supported", 3)
    too_little = made.outcome(comparison("difference", side("a"), side("b"), printed=[71.1, 71.0]))
    assert too_little.verdict == "undecided" and too_little.seeds_for_print > 100


def test_the_page_has_the_sentence_the_verdict_the_interval_and_every_seed(written):
    _, text = written(claim(BETTER, reading="As we read it.", artifacts=["table1"]))
    assert "1 supported." in text
    assert (
        "| [A is better.](#better) | 3 | ✔ supported | 3 | 2 / 3 | +1.03 points [+0.89, +1.18] | +0.40 | digits, ε = 7.42 |"
        in text
    )
    numbers = "3 | 2 / 3 | +1.03 points [+0.89, +1.18] | +1.10 | +0.40 | +1.00 | +1.10 | +1.00 |"
    assert f"| test accuracy, A − B: digits, ε = 7.42 | > 0 | ✔ supported | {numbers}" in text
    assert "*How it is measured:* As we read it." in text and "Decided by table1." in text
    assert "Student's t" in text


def test_what_is_in_our_words_is_no_quotation(written):
    (quoted, _), text = written(claim(BETTER))
    assert "\n> A is better.\n" in text and quoted["text"] == "A is better."
    (ours, row), text = written(claim(BETTER, in_our_words=True))
    assert ">" not in [line[:1] for line in text.splitlines()] and "\nA is better. (in our words)\n" in text
    assert ours["text"] == row["text"] == "A is better. (in our words)"
    assert "| [A is better. (in our words)](#better) |" in text


def test_sides_that_differ_in_more_than_model_data_set_and_epsilon_are_told_apart(written):
    one, other = (side("a"), side("b"))
    other["at"] = one["at"] | {"recipe": "long"}
    one["at"] = one["at"] | {"recipe": "short"}
    named = "recipe short − recipe long: A, digits, ε = 7.42"
    assert f"test accuracy, {named}" in written(claim(comparison("difference", one, other)))[1]


def test_two_sides_of_a_page_that_differ_read_differently(written):
    """Two claims about the same models, of networks of other sizes: neither names the sizes by its own sides."""

    def of(width: int) -> list[dict[str, Any]]:
        sides = [side("a"), side("a")]
        for one, norm in zip(sides, ("group", "none"), strict=True):
            one["at"] = one["at"] | {"model.width": width, "model.norm": norm}
        return sides

    rows, _ = written(claim(comparison("difference", *of(1))), claim(comparison("difference", *of(8)), name="wide"))
    texts = {row["comparison"] for row in rows}
    assert texts == {f"test accuracy, norm group − norm none: A, digits, ε = 7.42, width {width}" for width in (1, 8)}


@pytest.mark.parametrize(
    ("said", "called"),
    [
        ({}, "test accuracy"),
        ({"split": "validation"}, "held-out accuracy"),
        (
            {"split": "train", "less": "validation", "weights": "averaged"},
            "accuracy of averaged weights, training less held-out",
        ),
    ],
)
def test_what_an_accuracy_is_of_is_said(said, called):
    text = described(comparison("difference", side("a"), side("b"), **said), LABELS)
    assert text == f"{called}, A − B: digits, ε = 7.42"


def test_an_effect_that_no_paper_prints_says_where_its_authors_have_it(written, tmp_path):
    noted = BETTER | {"source": "the authors' notebook"}
    (_, row), text = written(claim(noted))
    assert row["source"] == "the authors' notebook"
    assert "| +0.40 in the authors' notebook |" in text
    drawn = tmp_path / "out/figures/claims.svg"
    assert ">in the authors' notebook<" in drawn.read_text("utf-8") and ">in print<" not in drawn.read_text("utf-8")
    written(claim(noted), claim(BETTER, name="printed"))
    assert ">in the authors' notebook<" in drawn.read_text("utf-8") and ">in print<" in drawn.read_text("utf-8")


def test_an_effect_in_print_says_no_other_place(written, tmp_path):
    (_, row), text = written(claim(BETTER))
    assert row["source"] == "" and "| +0.40 |" in text
    assert ">in print<" in (tmp_path / "out/figures/claims.svg").read_text("utf-8")


def test_sides_of_an_interaction_that_differ_in_a_key_alone_read_differently():
    first, second, third, fourth = batches(4096, 4096, 256, 256)
    for one in (first, third):
        one["at"] |= {"model.standardize": True}
    for one in (second, fourth):
        one["at"] |= {"model.standardize": False}
    text = described(comparison("interaction", first, second, third, fourth), LABELS)
    for value in ("4096", "256"):
        for standardize in ("True", "False"):
            assert f"batch {value}, standardize {standardize}" in text


def test_a_page_of_another_scale_than_the_papers_says_so(written):
    assert "Scale demo, not the paper's: what it is for." in written(claim(BETTER), scale="demo")[1]
    assert "not the paper's" not in written(claim(BETTER))[1]


def test_a_page_of_simulations_says_that_nothing_was_private(written):
    rows, text = written(claim(BETTER), scale="simulate", cells=[side("a", simulated=8)])
    assert "Simulated, not private: batch and noise divided by 8, steps kept." in text
    assert {row["simulated"] for row in rows} == {"True"}


def test_every_table_of_the_page_has_as_many_cells_in_every_row(written):
    _, text = written(claim(BETTER), claim(BETTER, LEFT_OUT, name="everywhere"))
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 3
    assert all(len({line.count(" | ") for line in table if " --- " not in line}) == 1 for table in tables)


def test_the_figure_shows_what_its_csv_holds_and_is_the_same_every_time(written, tmp_path):
    folder = tmp_path / "out/figures"
    first, again = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for _ in range(2) if written(claim(BETTER, LEFT_OUT))
    )
    assert set(first) == {"claims.svg", "claims.pdf", "claims.png", "claims.csv"}
    assert first == again
    rows = list(csv.DictReader((folder / "claims.csv").open()))
    assert [(row["verdict"], row["n"], row["published"][:3]) for row in rows] == [
        ("supported", "3", "0.3"),
        ("not run", "0", ""),
    ]


def test_a_comparison_of_two_claims_is_one_row_of_the_figure(written, tmp_path):
    written(claim(BETTER, name="better_here"), claim(BETTER, name="as_good"), claim(WORSE, name="worse"))
    drawn = (tmp_path / "out/figures/claims.svg").read_text(encoding="utf-8")
    assert drawn.count(">better here; as good<") == drawn.count(">worse<") == 1
    assert drawn.count("A − B:") == drawn.count("B − A:") == 1
    rows = list(csv.DictReader((tmp_path / "out/figures/claims.csv").open()))
    assert [row["claim"] for row in rows] == ["better here", "as good", "worse"]


def test_comparisons_are_named_in_words_of_people():
    labels = LABELS | {"datasets": {"digits": "Handwritten digits"}}
    sides = side("a"), side("b")
    named = [
        comparison("curvature", *sides, quantity="lambda_max_power"),
        comparison("curvature", *sides, quantity="ritz_negative"),
        comparison("reach", *sides, unit="epsilon"),
        comparison("moment", sides[0], places=["V_A^S"], moment="std"),
        comparison("trend", *batches(4096, 256), along="recipe.batch", over=[256, 4096]),
    ]
    texts = [described(one, labels) for one in named]
    for text, words in zip(
        texts, ("largest eigenvalue", "negative eigenv", "ε spent", "after ScaleNorm", "batch size"), strict=True
    ):
        assert words in text and "Handwritten digits" in text
    assert not re.search(r"V_A|lambda|ritz|epsilon|std|recipe\.|top1", " ".join(texts))


def test_the_figure_draws_what_was_run_and_says_how_much_was_not(written, tmp_path):
    written(claim(BETTER, LEFT_OUT))
    drawn = (tmp_path / "out/figures/claims.svg").read_text(encoding="utf-8")
    assert "n = 3" in drawn and "not run   " not in drawn
    assert "1 of 2 comparisons were not run" in drawn


def test_a_figure_of_which_nothing_was_run_draws_what_is_in_print(written, tmp_path):
    written(claim(comparison("difference", side("a", ()), side("b", ()), printed=[71.8, 71.4]), LEFT_OUT))
    drawn = (tmp_path / "out/figures/claims.svg").read_text(encoding="utf-8")
    assert drawn.count("   not run") == 1
