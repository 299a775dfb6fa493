"""A verdict follows from the interval and from what the sentence says, and from nothing else."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpvision.reporting.verdicts import (
    CONTRADICTED,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    VERDICTS,
    Estimate,
    combined,
    estimate,
    verdict,
)

numbers = st.floats(-100, 100).map(lambda value: round(value, 3))
several = st.lists(numbers, min_size=2, max_size=8).filter(lambda values: max(values) - min(values) > 1e-3)
ABOVE, BELOW = ({"above": above, "below": below, "about": None} for above, below in ((0, None), (None, 0)))
OPPOSITE = {SUPPORTED: CONTRADICTED, CONTRADICTED: SUPPORTED, UNDECIDED: UNDECIDED}


def between(low: float | None, high: float | None, about: list[float] | None = None) -> dict:
    return {"above": low, "below": high, "about": about}


def test_the_interval_is_students():
    """0.3, 0.5, 1.0 have mean 0.6 and standard deviation 0.3606; t(0.975, 2) is 4.3027."""
    assert estimate([0.3, 0.5, 1.0]) == pytest.approx(
        (0.6, 0.6 - 4.3027 * 0.36056 / 3**0.5, 0.6 + 4.3027 * 0.36056 / 3**0.5), rel=1e-4
    )


@given(several)
def test_the_interval_is_around_the_mean(values):
    found = estimate(values)
    assert found.low <= found.effect <= found.high
    assert found.effect == pytest.approx(math.fsum(values) / len(values), abs=1e-9)
    assert found.high - found.effect == pytest.approx(found.effect - found.low, abs=1e-9)


@given(several, numbers)
def test_the_interval_moves_with_the_values(values, by):
    moved = estimate([value + by for value in values])
    assert moved == pytest.approx([end + by for end in estimate(values)], abs=1e-8)


@given(several.map(lambda values: [math.exp(value / 20) for value in values]))
def test_a_ratio_turned_round_has_its_interval_turned_round(ratios):
    effect, low, high = estimate(ratios, logarithmic=True)
    turned = estimate([1 / ratio for ratio in ratios], logarithmic=True)
    assert turned == pytest.approx((1 / effect, 1 / high, 1 / low))
    assert 0 < low <= effect * (1 + 1e-12)


@given(several)
def test_more_of_the_same_narrows_the_interval(values):
    once, thrice = estimate(values), estimate(values * 3)
    assert thrice.high - thrice.low <= once.high - once.low + 1e-9


def test_nothing_is_not_run_and_a_single_seed_is_undecided_however_large_its_effect():
    assert verdict(estimate([]), ABOVE) == NOT_RUN
    assert estimate([99.0]) == (99.0, None, None)
    assert verdict(estimate([99.0]), ABOVE) == UNDECIDED


@pytest.mark.parametrize("value", [-1, 0, 0.83, 0.1 + 0.2])
def test_seeds_that_all_give_the_same_are_undecided_for_nothing_is_known_of_their_spread(value):
    assert estimate([value] * 3) == (pytest.approx(value), None, None)
    assert verdict(estimate([value] * 3), ABOVE) == UNDECIDED
    assert verdict(estimate([0.3, 0.1 + 0.2]), ABOVE) == UNDECIDED


@pytest.mark.parametrize(
    ("low", "high", "claimed", "expected"),
    [
        (0.1, 0.9, ABOVE, SUPPORTED),
        (-0.9, -0.1, ABOVE, CONTRADICTED),
        (-0.1, 0.9, ABOVE, UNDECIDED),
        (0.1, 0.9, BELOW, CONTRADICTED),
        (0.0, 0.9, ABOVE, UNDECIDED),
        (0.0, 0.0, ABOVE, CONTRADICTED),
        (-0.05, 0.05, between(-0.1, 0.1), SUPPORTED),
        (-0.15, 0.05, between(-0.1, 0.1), UNDECIDED),
        (0.15, 0.25, between(-0.1, 0.1), CONTRADICTED),
        (9.5, 12.0, between(0, None, [9, 11]), SUPPORTED),
        (9.5, 14.0, between(0, None, [9, 11]), UNDECIDED),
        (4.0, 5.0, between(0, None, [9, 11]), CONTRADICTED),
        (12.0, 13.0, between(0, None, [9, 11]), CONTRADICTED),
        (-1.0, 12.0, between(0, None, [9, 11]), UNDECIDED),
    ],
)
def test_the_whole_interval_decides_and_a_size_has_to_be_met(low, high, claimed, expected):
    assert verdict(Estimate((low + high) / 2, low, high), claimed) == expected


@given(several)
def test_what_supports_a_claim_contradicts_its_opposite(values):
    assert verdict(estimate(values), BELOW) in (OPPOSITE[verdict(estimate(values), ABOVE)], CONTRADICTED)
    mirrored = verdict(estimate([-value for value in values]), BELOW)
    assert mirrored == verdict(estimate(values), ABOVE)


@given(several, numbers, numbers)
def test_a_weaker_claim_is_never_worse_supported(values, one, other):
    weak, strong = sorted((one, other))
    order = [CONTRADICTED, UNDECIDED, SUPPORTED]
    found = [order.index(verdict(estimate(values), between(bound, None))) for bound in (weak, strong)]
    assert found[0] >= found[1]


@given(several, st.integers(2, 20))
def test_intervals_that_hold_together_are_wider(values, among):
    alone, together = estimate(values), estimate(values, among=among)
    assert together.low < alone.low <= alone.effect == together.effect <= alone.high < together.high


def test_among_many_comparisons_one_that_is_contradicted_by_a_hair_does_not_contradict_the_claim():
    values = [-0.4, -0.5, -1.0, -0.6]
    alone, together = (verdict(estimate(values, among=among), ABOVE) for among in (1, 12))
    assert (alone, together) == (CONTRADICTED, UNDECIDED)
    assert combined([alone, *[UNDECIDED] * 11], [together, *[UNDECIDED] * 11], "all") == UNDECIDED


@given(st.lists(st.sampled_from(VERDICTS), min_size=1), st.sampled_from(["all", "readings"]))
def test_a_claim_needs_all_of_its_comparisons(verdicts, how):
    found = combined(verdicts, verdicts, how)
    assert (found == SUPPORTED) == (set(verdicts) == {SUPPORTED})
    assert (found == NOT_RUN) == (set(verdicts) == {NOT_RUN})
    against: Callable = any if how == "all" else all
    assert (found == CONTRADICTED) == against(one == CONTRADICTED for one in verdicts)
