"""Tables in the shape that people know: panels, rows and columns by coordinates, a text in each place.

An artifact may say which coordinate goes where. Whatever tells two numbers apart and is not named becomes a row's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpvision.errors import UserError
from dpvision.reporting.coordinates import ALWAYS, HEADINGS, NOMINAL, always_shown, telling

OF_NUMBERS = ("metric", "weights", "split", "statistic")  # coordinates too: they tell numbers of one cell apart
DIRECTIONS = ("panels", "rows", "columns")
NOTHING = "–"
NO_COLUMN = "ours / in print"
SPOKEN = {  # values that are called otherwise than in the configuration
    "metric": {"top1": "top-1", "top5": "top-5", "epsilon_pld": "ε by PLD", "mu": "μ", "epsilon_covered": "ε with its search"},
    "protocol": {"paper": "authors' code"},
}
BY_THEMSELVES = ("dataset", "model", "recipe", "ladder", "protocol", *OF_NUMBERS)  # understood without their names

Names = Mapping[str, Mapping[str, str]]
"""What values are called, by coordinate and value; their order is that of rows and columns."""


class Entry(NamedTuple):
    """A text and its coordinates; a coordinate that is not there is not known."""

    at: dict[str, Any]
    text: str


class Panel(NamedTuple):
    """One table of those that stand below each other."""

    heading: str
    names: list[str]
    """The heads of the first columns, which say what a row is."""
    columns: list[str]
    """The heads of the others."""
    rows: list[list[str]]


def called(coordinate: str, value: Any, names: Names) -> str:
    """Return what a value of a coordinate is called."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if text in names.get(coordinate, {}):
        return names[coordinate][text]
    if coordinate == "epsilon":
        return "not private" if value is None else "as spent" if value == "solve" else text
    if value is None:
        return NOTHING
    spoken = SPOKEN.get(coordinate, {}).get(text, text)
    return spoken.replace("_", " ") if coordinate in OF_NUMBERS else spoken


def head_of(coordinate: str) -> str:
    """Return what a coordinate is called: a dotted key by its last word."""
    return HEADINGS.get(coordinate, coordinate.rpartition(".")[2].replace("_", " "))


def heading(coordinate: str, text: str, names: Names) -> str:
    """Say of which coordinate a value is, where it does not say so itself: ε = 7.42."""
    if coordinate in BY_THEMSELVES or text in {"not private", NOTHING, *names.get(coordinate, {}).values()}:
        return text
    between = " = " if len(head_of(coordinate)) == 1 and text[:1].isdigit() else " "
    return f"{head_of(coordinate)}{between}{text}"


def lay_out(
    entries: Sequence[Entry], cells: Sequence[dict[str, Any]], said: Mapping[str, list[str]], names: Names
) -> list[Panel]:
    """Return the panels; `cells`: the coordinates of all cells, which decide what has to be told apart."""
    sized = sorted(entries, key=lambda entry: _size(entry.at.get(NOMINAL, entry.at.get("epsilon"))))
    worded, by_epsilon, places = (
        [{name: called(name, value, names) for name, value in at.items()} for at in ats]
        for ats in ([entry.at for entry in entries], [entry.at for entry in sized], cells)
    )
    directions = completed(said, _told_apart(worded, places, said))
    coordinates = {*ALWAYS, "metric"}.union(*directions.values())
    order = {name: _order(name, by_epsilon if name in ("epsilon", NOMINAL) else worded, names) for name in coordinates}
    shape = _Shape(directions, order, names)
    panels: dict[tuple[int, ...], list[tuple[dict[str, str], str]]] = {}
    for at, entry in zip(worded, entries, strict=True):
        panels.setdefault(shape.place(at, "panels"), []).append((at, entry.text))
    return [shape.panel(panels[place]) for place in sorted(panels)]


def _size(epsilon: Any) -> float:
    """Return what orders ε: first numbers, then what is spent, then what is not private."""
    return float("inf") if epsilon is None else 1e300 if epsilon == "solve" else float(epsilon)


def completed(said: Mapping[str, list[str]], told_apart: list[str]) -> dict[str, list[str]]:
    """Return the coordinates of each direction: what is said, or else data sets as panels and ε as columns; rows the rest."""
    found = {direction: list(said.get(direction, [])) for direction in DIRECTIONS}
    if not any(found.values()):
        found["panels"] = [name for name in told_apart if name == "dataset"]
        epsilon = [name for name in told_apart if name in ("epsilon", NOMINAL)]
        found["columns"] = epsilon or [name for name in told_apart if name in OF_NUMBERS]
    there = {name for names in found.values() for name in names}
    if not found["columns"] and "metric" not in there:
        found["columns"] = ["metric"]
    found["rows"] += [name for name in told_apart if name not in {*there, *found["columns"]}]
    return found


def _told_apart(worded: list[dict[str, str]], cells: list[dict[str, str]], said: Mapping[str, list[str]]) -> list[str]:
    """Return the coordinates without which two numbers would share a place, beside those that are said."""
    several = set(telling(cells, [name for chosen in said.values() for name in chosen]))
    several |= {name for name in always_shown(cells) if len({at.get(name, NOTHING) for at in worded}) > 1}
    of_numbers = [name for name in OF_NUMBERS if len({at.get(name, NOTHING) for at in worded} - {NOTHING}) > 1]
    return [*(name for name in dict.fromkeys(name for at in cells for name in at) if name in several), *of_numbers]


def _order(name: str, worded: list[dict[str, str]], names: Names) -> list[str]:
    """Return the texts of a coordinate in their order: first as they are named, then as they come."""
    there = list(dict.fromkeys(at.get(name, NOTHING) for at in worded))
    first = [text for text in dict.fromkeys(names.get(name, {}).values()) if text in there]
    return first + [text for text in there if text not in first]


@dataclass(frozen=True)
class _Shape:
    """The place of each coordinate, and the order of its texts."""

    directions: dict[str, list[str]]
    order: dict[str, list[str]]
    names: Names

    def place(self, at: dict[str, str], direction: str) -> tuple[int, ...]:
        return tuple(self.order[name].index(at.get(name, NOTHING)) for name in self.directions[direction])

    def panel(self, entries: list[tuple[dict[str, str], str]]) -> Panel:
        places: dict[tuple, str] = {}
        for at, text in entries:
            if (place := (self.place(at, "rows"), self.place(at, "columns"))) in places:
                there = ", ".join(f"{name}: {value}" for name, value in at.items())
                raise UserError(f"two numbers have one place, the second with {there}; do not call their coordinates the same")
            places[place] = text
        rows, columns = (sorted({place[i] for place in places}) for i in (0, 1))
        names = self.directions["rows"]
        words = [[self.order[name][i] for name, i in zip(names, row, strict=True)] for row in rows]
        kept = [i for i in range(len(names)) if len({texts[i] for texts in words}) > 1] or list(range(len(names)))
        filled = [
            [*(texts[i] for i in kept), *(places.get((row, column), NOTHING) for column in columns)]
            for row, texts in zip(rows, words, strict=True)
        ]
        shown = {*self.directions["columns"], *(names[i] for i in kept)}
        heads = [self._column_head(column, columns) for column in columns]
        return Panel(self._heading([at for at, _ in entries], shown), [head_of(names[i]) for i in kept], heads, filled)

    def _heading(self, worded: list[dict[str, str]], shown: set[str]) -> str:
        """Say what all numbers of a panel have in common, if its rows and columns do not."""
        asked = dict.fromkeys([*self.directions["panels"], *ALWAYS, "metric"])
        texts = {name: {at.get(name, NOTHING) for at in worded} for name in asked if name not in shown}
        common = [heading(name, found.pop(), self.names) for name, found in texts.items() if len(found) == 1]
        return ", ".join(text for text in common if text != NOTHING)

    def _column_head(self, column: tuple[int, ...], columns: list[tuple[int, ...]]) -> str:
        """Call a column by its coordinates; by weights, split and statistic only where these tell it from others like it."""
        words = []
        for i, name in enumerate(self.directions["columns"]):
            alike = {other[i] for other in columns if other[:i] == column[:i]}
            text = self.order[name][column[i]]
            if text != NOTHING and (name not in OF_NUMBERS[1:] or len(alike) > 1):
                words.append(heading(name, text, self.names))
        return ", ".join(words) or NO_COLUMN


def collisions(cells: Iterable[tuple[str, dict[str, Any]]], names: Names) -> list[tuple[str, str]]:
    """Return pairs of groups whose cells would share a place, since their coordinates are called the same."""
    first: dict[tuple, str] = {}
    found = []
    for group, at in cells:
        place = tuple((name, called(name, value, names)) for name, value in at.items())
        if place in first:
            found.append((first[place], group))
        first.setdefault(place, group)
    return found
