"""Check what tables and figures show, and where in a table it stands."""

from collections.abc import Iterator

from dpvision.config.artifacts import Artifact, OfCells, Table
from dpvision.config.cells import Cells
from dpvision.config.papers import Paper
from dpvision.plan.expand import Cell, named, shown
from dpvision.plan.reading import Documents, complaint, unknown
from dpvision.reporting.layout import OF_NUMBERS, collisions


def of_artifact(name: str, artifact: Artifact, paper: Paper, artifacts: list[str], documents: Documents) -> Iterator[str]:
    where = ("artifacts", name)
    if (published := getattr(artifact, "published", None)) is not None and published not in artifacts:
        yield unknown(documents, (*where, "published"), "artifact", published, artifacts, published)
    chosen = getattr(artifact, "cells", [])
    groups = [paper.cells[group] for group in chosen if group in paper.cells]
    for i, group in enumerate(chosen):
        if group not in paper.cells:
            yield unknown(documents, (*where, "cells", i), "group of cells", group, list(paper.cells), group)
    there = list(dict.fromkeys(epsilon for group in groups for epsilon in group.epsilons or _budgets(group)))
    for i, epsilon in enumerate(getattr(artifact, "epsilons", None) or []):
        if groups and epsilon not in there:
            allowed = ", ".join("null" if e is None else f"{e:g}" for e in there)
            yield complaint(documents, (*where, "epsilons", i), f"none of its cells has this ε; allowed: {allowed}", epsilon)
    stages = set(artifact.stages()) - {"data"}
    for i, group in enumerate(chosen):
        if stages and group in paper.cells and ("attack" in stages) != bool(paper.cells[group].attack):
            says = "names no attack" if "attack" in stages else "is attacked and not trained; show it by the kind attack"
            yield complaint(documents, (*where, "cells", i), f"this group of cells {says}", group)
    models = {model: paper.models[model] for group in groups for model in group.models if model in paper.models}
    for key, fault in artifact.faults(models, groups):
        yield complaint(documents, (*where, key), fault, getattr(artifact, key))


def _budgets(group: Cells) -> list[float]:
    """Return the levels of ε that the points of a group give."""
    return [point["budget.epsilon"] for point in group.points or [] if "budget.epsilon" in point]


def of_places(paper: Paper, cells: list[Cell], documents: Documents) -> Iterator[str]:
    """Yield a line for two cells of an artifact that have the same coordinates, and for what is wrong with its layout."""
    for name, artifact in paper.artifacts.items():
        first: dict[str, Cell] = {}
        for cell in shown(paper, cells, name):
            same = first.setdefault(named(cell.at), cell)
            if same is not cell:
                both = f"{same.group} and {cell.group} both have the cell {named(cell.at)}; show one of them"
                yield complaint(documents, ("artifacts", name, "cells"), both, getattr(artifact, "cells", []))
        if isinstance(artifact, Table):
            yield from _of_layout(name, artifact, list(first.values()), paper, documents)
        elif isinstance(artifact, OfCells):
            yield from _of_axes(name, artifact, list(first.values()), documents)


def _of_axes(name: str, figure: OfCells, cells: list[Cell], documents: Documents) -> Iterator[str]:
    """Yield a line for each axis, line or panel of a figure that is no coordinate of its cells."""
    for option, besides in figure.COORDINATES.items():
        allowed = [*dict.fromkeys(key for cell in cells for key in cell.at), *besides]
        chosen = getattr(figure, option)
        for i, coordinate in enumerate(chosen) if isinstance(chosen, list) else [(None, chosen)]:
            path: tuple = ("artifacts", name, option, *([] if i is None else [i]))
            if coordinate not in allowed:
                yield unknown(documents, path, "coordinate", coordinate, allowed, coordinate, " of its cells")


def _of_layout(name: str, table: Table, cells: list[Cell], paper: Paper, documents: Documents) -> Iterator[str]:
    """Yield a line for a coordinate that no cell of a table has, or that has two places, and for names that are wrong."""
    coordinates = [*dict.fromkeys(key for cell in cells for key in cell.at), *OF_NUMBERS]
    places: dict[str, str] = {}
    for direction, chosen in table.layout().items():
        for i, coordinate in enumerate(chosen):
            path: tuple = ("artifacts", name, direction, i)
            if coordinate not in coordinates:
                yield unknown(documents, path, "coordinate", coordinate, coordinates, coordinate, " of its cells")
            elif places.setdefault(coordinate, direction) != direction:
                yield complaint(documents, path, f"stands in {places[coordinate]} already; keep one of them", coordinate)
    for coordinate, names in (table.names or {}).items():
        if coordinate not in coordinates:
            yield unknown(
                documents,
                ("artifacts", name, "names", coordinate),
                "coordinate",
                coordinate,
                coordinates,
                among=" of its cells",
            )
        known = {"model": list(paper.models), "recipe": list(paper.recipes)}.get(coordinate, list(names))
        for value in (value for value in names if value not in known):
            yield unknown(documents, ("artifacts", name, "names", coordinate, value), coordinate, value, known)
    for one, other in collisions([(cell.group, cell.at) for cell in cells], table.names or {}):
        alike = f"cells of {one} and {other} would share a place: they differ only in what is called the same"
        yield complaint(documents, ("artifacts", name, "names"), alike)
