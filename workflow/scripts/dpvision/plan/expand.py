"""From groups of cells to single cells, each with its coordinates."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dpvision.config.papers import Paper


@dataclass(frozen=True)
class Cell:
    """A point of coordinates, trained with every seed."""

    group: str
    at: dict[str, Any]
    """Its coordinates."""
    level: int
    """The place of its ε among those of the group."""
    runs: dict[str, str] = field(default_factory=dict)
    """The names of its trainings by seed, once they are planned."""
    study: str | None = None
    """The search that chose for its model."""

    @property
    def point(self) -> tuple:
        """What tells it from the others of its group: a scale that changes the rest has it at the same point."""
        return self.group, self.at["model"], self.at["epsilon"]


def expand(paper: Paper) -> list[Cell]:
    """Return all cells of a paper, group by group."""
    return [
        Cell(
            group,
            {
                "dataset": cells.dataset,
                "model": model,
                "recipe": cells.recipe,
                "search": _search(paper, model, cells.searches),
                "epsilon": epsilon,
                "delta": cells.delta,
                "protocol": "paper" if cells.protocol else "clean",
            },
            level,
        )
        for group, cells in paper.cells.items()
        for model in cells.models
        for level, epsilon in enumerate(cells.epsilons)
    ]


def _search(paper: Paper, model: str, searches: dict[str, str]) -> str | None:
    """Return the search that a model leaves values to, or the one that takes its place in a group."""
    named = next(iter(paper.models[model].searched().values()), None)
    return named and searches.get(named, named)


def shown(paper: Paper, cells: Iterable[Cell], artifact: str) -> list[Cell]:
    """Return the cells that an artifact shows, in its order."""
    options = paper.artifacts[artifact]
    groups, epsilons = getattr(options, "cells", []), getattr(options, "epsilons", None)
    there = [cell for cell in cells if epsilons is None or cell.at["epsilon"] in epsilons]
    return [cell for group in groups for cell in there if cell.group == group]


def named(at: dict[str, Any]) -> str:
    """Call a cell by all of its coordinates."""
    return ", ".join(f"{name}: {'null' if value is None else value}" for name, value in at.items())
