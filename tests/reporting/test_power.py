"""Verdicts on made-up results whose truth is known: seldom wrong, right where there is power, else undecided."""

import numpy as np
import pytest
from scipy import stats

import made_up_verdicts
from dpvision.reporting.power import (
    POWER,
    chosen_in_words,
    distance,
    least_effect,
    power,
    risk_of_chosen,
    seeds_for,
    spread_of,
    with_power,
)
from dpvision.reporting.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED, Estimate, estimate, of_line, verdict
from made_up_verdicts import ABOVE

WORLDS = 1000


def shares(truth: float, n: int, printed: float | None = None) -> dict[str, float]:
    return made_up_verdicts.shares(truth, n, printed, WORLDS)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_a_sentence_without_truth_is_undecided_and_hardly_ever_decided(n):
    found = shares(0.0, n)
    assert found[SUPPORTED] < 0.025 and found[CONTRADICTED] < 0.025
    assert found[UNDECIDED] > 0.96


@pytest.mark.parametrize("n", [3, 5, 10])
def test_a_true_sentence_is_supported_as_often_as_its_power_says_and_not_contradicted(n):
    weak, strong = least_effect(n) / 3, 2 * least_effect(n)
    assert shares(weak, n)[UNDECIDED] > 0.7
    assert shares(weak, n)[CONTRADICTED] < 0.01
    assert shares(strong, n)[SUPPORTED] > 0.9
    assert shares(-strong, n)[CONTRADICTED] > 0.9


@pytest.mark.parametrize("n", [3, 5, 10])
def test_an_effect_as_in_print_is_supported_more_often_than_one_that_nobody_foretold(n):
    """Not as often as its power is: where the spread that is seen is too large by chance, power is taken for too little."""
    truth = least_effect(n)
    foretold, not_foretold = shares(truth, n, printed=truth)[SUPPORTED], shares(truth, n)[SUPPORTED]
    assert not_foretold < foretold < POWER + 0.05
    assert foretold > 0.6


def test_power_is_that_of_students_test():
    for n in (3, 5, 12):
        critical = stats.t.ppf(0.975, n - 1)
        assert power(1.5, n) == pytest.approx(stats.nct.sf(critical, n - 1, 1.5 * n**0.5), abs=2e-3)
    assert seeds_for(1.0) == 10  # the textbook's, for a paired comparison
    assert seeds_for(0.5) == 34
    assert (seeds_for(0.0), seeds_for(-1.0), seeds_for(1e-4)) == (None, None, None)
    assert seeds_for(100.0) == 2


@pytest.mark.parametrize("effect", [0.2, 0.7, 3.0])
def test_as_many_seeds_as_it_says_have_the_power_and_one_less_has_not(effect):
    n = seeds_for(effect)
    assert power(effect, n) >= POWER > power(effect, n - 1)


@pytest.mark.parametrize(
    ("effect", "claimed", "far"),
    [
        (0.4, ABOVE, 0.4),
        (-0.4, ABOVE, 0.4),
        (1.5, {"above": -2.0, "below": 2.0, "about": None}, 0.5),
        (3.5, {"above": -2.0, "below": 2.0, "about": None}, 1.5),
        (10.0, {"above": 0.0, "below": None, "about": [9, 11]}, 10.0),
        (4.0, {"above": 0.0, "below": None, "about": [9, 11]}, 5.0),
    ],
)
def test_the_distance_is_to_what_would_make_it_undecided(effect, claimed, far):
    assert distance(effect, claimed) == pytest.approx(far)


def test_ratios_are_apart_by_their_logarithms():
    below = {"above": None, "below": 1.0, "about": None}
    assert distance(0.5, below, logarithmic=True) == distance(2.0, below, logarithmic=True) == pytest.approx(np.log(2))
    assert distance(2.0, {**below, "above": 0.0}, logarithmic=True) == pytest.approx(np.log(2))
    ratios = [0.5, 0.8, 0.6]
    spread = spread_of(estimate(ratios, logarithmic=True), 3, logarithmic=True)
    assert spread.of_one == pytest.approx(np.std(np.log(ratios), ddof=1))


def test_the_spread_is_that_of_the_values_and_of_a_line_that_of_its_points():
    assert spread_of(estimate([1.0, 2.0, 4.0]), 3).of_one == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert spread_of(Estimate(1.0, None, None), 1) is None
    points = [(0.0, 0.1), (1.0, 0.9), (2.0, 2.2), (3.0, 2.9)]
    error = stats.linregress(*zip(*points, strict=True)).stderr
    assert spread_of(of_line(points), 4, lost=2).of_one == pytest.approx(2 * error)


def test_an_undecided_verdict_and_an_exact_one_stay():
    spread = spread_of(estimate([1.0, 2.0, 4.0]), 3)
    assert with_power(UNDECIDED, [99.0], spread) == UNDECIDED
    assert with_power(SUPPORTED, [0.0], None) == SUPPORTED


def test_chosen_seeds_support_what_is_not_so_more_often_than_five_times_in_two_hundred():
    """The n best of 2 n, again by other numbers than those that the page's are of."""
    drawn = np.sort(np.random.default_rng(1).standard_normal((WORLDS, 6)), axis=1)[:, 3:].tolist()
    found = [with_power(verdict(estimate(v), ABOVE), [estimate(v).effect], spread_of(estimate(v), 3)) for v in drawn]
    assert found.count(SUPPORTED) / WORLDS == pytest.approx(risk_of_chosen(3), abs=0.07)
    assert 0.025 < risk_of_chosen(2) < risk_of_chosen(3) < risk_of_chosen(5)
    assert f"{risk_of_chosen(3):.0%} of cases (n = 3)" in chosen_in_words({1, 3})
    assert not chosen_in_words({1})


def test_the_benchmark_shows_every_world(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(made_up_verdicts, "OUT", tmp_path)
    monkeypatch.setattr(made_up_verdicts, "WORLDS", 3)
    monkeypatch.setattr(made_up_verdicts, "SEEDS", (3,))
    made_up_verdicts.main()
    text = (tmp_path / "made_up_verdicts.md").read_text()
    assert "| 0 | 3 | none | 0.0% |" in text and "| 4 | 3 | 4 | " in text and text in capsys.readouterr().out
