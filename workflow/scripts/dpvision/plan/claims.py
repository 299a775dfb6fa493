"""The way from a paper's sentences to what decides them: comparisons of cells, each with the work that it rests on.

A claim names cells as the paper has them. A scale may have others in their place, which decide nothing, or leave them out:
no run is made for a claim alone, so such a side has none, and the claim is not run.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from dpvision.config.cells import COORDINATES
from dpvision.config.claims import Claim
from dpvision.config.comparisons import At, Comparison, Effect, OfAccuracy, Side
from dpvision.config.papers import Paper
from dpvision.config.published import Published
from dpvision.plan.expand import Cell, named, shown
from dpvision.plan.reading import Document, complaint, unknown
from dpvision.plan.specs import Spec

WHAT = {"dataset": "data set", "epsilon": "ε"}
Options = dict[str, Any]  # dotted key -> value


class Resolver(NamedTuple):
    """The cells and numbers that the sides of a paper's claims are resolved with."""

    printed: Paper
    """As the paper's own file has it."""
    as_printed: list[Cell]
    """Its cells."""
    here: Paper
    """With what the scale lays over it."""
    published: list[Published]
    cells: list[Cell]
    """Of the scale, with their runs."""

    # --- what is wrong with claims, as the paper's own file has its cells ---

    def problems(self, claims: dict[str, Claim], documents: list[Document]) -> Iterator[str]:
        """Yield a line for each thing that is wrong.

        A cell is one that the paper trains or prints: who trains at another ε need not touch the claims, they are not run then.
        """
        for name, claim in claims.items():
            for i, artifact in enumerate(claim.artifacts):
                if artifact not in self.printed.artifacts:
                    known = list(self.printed.artifacts)
                    yield unknown(documents, (name, "artifacts", i), "artifact", artifact, known, artifact)
            for i, comparison in enumerate(claim.comparisons):
                at = (name, "comparisons", i)
                yield from self._of_comparison(comparison, claim, at, documents)
                for below, fault in comparison.faults(self.printed.models):
                    yield complaint(documents, (*at, *below), fault, _value(comparison, below))

    def _of_comparison(self, comparison: Comparison, claim: Claim, at: tuple, documents: list[Document]) -> Iterator[str]:
        for sides in comparison.sides(claim.where):
            if comparison.compares_itself(sides):
                itself = f"compares {sides[0].where['model']} with itself"
                yield complaint(documents, at, f"{itself}; say what differs, as by against: {{recipe: ...}}")
            for side in sides:
                yield from self._problem(side, claim, comparison, at, documents)
            if isinstance(comparison, OfAccuracy):
                yield from self._of_other_examples(comparison, sides, claim, at, documents)

    def _of_other_examples(
        self, comparison: OfAccuracy, sides: list[Side], claim: Claim, at: tuple, documents: list[Document]
    ) -> Iterator[str]:
        """Yield what is wrong with an effect in print whose numbers in print are of other examples than ours."""
        ((metric, _), *_) = comparison.in_print()
        if comparison.published is None or metric is None:
            return
        of_sides = [self._rows(side, self._as_printed(side, claim)) for side in sides]
        splits = set.intersection(*({_split(row) for row in rows if row.metric == metric} for rows in of_sides))
        if splits and _split(comparison) not in splits:
            there = ", ".join(sorted(splits))
            fault = f"the numbers in print are of {there} examples, not of {_split(comparison)}: say split: {there}"
            yield complaint(documents, (*at, "published"), fault, comparison.published)

    def _problem(self, side: Side, claim: Claim, comparison: Comparison, at: tuple, documents: list[Document]) -> Iterator[str]:
        """Yield the first of its coordinates that no cell has beside those before it, or that two cells have all of them."""
        left = self._candidates(claim)
        of_these = f" of {', '.join(claim.artifacts)}" if claim.artifacts else ""
        so_far: dict[str, Any] = {}
        for key, value in side.where.items():
            found = [cell for cell in left if cell.at.get(key) == value]
            if not found and not self._in_print(side):
                there = list(dict.fromkeys(cell.at[key] for cell in left if key in cell.at))
                beside = f" with {named(so_far)}" if so_far else ""
                place = (*at, *side.at[key])
                if key == "epsilon":
                    allowed = ", ".join("null" if e is None else f"{e:g}" for e in there)
                    yield complaint(documents, place, f"no cell{of_these}{beside} has this ε; allowed: {allowed}", value)
                else:
                    among = f" among the cells{of_these}{beside}"
                    yield unknown(documents, place, WHAT.get(key, key), value, there, value, among)
                return
            left = found
            so_far[key] = value
        if len(left) > 1 and not comparison.OF_NETWORK:
            one, other = left[:2]
            apart = [key for key in one.at if one.at[key] != other.at.get(key)]
            two = f"{one.group} ({_part(one.at, apart)}) and {other.group} ({_part(other.at, apart)})"
            yield complaint(
                documents, at, f"selects two cells{of_these}, {two}: say which, as by where: {{{_part(one.at, apart[-1:])}}}"
            )
        for cell in left[:1]:
            for below, fault in comparison.faults_of(cell, self.printed.searches):
                yield complaint(documents, (*at, *below), fault, _value(comparison, below))

    def _in_print(self, side: Side) -> bool:
        """Tell whether a number in print may be of a side that no cell is: it has every key that the side says is varied."""
        varied = side.where.keys() - set(COORDINATES)
        return any(_of_side(row, side) and varied <= row.varied.keys() for row in self.published)

    # --- what decides them at the scale ---

    def page(self, claims: dict[str, Claim], with_work: Callable[[Cell, str], Spec]) -> Spec:
        """Return the claims with what decides them, and the cells that they rest on, each with what is read of it."""
        made = [self._claim(name, claim, with_work) for name, claim in claims.items()]
        cells: dict[tuple, Spec] = {}
        for comparison in (one for claim in made for one in claim["comparisons"]):
            for side in (side for side in comparison["sides"] if side["work"]):
                of_seeds = tuple(seed for names in side["work"].values() for seed in names)
                about = {key: value for key, value in side.items() if key not in ("instead", "attacked")}
                cell = cells.setdefault((named(side["at"]), of_seeds), {**about, "work": {}, "reads": []})
                for stage, names in side["work"].items():
                    cell["work"].setdefault(stage, {}).update(names)
                also = ["train/ledger.json"] * ("train" in side["work"])  # what the page says of its ε
                cell["reads"] += [file for file in [comparison["reads"], *also] if file not in cell["reads"]]
        return {"claims": made, "reads": {"records": []}, "cells": list(cells.values())}

    def _claim(self, name: str, claim: Claim, with_work: Callable[[Cell, str], Spec]) -> Spec:
        comparisons = [
            self._comparison(comparison, sides, claim, with_work)
            for comparison in claim.comparisons
            for sides in comparison.sides(claim.where)
        ]
        about = claim.model_dump(include={"text", "in_our_words", "section", "artifacts", "reading", "combined"})
        return {"name": name, **about, "comparisons": comparisons}

    def _comparison(
        self, comparison: Comparison, sides: list[Side], claim: Claim, with_work: Callable[[Cell, str], Spec]
    ) -> Spec:
        spec: Spec = {"kind": comparison.kind, "reads": comparison.reads()}
        printed = [self._as_printed(side, claim) for side in sides]
        telling = _telling([cell for cells in printed for cell in cells[:1]])
        spec["sides"] = [
            self._side(comparison, side, cells, telling, with_work) for side, cells in zip(sides, printed, strict=True)
        ]
        spec |= comparison.said()
        if isinstance(comparison, Effect):
            spec["claimed"] = comparison.claimed.model_dump()
            rows = self._numbers(comparison, sides, printed)
            spec |= {"published": comparison.published, "printed": None if rows is None else [row.value for row in rows]}
            if comparison.published is None and (sources := dict.fromkeys(row.source for row in rows or () if row.source)):
                spec["source"] = " and ".join(sources)
        return spec

    def _candidates(self, claim: Claim) -> list[Cell]:
        """Return the printed paper's cells that the claim's artifacts show; all where it names none."""
        if not claim.artifacts:
            return self.as_printed
        known = [name for name in claim.artifacts if name in self.printed.artifacts]
        points = {cell.point for name in known for cell in shown(self.printed, self.as_printed, name)}
        return [cell for cell in self.as_printed if cell.point in points]

    def _as_printed(self, side: Side, claim: Claim) -> list[Cell]:
        """Return the printed paper's cells that a side selects: one, or all that have the network."""
        return [cell for cell in self._candidates(claim) if all(cell.at.get(key) == value for key, value in side.where.items())]

    def _side(
        self,
        comparison: Comparison,
        side: Side,
        printed: list[Cell],
        telling: set[str],
        with_work: Callable[[Cell, str], Spec],
    ) -> Spec:
        """Return the cell with its work, and what the scale has in the place of what; without work where it leaves it out."""
        stage = comparison.reads().split("/")[0]
        pairs = [(one, cell) for one in printed for cell in self.cells if cell.point == one.point]
        there = [(one, cell) for one, cell in pairs if self._shows(cell, stage)]
        if not there:
            near = [cell for one, cell in pairs if cell.at["dataset"] == one.at["dataset"]] + printed
            return {"at": side.where if comparison.OF_NETWORK or not near else near[0].at, "work": {}}
        instead = self._instead(*there[0], side, set() if comparison.OF_NETWORK else telling)
        if instead and comparison.AGAINST_PRINT:
            return {"at": there[0][1].at, "work": {}, "instead": instead}
        made = with_work(there[0][1], stage)
        if comparison.OF_NETWORK:  # one run's weights have them all
            made["work"] = {stage: dict(list(made["work"][stage].items())[:1])}
        return made | ({"instead": instead} if instead else {})

    def _shows(self, cell: Cell, stage: str) -> bool:
        """Tell whether some artifact of the scale has the work made that a comparison looks at."""
        for name, artifact in self.here.artifacts.items():
            stages = set(artifact.stages())  # whatever is made of trained weights has a training made, and its search
            makes = {"search": stages, "train": stages - {"search"}}.get(stage, stages & {stage})
            if makes and cell in shown(self.here, [cell], name):
                return True
        return False

    def _instead(self, printed: Cell, here: Cell, side: Side, telling: set[str]) -> dict[str, list]:
        """Return what the scale has in the place of what: of the coordinates that the claim names, of the network, and of
        what tells the sides apart; each with the paper's value and the scale's.

        What the paper leaves to a search is its own with any value.
        """
        found = {key: [value, here.at.get(key)] for key, value in side.where.items() if here.at.get(key) != value}
        free = set(self.printed.searches[printed.at["search"]].space) if printed.at["search"] else set()
        free |= {f"model.{key}" for key in printed.model.searched()}
        was, now = _options(printed), _options(here)
        about = [key for key in [*was, *now] if key.startswith("model.") or key in telling]
        about = [key for key in about if not any(key == one or key.startswith(f"{one}.") for one in free)]
        changed = {key: [was.get(key), now.get(key)] for key in about if was.get(key) != now.get(key)}
        if "model.family" in changed:  # another family has other options: it says enough by itself
            changed = {key: values for key, values in changed.items() if key == "model.family" or key in telling}
        return found | changed

    def _numbers(self, comparison: Comparison, sides: list[Side], cells: list[list[Cell]]) -> list[Published] | None:
        """Return the numbers in print, of each side; for the best of some, of each side the best, then the median."""
        rows = [self._rows(side, of) for side, of in zip(sides, cells, strict=True)]
        found = [_printed(there, comparison, metric, best) for metric, best in comparison.in_print() for there in rows]
        return None if None in found else [row for row in found if row is not None]

    def _rows(self, side: Side, cells: list[Cell]) -> list[Published]:
        """Return what is printed of a side's cell: no row has a coordinate that the cell has not."""
        return [row for row in self.published if _of_side(row, side) and (not cells or _of_cell(row, cells[0]))]


def modules(page: Spec) -> list[str]:
    """Return the modules of the comparisons that a page of claims makes; none of any other artifact."""
    kinds = {comparison["kind"] for claim in page.get("claims", []) for comparison in claim["comparisons"]}
    return [f"dpvision.reporting.comparisons.{kind}" for kind in sorted(kinds)]


def _value(comparison: Comparison, at: At) -> Any:
    """Return what stands at a place below a comparison."""
    return functools.reduce(lambda value, key: getattr(value, str(key)), at, comparison)


def _printed(rows: list[Published], comparison: Comparison, metric: str | None, best: bool) -> Published | None:
    weights = getattr(comparison, "weights", None)
    of_examples = [row for row in rows if row.metric == metric and _split(row) == _split(comparison)]
    of_weights = (row for row in of_examples if weights in (None, row.weights))
    return next((row for row in of_weights if (row.statistic == "best") == best), None)


def _split(of: Published | Comparison) -> str:
    """Return the examples that a number is counted on; where that is not said, the test examples."""
    return getattr(of, "split", None) or "test"


def _of_cell(row: Published, cell: Cell) -> bool:
    return all(key in cell.at and cell.at[key] == value for key, value in row.coordinates().items())


def _of_side(row: Published, side: Side) -> bool:
    coordinates = row.coordinates()
    return all(side.where.get(key, value) == value for key, value in coordinates.items()) and "model" in coordinates


def _part(at: dict[str, Any], keys: list[str]) -> str:
    return named({key: at[key] for key in keys})


def _options(cell: Cell) -> Options:
    """Return all that is said of a cell's network, recipe, split and budget."""
    parts = {"model": cell.model, "recipe": cell.recipe, "split": cell.split, "budget": cell.budget}
    return dict(_flat("", {key: part.model_dump(exclude={"label"}) for key, part in parts.items() if part}))


def _flat(before: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield before, value
        return
    for key, below in value.items():
        yield from _flat(f"{before}.{key}" if before else key, below)


def _telling(cells: Iterable[Cell]) -> set[str]:
    """Return the options in which the sides of a comparison differ: what it is about, beside what it names."""
    sides = [_options(cell) for cell in cells]
    keys = {key for side in sides for key in side}
    return {key for key in keys if any(side.get(key) != sides[0].get(key) for side in sides)}
