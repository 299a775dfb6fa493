"""The expansion of groups of cells into single cells, each with its coordinates, its network, its recipe and its split."""

import functools
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from dpvision.config.cells import Budget, Cells, Split
from dpvision.config.datasets import Dataset
from dpvision.config.papers import Paper
from dpvision.config.recipes import Recipe
from dpvision.errors import UserError
from dpvision.files import canonical_json
from dpvision.models.found import Model
from dpvision.models.options import Network
from dpvision.plan.reading import Document, complaint, laid_over, merged

PARTS: dict[str, Any] = {"model": Model, "recipe": Recipe, "split": Split, "budget": Budget}
"""Parts that a group can vary, by the first word of a dotted key."""


@dataclass(frozen=True)
class Cell:
    """A point of coordinates, trained with every seed."""

    group: str
    at: dict[str, Any]
    """Coordinates of the cell."""
    varied: dict[str, Any]
    """Coordinates that its group varies."""
    model: Network
    recipe: Recipe
    split: Split
    """Division of the training examples; in the authors' protocol none are held out."""
    budget: Budget | None
    """Budget that is given beside its ε, or instead of it."""
    level: int
    """Place of its ε among those of the group."""
    runs: dict[str, str] = field(default_factory=dict)
    """Names of its trainings by seed, once they are planned."""
    study: str | None = None
    """Search that finds values for it."""

    @property
    def point(self) -> tuple:
        """Return what tells the cell from others of its group; a scale that changes the rest has it at the same point."""
        return self.group, self.at["model"], self.at["epsilon"], *self.varied.items()


def expand(paper: Paper, datasets: dict[str, Dataset], documents: list[Document]) -> tuple[list[Cell], list[str]]:
    """Return all cells of a paper, group by group, and what is wrong with what they vary. Unknown names have no cells."""
    found: list[Cell] = []
    problems = []
    for group, cells in paper.cells.items():
        if cells.recipe not in paper.recipes or cells.dataset not in datasets:
            continue
        for varied, over in _variations(cells):
            for model in (model for model in cells.models if model in paper.models):
                try:
                    found += _cells(group, cells, model, varied, over, paper, datasets[cells.dataset])
                except UserError as error:
                    with_these = f"with {named(varied)}: " if varied else ""
                    problems.append(complaint(documents, ("cells", group), f"{with_these}{error}"))
    return found, problems


def _cells(group: str, cells: Cells, name: str, varied: dict, over: dict, paper: Paper, dataset: Dataset) -> Iterator[Cell]:
    """Yield the cells of a model that differ in ε alone."""
    model = _with("model", paper.models[name], over)
    recipe = _with("recipe", paper.recipes[cells.recipe], over)
    split = _with("split", cells.split or Split(validation=0 if cells.protocol else dataset.validation), over)
    if cells.epsilons and (of_budget := over.get("budget")):
        settings = ", ".join(f"budget.{key}" for key in of_budget)
        raise UserError(
            f"it has epsilons, from which σ follows, and {settings}; write `budget: {{...}}` in the place of epsilons"
        )
    budget = _with("budget", cells.budget, over)
    if budget and (fault := budget.fault()):
        raise UserError(fault)
    for level, epsilon in enumerate(cells.epsilons or [budget.epsilon]):
        at = {
            "dataset": cells.dataset,
            "model": name,
            "recipe": cells.recipe,
            "search": cells.search or _search(model, cells.searches),
            "epsilon": epsilon,
            **({"sigma": budget.sigma} if budget else {}),
            "delta": cells.delta,
            "protocol": "paper" if cells.protocol else "clean",
            "held_out": split.validation,
            **({"train": cells.train} if cells.train != "all" or cells.start else {}),
            **({"start": cells.start.weights or cells.start.cells} if cells.start else {}),
        }
        yield Cell(group, at | varied, varied, model, recipe, split, budget, level)


def _variations(cells: Cells) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each variation of a group: its coordinates, and what is laid over model, recipe and split."""
    rungs: list[tuple[dict, dict]] = [({}, {})]
    for rung in cells.ladder or []:
        rungs.append(({"ladder": rung.add}, merged(rungs[-1][1], {"model": rung.model, "recipe": rung.recipe})))
    lists = [[(key, value) for value in values] for key, values in (cells.vary or {}).items()]
    for rung_at, rung_over in rungs[1:] or rungs:
        for point in cells.points or [{}]:
            for combination in itertools.product(*lists):
                settings = {**point, **dict(combination)}
                over = functools.reduce(merged, (_nested(key, value) for key, value in settings.items()), rung_over)
                yield rung_at | {key: _coordinate(value) for key, value in settings.items()}, over


def _nested(key: str, value: Any) -> dict[str, Any]:
    """Return a dotted key's value as it stands below its mappings."""
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


def _coordinate(value: Any) -> Any:
    """Return a value that tells cells apart: a mapping or a list as text."""
    return canonical_json(value) if isinstance(value, dict | list) else value


def _with(part: str, options: Any, over: dict[str, Any]) -> Any:
    """Return a model, a recipe or a split with what varies laid over it."""
    if strange := over.keys() - PARTS.keys():
        raise UserError(f"{strange.pop()}: what is varied begins with {', '.join(f'{name}.' for name in PARTS)}")
    return laid_over(_adapter(part), options, over[part], part) if over.get(part) else options


def having(part: str, options: Any, key: str, value: Any) -> Any:
    """Return a model or a recipe that has a value at a dotted key."""
    return _with(part, options, _nested(key, value))


@functools.cache
def _adapter(part: str) -> TypeAdapter:
    return TypeAdapter(PARTS[part])


def _search(model: Network, searches: dict[str, str]) -> str | None:
    """Return the search that a model leaves values to, or the one that takes its place in a group."""
    by_name = next(iter(model.searched().values()), None)
    return by_name and searches.get(by_name, by_name)


def shown(paper: Paper, cells: Iterable[Cell], artifact: str) -> list[Cell]:
    """Return the cells that an artifact shows, in its order."""
    options = paper.artifacts[artifact]
    groups, epsilons = getattr(options, "cells", []), getattr(options, "epsilons", None)
    there = [cell for cell in cells if epsilons is None or cell.at["epsilon"] in epsilons]
    return [cell for group in groups for cell in there if cell.group == group]


def named(at: dict[str, Any]) -> str:
    """Return the name of a cell: its coordinates in words."""
    return ", ".join(f"{name}: {'null' if value is None else value}" for name, value in at.items())
