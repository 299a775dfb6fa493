"""The way from a paper's sentences to what decides them: comparisons of cells, each with the work that it rests on.

A claim names cells as the paper has them. A scale may have another data set in their place, which is compared then, or
leave them out: no run is made for a claim alone, so such a side has none, and the claim is not run.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dpvision.config.claims import Claim, Comparison, Curvature, Effect, Moment, Parameters, Side
from dpvision.config.papers import Paper
from dpvision.config.published import Published
from dpvision.plan.expand import Cell, named, shown
from dpvision.plan.reading import Document, complaint, unknown
from dpvision.plan.specs import Spec

PRINTED = {  # number in hessian.json -> metric in published.yaml
    "trace": "trace",
    "trace_full": "trace",
    "lambda_max_power": "largest_eigenvalue",
    "ritz_negative": "negative_eigenvalues",
    "condition_largest_to_smallest_magnitude": "condition_number",
    "condition_smallest_positive_to_largest": "condition_number",
    "condition_most_negative_to_largest": "condition_number",
}
WHAT = {"dataset": "data set", "epsilon": "ε"}


class Resolver(NamedTuple):
    """What the sides of a paper's claims are resolved with."""

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
                for sides in comparison.sides(claim.where):
                    if len(sides) > 1 and sides[0].where == sides[1].where and not isinstance(comparison, Moment):
                        itself = f"compares {sides[0].where['model']} with itself"
                        yield complaint(documents, at, f"{itself}; say what differs, as by against: {{recipe: ...}}")
                    for side in sides:
                        yield from self._problem(side, claim, comparison, at, documents)
                if isinstance(comparison, Moment):
                    yield from self._of_places(comparison, at, documents)

    def _problem(self, side: Side, claim: Claim, comparison: Comparison, at: tuple, documents: list[Document]) -> Iterator[str]:
        """Yield the first of its coordinates that no cell has beside those before it, or that two cells have all of them."""
        left = self._candidates(claim)
        of_these = f" of {', '.join(claim.artifacts)}" if claim.artifacts else ""
        so_far: dict[str, Any] = {}
        for key, value in side.where.items():
            found = [cell for cell in left if key in cell.at and cell.at[key] == value]
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
        if len(left) > 1 and not isinstance(comparison, Parameters):
            one, other = left[:2]
            apart = [key for key in one.at if one.at[key] != other.at.get(key)]
            two = f"{one.group} ({_part(one.at, apart)}) and {other.group} ({_part(other.at, apart)})"
            yield complaint(
                documents, at, f"selects two cells{of_these}, {two}: say which, as by where: {{{_part(one.at, apart[-1:])}}}"
            )

    def _in_print(self, side: Side) -> bool:
        return any(self._of_side(row, side) for row in self.published)

    @staticmethod
    def _of_side(row: Published, side: Side) -> bool:
        coordinates = row.coordinates()
        return all(side.where.get(key, value) == value for key, value in coordinates.items()) and "model" in coordinates

    def _of_places(self, moment: Moment, at: tuple, documents: list[Document]) -> Iterator[str]:
        for below, model, place in moment.places():
            if place == "V_A^S" and model in self.printed.models and not getattr(self.printed.models[model], "scale_norm", 0):
                none = f"{model} has no ScaleNorm to look behind; allowed: V_R, V_F, V_A"
                yield complaint(documents, (*at, *below), none, place)

    # --- what decides them at the scale ---

    def page(self, claims: dict[str, Claim], with_work: Callable[[Cell, str], Spec]) -> Spec:
        """Return the claims with what decides them, and the cells that they rest on, each with what is read of it."""
        made = [self._claim(name, claim, with_work) for name, claim in claims.items()]
        cells: dict[tuple, Spec] = {}
        for comparison in (one for claim in made for one in claim["comparisons"]):
            for side in (side for side in comparison["sides"] if side["work"]):
                of_seeds = tuple(seed for names in side["work"].values() for seed in names)
                cell = cells.setdefault((named(side["at"]), of_seeds), {**side, "work": {}, "reads": []})
                for stage, names in side["work"].items():
                    cell["work"].setdefault(stage, {}).update(names)
                cell["reads"] += [comparison["reads"]] * (comparison["reads"] not in cell["reads"])
        return {"claims": made, "reads": {"records": []}, "cells": list(cells.values())}

    def _claim(self, name: str, claim: Claim, with_work: Callable[[Cell, str], Spec]) -> Spec:
        comparisons = [
            self._comparison(comparison, sides, claim, with_work)
            for comparison in claim.comparisons
            for sides in comparison.sides(claim.where)
        ]
        about = claim.model_dump(include={"text", "section", "artifacts", "reading", "combined"})
        return {"name": name, **about, "comparisons": comparisons}

    def _comparison(self, comparison: Any, sides: list[Side], claim: Claim, with_work: Callable[[Cell, str], Spec]) -> Spec:
        spec: Spec = {"kind": comparison.kind, "reads": comparison.READS} | {
            key: getattr(comparison, key) for key in comparison.OWN
        }
        spec["sides"] = [self._side(comparison, side, claim, with_work) for side in sides]
        if isinstance(comparison, Effect):
            spec["claimed"] = comparison.claimed.model_dump()
            spec |= {"published": comparison.published, "printed": self._numbers(comparison, sides)}
        if isinstance(comparison, Moment):
            spec["places"] = [place for _, _, place in comparison.places()]
        return spec

    def _candidates(self, claim: Claim) -> list[Cell]:
        """Return the printed paper's cells that the claim's artifacts show; all where it names none."""
        if not claim.artifacts:
            return self.as_printed
        known = [name for name in claim.artifacts if name in self.printed.artifacts]
        points = {cell.point for name in known for cell in shown(self.printed, self.as_printed, name)}
        return [cell for cell in self.as_printed if cell.point in points]

    def _side(self, comparison: Any, side: Side, claim: Claim, with_work: Callable[[Cell, str], Spec]) -> Spec:
        """Return the cell with its work; without work where the scale leaves it out."""
        stage = comparison.READS.split("/")[0]
        points = [cell.point for cell in self._candidates(claim) if side.where.items() <= cell.at.items()]
        found = [cell for point in points for cell in self.cells if cell.point == point and self._shows(cell, stage)]
        if not found or not self._comparable(comparison, found[0]):
            return {"at": side.where, "work": {}}
        made = with_work(found[0], stage)
        if isinstance(comparison, Parameters):  # one run's weights have them all
            made["work"] = {stage: dict(list(made["work"][stage].items())[:1])}
        return made

    def _shows(self, cell: Cell, stage: str) -> bool:
        """Whether some artifact of the scale has the work made that a comparison looks at."""
        for name, artifact in self.here.artifacts.items():
            stages = set(artifact.stages()) - {"search"}
            if (stage in stages or (stage == "train" and stages)) and cell in shown(self.here, [cell], name):
                return True
        return False

    def _comparable(self, comparison: Any, cell: Cell) -> bool:
        """Not with a number in print: another data set's accuracy, another network's count, in which groups play no part."""
        if comparison.kind not in ("level", "parameters"):
            return True
        same_data = self.printed.cells[cell.group].dataset == self.here.cells[cell.group].dataset
        model = cell.at["model"]
        one, other = (paper.models[model].model_dump(exclude={"label", "groups"}) for paper in (self.printed, self.here))
        return same_data and (comparison.kind == "level" or one == other)

    def _numbers(self, comparison: Any, sides: list[Side]) -> list[float] | None:
        """Return the numbers in print, of each side; for the best of some, of each side the best, then the median."""
        metric = PRINTED[comparison.quantity] if isinstance(comparison, Curvature) else getattr(comparison, "metric", None)
        statistics = [True, False] if comparison.kind == "best_of" else [False]
        found = [self._printed(side, metric, best) for best in statistics for side in sides]
        return None if None in found else [number for number in found if number is not None]

    def _printed(self, side: Side, metric: str | None, best: bool) -> float | None:
        of_test = [row for row in self.published if row.metric == metric and row.split in (None, "test")]
        rows = (row for row in of_test if (row.statistic == "best") == best)
        return next((row.value for row in rows if self._of_side(row, side)), None)


def _part(at: dict[str, Any], keys: list[str]) -> str:
    return named({key: at[key] for key in keys})
