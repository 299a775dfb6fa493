"""A search's space, as specs say it: for each key a list of choices, or a range, which is {kind: [least, greatest]}.

Plain Python: the plan, the search and the verification all read it.
"""

import math
from typing import Any

EDGE = 1 / 20  # share of a range of real numbers, on its own scale: a value nearer to the end is at the end

Values = list[Any] | dict[str, list[Any]]
SPENDING = {"recipe.batch", "recipe.epochs", "recipe.steps", "recipe.simulate"}  # what q, σ and steps of a trial depend on


def kind(values: Values) -> list[str]:
    """Return the key that a range's two ends stand below; an empty list for a list of choices."""
    return [range_of(values)[0]] if isinstance(values, dict) else []


def range_of(values: dict[str, list[Any]]) -> tuple[str, Any, Any]:
    """Return a range's kind and its two ends."""
    ((kind, (low, high)),) = values.items()
    return kind, low, high


def count(values: Values) -> float:
    """Return how many values there are: infinitely many in a range of real numbers."""
    if isinstance(values, list):
        return len(values)
    kind, low, high = range_of(values)
    return high - low + 1 if kind == "integers" else math.inf


def examples(values: Values) -> list[Any]:
    """Return all choices, or the ends of a range: where both are allowed, so is all between them."""
    return list(range_of(values)[1:]) if isinstance(values, dict) else list(values)


def greatest(values: Values) -> Any:
    """Return the greatest number, or the first choice where there is none. The plan counts costs with it."""
    there = examples(values)
    return max(filter(_is_number, there), default=there[0])


def parsed(values: Values, text: str) -> Any:
    """Return the value that a table has as text."""
    if isinstance(values, list):
        return next(choice for choice in values if str(choice) == text)
    return int(text) if "integers" in values else float(text)


def edges(space: dict[str, Values], found: dict[str, Any]) -> list[str]:
    """Say which found values are at an end of what was searched."""
    said = {key: edge(values, found[key]) for key, values in space.items()}
    return [f"{key} = {words}" for key, words in said.items() if words]


def edge(values: Values, value: Any) -> str | None:
    """Say at which end of its range, or of its list of numbers, a value lies; None: at neither, or there is no order."""
    there = examples(values)
    if not all(map(_is_number, there)):
        return None
    low, high = min(there), max(there)
    place, near = _place(values, low, high, value), EDGE if count(values) == math.inf else 0
    end = "lower" if place <= near else "upper" if place >= 1 - near else None
    return end and f"{value:.4g} is at the {end} end of what was searched, {low:g} to {high:g}"


def _place(values: Values, low: float, high: float, value: float) -> float:
    """Return where a value lies between two others, from 0 to 1, on the scale that it was drawn on."""
    if "log_uniform" in values:
        low, high, value = math.log(low), math.log(high), math.log(value)
    return (value - low) / (high - low)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
