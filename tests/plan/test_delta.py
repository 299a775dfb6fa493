"""A δ that is too small to count is refused, and one above 1/(100 N) is said."""

import pytest

from dpvision.plan.delta import LEAST_DELTA, describe_large_delta
from dpvision.privacy.accounting import Mechanism, calibrate, prv_epsilon
from dpvision.privacy.curve import Curve

PAPER = "papers/scalenorm/paper.yaml"
WHERE = f"config/{PAPER}: "
PRACTICE = """
practice:
  selection: none
  search: none
  accounting: none
  searched:
    - {what: some, trainings: 9, epsilon: 3.0, delta: 1.0e-5, examples: 50000, batch: 1024, epochs: 50}
"""


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


def test_delta_that_no_accountant_can_count_is_refused(configuration):
    configuration.change(PAPER, "delta: 1.0e-5", "delta: 1.0e-13")
    (line,) = configuration.complaints()
    assert line.startswith(f"{WHERE}cells.cifar10.delta = 1e-13: must be at least 1e-10")
    assert "1/(100 N) = 2.2e-07" in line and "N = 45000" in line


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ("delta: 1.0e-5", "delta: 0.9", "delta = 0.9: must be at most 1/N = 2e-05"),
        ("delta: 1.0e-5", "delta: 1.0e-12", "delta = 1e-12: must be at least 1e-10"),
        ("batch: 1024", "batch: 102400", "batch = 102400: must be at most 50000"),
    ],
)
def test_search_of_the_authors_is_checked_before_it_is_priced(configuration, right, wrong, expected):
    configuration.append(PAPER, PRACTICE).plan()
    configuration.change(PAPER, PRACTICE, PRACTICE.replace(right, wrong))
    (line,) = configuration.complaints()
    assert line.startswith(f"{WHERE}practice.searched[0].{expected}")


@pytest.mark.parametrize(
    ("q", "steps", "epsilon"), [(0.01, 1000, 3.0), (1.0, 120, 1.0), (1e-3, 100_000, 8.0), (0.3, 100, 30.0)]
)
def test_all_accountants_count_the_least_delta(q, steps, epsilon):
    """At 1e-12 the third of these is 11.4 by PRV; at 1e-13 PRV fails."""
    mechanism = Mechanism(q, calibrate(epsilon, LEAST_DELTA, q, steps), steps)
    curve = Curve.of(mechanism, LEAST_DELTA)
    assert curve.summary(LEAST_DELTA)["mu"] > 0
    for counted in (prv_epsilon(mechanism, LEAST_DELTA), curve.epsilon(LEAST_DELTA)):
        assert 0.8 * epsilon < counted < epsilon
