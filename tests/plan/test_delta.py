"""A δ that is too small to count is refused, and one above 1/(100 N) is said."""

import pytest

from dpvision.plan.delta import describe_large_delta


@pytest.mark.parametrize(
    ("delta", "examples", "expected"),
    [(1e-5, 45_000, "δ N = 0.45, "), (1e-5, 1_001, "δ N = 0.01, "), (1e-3, 999, "δ N = 1, ")],
)
def test_large_delta_is_told_with_its_product(delta, examples, expected):
    said = describe_large_delta(delta, examples)
    assert said is not None and said.startswith(expected)
    assert f"{examples:,} examples" in said


@pytest.mark.parametrize(("delta", "examples"), [(1e-5, 1_000), (1e-6, 1_000), (1.25e-5, 800)])
def test_small_delta_is_not_remarked_upon(delta, examples):
    assert describe_large_delta(delta, examples) is None
