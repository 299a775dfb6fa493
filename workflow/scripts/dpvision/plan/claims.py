"""From a paper's sentences to what decides them: comparisons of cells, each with the runs that it rests on.

A claim names cells as the paper has them. A scale may have another data set in their place, which is compared then, or
leave them out: no run is made for a claim alone, so such a side has none, and the claim is not run.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from dpvision.plan.config import (
    AgainstAnother,
    Baseline,
    Claim,
    Comparison,
    Curvature,
    Interaction,
    Moment,
    OfPair,
    Paper,
    Parameters,
    Published,
)
from dpvision.plan.reading import Document, complaint, unknown
from dpvision.plan.specs import Spec

SHOWN_BY = {"curvature": ("hessian", "spectrum"), "moment": ("activations",)}  # kinds of artifacts; any other than a search
READ = {"times": "provenance.json", "reach": "history.csv", "parameters": "weights.safetensors"} | dict.fromkeys(
    ("difference", "interaction", "best_of", "level"), "metrics.json"
)  # kind of comparison -> what it reads of a run's record
LAID_OUT = {"dataset", "models", "model", "epsilons", "epsilon", "other_epsilon", "minus", "published"}  # in sides
PRINTED = {  # number in hessian.json -> metric in config/published
    "trace": "trace",
    "trace_full": "trace",
    "lambda_max_power": "largest_eigenvalue",
    "ritz_negative": "negative_eigenvalues",
    "condition_largest_to_smallest_magnitude": "condition_number",
    "condition_smallest_positive_to_largest": "condition_number",
    "condition_most_negative_to_largest": "condition_number",
}


At = tuple[str | int, ...]  # where something stands, from the comparison on


class Side(NamedTuple):
    """A cell of the paper, and where in the comparison its data set, its model and its ε stand."""

    dataset: str
    model: str
    epsilon: float | None
    at: tuple[At, At, At]


def sides_of(comparison: Any, paper: Paper) -> Iterator[list[Side]]:
    """What each of its comparisons compares: one for each ε."""
    if isinstance(comparison, OfPair):
        for i in range(len(comparison.epsilons)):
            yield _of_pair(comparison, i) + (_baseline(comparison.minus) if isinstance(comparison, Interaction) else [])
    elif isinstance(comparison, Parameters):  # at any ε: the network is the same
        here = [cells for cells in paper.cells.values() if cells.dataset == comparison.dataset]
        epsilons = [epsilon for cells in here if comparison.model in cells.models for epsilon in cells.epsilons]
        places: tuple[At, At, At] = (("dataset",), ("model",), ("model",))
        yield [Side(comparison.dataset, comparison.model, next(iter(epsilons), None), places)]
    else:
        models: list[tuple[str, At]] = [(comparison.model, ("model",))]
        if isinstance(comparison, Moment) and comparison.minus:
            models.append((comparison.minus.model, ("minus", "model")))
        yield [Side(comparison.dataset, model, comparison.epsilon, (("dataset",), at, ("epsilon",))) for model, at in models]


def _of_pair(pair: OfPair, i: int) -> list[Side]:
    first, second = pair.models
    epsilon, at = pair.epsilons[i], ("epsilons", i)
    sides = [Side(pair.dataset, first, epsilon, (("dataset",), ("models", 0), at))]
    if isinstance(pair, AgainstAnother) and pair.other_epsilon != "same":
        return [*sides, Side(pair.dataset, second, pair.other_epsilon, (("dataset",), ("models", 1), ("other_epsilon",)))]
    return [*sides, Side(pair.dataset, second, epsilon, (("dataset",), ("models", 1), at))]


def _baseline(minus: Baseline) -> list[Side]:
    return [
        Side(minus.dataset, model, minus.epsilon, (("minus", "dataset"), ("minus", "models", i), ("minus", "epsilon")))
        for i, model in enumerate(minus.models)
    ]


def of_claims(claims: dict[str, Claim], paper: Paper, published: list[Published], documents: list[Document]) -> Iterator[str]:
    """What is wrong with claims about a paper, as its own file has it.

    A cell is one that the paper trains or prints: who trains at another ε need not touch the claims, they are not run then.
    """
    for name, claim in claims.items():
        for i, artifact in enumerate(claim.artifacts):
            if artifact not in paper.artifacts:
                yield unknown(documents, (name, "artifacts", i), "artifact", artifact, list(paper.artifacts), artifact)
        for i, comparison in enumerate(claim.comparisons):
            where = (name, "comparisons", i)
            for sides in sides_of(comparison, paper):
                for side in sides:
                    yield from _of_side(side, where, paper, published, documents)
            if isinstance(comparison, Moment):
                yield from _of_places(comparison, where, paper, documents)


def _of_side(side: Side, where: tuple, paper: Paper, published: list[Published], documents: list[Document]) -> Iterator[str]:
    """The first of its names that stands for nothing."""
    to_dataset, to_model, to_epsilon = ((*where, *at) for at in side.at)
    datasets = list(dict.fromkeys(cells.dataset for cells in paper.cells.values()))
    if side.model not in paper.models:
        yield unknown(documents, to_model, "model", side.model, list(paper.models), side.model)
        return
    if side.dataset not in datasets:
        yield unknown(documents, to_dataset, "data set among the cells", side.dataset, datasets, side.dataset)
        return
    here = [cells for cells in paper.cells.values() if cells.dataset == side.dataset]
    models = list(dict.fromkeys(model for cells in here for model in cells.models))
    if side.model not in models:
        yield unknown(documents, to_model, f"cell of {side.dataset} with the model", side.model, models, side.model)
        return
    trained = [e for cells in here if side.model in cells.models for e in cells.epsilons]
    in_print = [row.epsilon for row in published if (row.dataset, row.model) == (side.dataset, side.model)]
    epsilons = list(dict.fromkeys([*trained, *in_print]))
    if side.epsilon not in epsilons:
        allowed = ", ".join("null" if e is None else f"{e:g}" for e in epsilons)
        none = f"no cell of {side.dataset} with {side.model} has this ε; allowed: {allowed}"
        yield complaint(documents, to_epsilon, none, side.epsilon)


def _of_places(moment: Moment, where: tuple, paper: Paper, documents: list[Document]) -> Iterator[str]:
    places: list[tuple[At, str, str]] = [(("place",), moment.model, moment.place)]
    if moment.minus:
        places.append((("minus", "place"), moment.minus.model, moment.minus.place))
    for at, model, place in places:
        if place == "V_A^S" and model in paper.models and not getattr(paper.models[model], "scale_norm", False):
            yield complaint(documents, (*where, *at), f"{model} has no ScaleNorm to look behind; allowed: V_R, V_F, V_A", place)


def _group(side: Side, paper: Paper) -> str | None:
    """The first that has such a cell: variants stand behind it in the paper's file. Not in the authors' protocol."""
    for group, cells in paper.cells.items():
        here = cells.dataset == side.dataset and side.model in cells.models and side.epsilon in cells.epsilons
        if here and cells.protocol is None:
            return group
    return None


def _shown(group: str, epsilon: float | None, kind: str, paper: Paper) -> bool:
    """Whether some artifact has the runs made that a comparison of this kind looks at."""
    return any(
        group in artifact.cells
        and (artifact.epsilons is None or epsilon in artifact.epsilons)
        and (artifact.kind in SHOWN_BY[kind] if kind in SHOWN_BY else artifact.kind != "search")
        for artifact in paper.artifacts.values()
    )


def sides_in(claims: list[Spec]) -> Iterator[tuple[str, Spec]]:
    """The kind of each comparison, with each of its cells."""
    for claim in claims:
        for comparison in claim["comparisons"]:
            yield from ((comparison["kind"], side) for side in comparison["sides"])


def files_of(claims: list[Spec]) -> list[str]:
    """The files of the runs' records that decide the claims."""
    found = (f"{run}/{READ[kind]}" for kind, side in sides_in(claims) if kind in READ for run in side["runs"].values())
    return list(dict.fromkeys(found))


class Decisions(NamedTuple):
    """What comparisons of a paper's claims are resolved with."""

    name: str
    printed: Paper
    """As the paper's own file has it."""
    here: Paper
    """With what the scale lays over it."""
    cells: dict[str, list[dict]]
    """By group, with their runs."""
    published: list[Published]

    def spec(self, name: str, claim: Claim) -> Spec:
        comparisons = [
            self._comparison(comparison, sides)
            for comparison in claim.comparisons
            for sides in sides_of(comparison, self.printed)
        ]
        about = claim.model_dump(exclude={"comparisons"})
        return {"paper": self.name, "name": name, **about, "comparisons": comparisons}

    def _comparison(self, comparison: Any, sides: list[Side]) -> Spec:
        spec = comparison.model_dump(exclude=LAID_OUT) | {"sides": [self._side(comparison, side) for side in sides]}
        if isinstance(comparison, Comparison):
            spec |= {"published": comparison.published, "printed": self._numbers(comparison, sides)}
        if isinstance(comparison, Moment):
            spec["places"] = [spec.pop("place"), *([comparison.minus.place] if comparison.minus else [])]
        return spec

    def _side(self, comparison: Any, side: Side) -> Spec:
        """The cell with its runs; without runs where the scale leaves it out."""
        group = _group(side, self.printed) or ""
        of_group = self.cells.get(group, [])
        found = [cell for cell in of_group if (cell["model"], cell["epsilon"]) == (side.model, side.epsilon)]
        shown = _shown(group, side.epsilon, comparison.kind, self.here)
        if not found or not shown or not self._comparable(comparison.kind, group, side.model):
            return {"dataset": side.dataset, "model": side.model, "epsilon": side.epsilon, "runs": {}}
        if comparison.kind == "parameters":  # one run's weights have them all
            return found[0] | {"runs": dict(list(found[0]["runs"].items())[:1])}
        return found[0]

    def _comparable(self, kind: str, group: str, model: str) -> bool:
        """Not with a number in print: another data set's accuracy, another network's count, in which groups play no part."""
        if kind not in ("level", "parameters"):
            return True
        same_data = self.printed.cells[group].dataset == self.here.cells[group].dataset
        one, other = (paper.models[model].model_dump(exclude={"label", "groups"}) for paper in (self.printed, self.here))
        return same_data and (kind == "level" or one == other)

    def _numbers(self, comparison: Any, sides: list[Side]) -> list[float] | None:
        """In print, of each side; for the best of some, of each side the best, then the median."""
        metric = PRINTED[comparison.quantity] if isinstance(comparison, Curvature) else getattr(comparison, "metric", None)
        statistics = [True, False] if comparison.kind == "best_of" else [False]
        found = [self._printed(side, metric, best) for best in statistics for side in sides]
        return None if None in found else [number for number in found if number is not None]

    def _printed(self, side: Side, metric: str | None, best: bool) -> float | None:
        for row in self.published:
            same_cell = (row.dataset, row.model, row.epsilon) == (side.dataset, side.model, side.epsilon)
            if same_cell and row.metric == metric and (row.statistic == "best") == best:
                return row.value
        return None
