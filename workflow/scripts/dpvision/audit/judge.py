"""Tests, and a verdict of three.

refuted     what was done is not what is claimed, and is less private, or nobody knows: the claim does not hold
loose       what was done is not what is claimed, and is no less private: the claim holds, and something is wrong
consistent  nothing was found at this confidence; that proves nothing about what no design looks at
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from dpvision.privacy.audit.claim import excess
from dpvision.privacy.audit.rates import Counts
from dpvision.privacy.audit.two_sided import Found

REFUTED, LOOSE, CONSISTENT = VERDICTS = ("refuted", "loose", "consistent")
LEAST = 1e-12  # the least level


@dataclass(frozen=True)
class Test:
    """A test: what one design looks at. Exact ones have no chance in them: the probabilities are 0 or 1."""

    __test__ = False  # for pytest, which takes the name for one of its own

    design: str
    of: str
    """Network, or setting."""
    looks_at: str
    found: Found
    if_less: str
    if_more: str
    exact: bool = False
    numbers: dict[str, Any] = field(default_factory=dict)

    def verdict(self, level: float) -> str:
        """Return the verdict at a level, half of it for each side."""
        if self.found.less < level / 2:
            return self.if_less
        return self.if_more if self.found.more < level / 2 else CONSISTENT


def exactly(
    design: str, of: str, looks_at: str, value: float, expected: float, within: tuple[float, float], if_less: str, if_more: str
) -> Test:
    """Return a test without chance: a number has to lie within two others; what is no number is too large."""
    low, high = within
    found = Found(value, expected, float(not value < low), float(value <= high or value < low), 1)
    return Test(design, of, looks_at, found, if_less, if_more, exact=True)


def of_counts(design: str, of: str, looks_at: str, counts: Counts, claims: list[tuple[float, float]], **numbers: Any) -> Test:
    """Return the test whether counts of two worlds exceed the claimed curve."""
    p = smallest_level(lambda level: excess(counts.bounds(1 - level), claims) > 0)
    value = excess(counts.bounds(1 - 0.5), claims)
    said = {**asdict(counts), **numbers}
    return Test(
        design, of, looks_at, Found(value, 0.0, 1.0, p / 2, counts.inside + counts.out), CONSISTENT, REFUTED, False, said
    )


def smallest_level(refuted: Callable[[float], bool]) -> float:
    """Return the smallest level at which something is refuted, found by halving; 1 where nothing is."""
    if not refuted(0.5):
        return 1.0
    low, high = math.log(LEAST), math.log(0.5)
    if refuted(LEAST):
        return LEAST
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(math.exp(middle)) else (middle, high)
    return math.exp(high)


def judged(tests: list[Test], confidence: float) -> tuple[str, float, list[dict[str, Any]]]:
    """Return the verdict, the level of each test, and a row a test; what may err by chance is shared out evenly."""
    level = (1 - confidence) / max(1, sum(not test.exact for test in tests))
    rows = []
    for test in tests:
        row = {"design": test.design, "of": test.of, "looks_at": test.looks_at, **asdict(test.found)}
        row |= {key: row[key] if math.isfinite(row[key]) else None for key in ("value", "expected")}
        rows.append({**row, "exact": test.exact, "verdict": test.verdict(level), "numbers": test.numbers})
    found = {row["verdict"] for row in rows}
    return next((verdict for verdict in VERDICTS if verdict in found), CONSISTENT), level, rows
