"""Several numbers are summed up as what the artifact asks for, and say how many they are."""

import pytest

from dpvision.reporting.summary import summarise

VALUES = [70.0, None, 74.0, 78.0, 70.0]


@pytest.mark.parametrize(("statistic", "value"), [("median", 72.0), ("mean", 73.0), ("best", 78.0)])
def test_a_statistic_is_of_the_numbers_that_are_there(statistic, value):
    assert summarise(VALUES, statistic) == (value, None, 4, statistic)


@pytest.mark.parametrize(("spread", "around"), [("standard_deviation", (44 / 3) ** 0.5), ("standard_error", (11 / 3) ** 0.5)])
def test_a_spread_is_by_n_less_one(spread, around):
    found = summarise(VALUES, "mean", spread)
    assert found.spread == pytest.approx(around)
    assert found.how.startswith(f"mean ± {spread.replace('_', ' ')} (")


@pytest.mark.parametrize(("values", "value"), [([], None), ([None], None), ([7.0], 7.0)])
def test_one_number_has_no_spread_and_none_has_no_value(values, value):
    assert summarise(values, "best", "standard_deviation")[:3] == (value, None, len([v for v in values if v is not None]))
