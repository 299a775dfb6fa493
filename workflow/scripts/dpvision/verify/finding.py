"""A finding: something that a check found not to hold."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

CLOSE = 1e-6  # relative: what a machine's own rounding may do to an ε
ABSENT = "nothing"


class Finding(NamedTuple):
    """One thing that does not hold."""

    where: str
    what: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: expected {_short(self.expected)}, found {_short(self.found)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 160 else text[:157] + "..."


def equal(where: str, what: str, expected: Any, found: Any) -> Iterator[Finding]:
    if expected != found:
        yield Finding(where, what, expected, found)


def close(where: str, what: str, expected: Any, found: Any, relative: float = CLOSE) -> Iterator[Finding]:
    """Yield a finding unless numbers are that close, and all else equal. Numbers that are not finite count as the same."""
    expected, found = _finite(expected), _finite(found)
    numbers = isinstance(expected, float) and isinstance(found, float)
    if not (math.isclose(expected, found, rel_tol=relative, abs_tol=1e-12) if numbers else expected == found):
        yield Finding(where, what, expected, found)


def _finite(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return float(value) if math.isfinite(value) else None


def printable(text: str) -> str:
    """Return a line for a terminal: what would steer it, or begin another line, is written as in Python's source."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
