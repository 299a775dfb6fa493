"""A search's space: choices and ranges, how many values there are, and what lies at their ends."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpvision.plan import space

REAL = st.floats(1e-6, 1e6)
CHOICES = st.lists(st.integers() | st.floats(allow_nan=False) | st.booleans() | st.sampled_from(["a", "b"]), min_size=1)


@given(values=st.one_of(CHOICES, st.builds(lambda low: {"uniform": [low, low + 1]}, REAL)), data=st.data())
def test_a_value_is_read_back_from_a_table_as_it_was(values, data):
    value = data.draw(st.floats(*values["uniform"]) if isinstance(values, dict) else st.sampled_from(values))
    assert space.parsed(values, str(value)) == value


def test_a_whole_number_is_read_back_as_one():
    assert space.parsed({"integers": [1, 5]}, "3") == 3
    assert isinstance(space.parsed({"integers": [1, 5]}, "3"), int)


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([1, 2, "channels"], 3),
        ({"integers": [10, 90]}, 81),
        ({"uniform": [0, 1]}, math.inf),
        ({"log_uniform": [1, 2]}, math.inf),
    ],
)
def test_how_many_values_there_are(values, count):
    assert space.count(values) == count


@pytest.mark.parametrize(
    ("values", "greatest"),
    [([1, 16, 64, "channels"], 64), (["a", "b"], "a"), ([True, False], True), ({"uniform": [0.1, 20.0]}, 20.0)],
)
def test_costs_are_counted_with_the_greatest_number_or_else_the_first_choice(values, greatest):
    assert space.greatest(values) == greatest


@pytest.mark.parametrize(
    ("values", "lower", "inside", "upper"),
    [
        ([4, 1, 2], [1], [2], [4]),
        ({"integers": [1, 100]}, [1], [2, 50, 99], [100]),
        ({"uniform": [0.0, 100.0]}, [0.0, 5.0], [5.1, 50.0, 94.9], [95.1, 100.0]),
        ({"log_uniform": [1e-4, 1.0]}, [1e-4, 1.5e-4], [1.7e-4, 0.01, 0.6], [0.65, 1.0]),
    ],
)
def test_the_end_of_what_was_searched_is_said_on_its_own_scale(values, lower, inside, upper):
    said = {value: space.edge(values, value) for value in [*lower, *inside, *upper]}
    assert all("at the lower end of what was searched" in said[value] for value in lower)
    assert [said[value] for value in inside] == [None] * len(inside)
    assert all("at the upper end of what was searched" in said[value] for value in upper)


@pytest.mark.parametrize("values", [["a", "b"], [1, 2, "channels"], [True, False]])
def test_what_has_no_order_has_no_end(values):
    assert [space.edge(values, value) for value in values] == [None] * len(values)


def test_the_end_names_key_value_and_range():
    found = {"recipe.clip": 19.9, "model.groups": 2}
    said = space.edges({"recipe.clip": {"uniform": [0.1, 20.0]}, "model.groups": [1, 2, 4]}, found)
    assert said == ["recipe.clip = 19.9 is at the upper end of what was searched, 0.1 to 20"]
