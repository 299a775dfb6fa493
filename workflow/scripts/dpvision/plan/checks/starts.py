"""Check what cells begin with: weights, or the training of another cell."""

from collections.abc import Iterator
from typing import NamedTuple

from dpvision.config.cells import Start
from dpvision.config.datasets import Dataset
from dpvision.config.papers import Paper
from dpvision.config.weights import Features, Weights
from dpvision.plan.expand import Cell, named
from dpvision.plan.reading import Documents, complaint, unknown


def data_seen(cell: Cell, paper: Paper, cells: list[Cell], features: dict[str, Features]) -> list[str]:
    """Return the data sets whose pictures a cell's weights have seen: its own, then those of the cells that it starts from."""
    name, start = cell.at["dataset"], paper.cells[cell.group].start
    own = features[name].of if name in features else name
    return [own, *(data_seen(cell_before(start, cells), paper, cells, features) if start and start.cells else [])]


def cell_before(start: Start, cells: list[Cell]) -> Cell:
    """Return the cell that a start names, if it is one."""
    found = _cells_before(start, cells)
    return found[0]


def _cells_before(start: Start, cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.group == start.cells and start.where.coordinates().items() <= cell.at.items()]


class _Known(NamedTuple):
    """What there is: a paper's cells, and the files beside it."""

    cells: list[Cell]
    paper: Paper
    datasets: dict[str, Dataset]
    features: dict[str, Features]
    weights: dict[str, Weights]
    documents: Documents


def of_starts(
    cells: list[Cell],
    paper: Paper,
    datasets: dict[str, Dataset],
    features: dict[str, Features],
    weights: dict[str, Weights],
    documents: Documents,
) -> Iterator[str]:
    """Yield a line for each start that names no weights, not just one cell, itself, or those of another network."""
    known = _Known(cells, paper, datasets, features, weights, documents)
    for group, of_group in paper.cells.items():
        where, seen_by = ("cells", group, "start"), features.get(of_group.dataset)
        if not (start := of_group.start):
            if seen_by and not seen_by.weights:
                of_cells = "say whose weights see the images, as config/features.yaml does not"
                yield complaint(documents, where[:2], f"{of_group.dataset} are features: {of_cells}: start: {{cells: ...}}")
            continue
        if seen_by and seen_by.weights:
            yield complaint(documents, where, f"{of_group.dataset} are features: a head on them starts at zero")
        if start.weights and start.weights not in weights:
            yield unknown(documents, (*where, "weights"), "file of weights", start.weights, list(weights), start.weights)
        elif start.cells and start.cells not in paper.cells:
            yield unknown(documents, (*where, "cells"), "group of cells", start.cells, list(paper.cells), start.cells)
        elif start.cells and group in _groups_before(paper, start.cells):
            yield complaint(documents, (*where, "cells"), f"{group} would start from itself", start.cells)
        else:
            ours = [cell for cell in cells if cell.group == group]
            found = [*_of_start(where, start, ours, known)]
            yield from found or _of_private(where, start, ours, known)


def _groups_before(paper: Paper, group: str) -> list[str]:
    """Return a group and those that it starts from, one from the other."""
    found = [group]
    while (start := paper.cells[found[-1]].start) and start.cells in paper.cells and start.cells not in found:
        found.append(str(start.cells))
    return found


def _of_start(where: tuple, start: Start, ours: list[Cell], known: _Known) -> Iterator[str]:
    """Yield what is wrong with the weights or the cell that a start names."""
    paper, documents = known.paper, known.documents
    if start.weights:
        named_weights = known.weights[start.weights]
        network, of, takes = named_weights.model, f"the weights {start.weights}", len(named_weights.mean)
    else:
        found = _cells_before(start, known.cells)
        if len(found) != 1:
            says = f"{len(found)} cells of {start.cells} are meant, and it must be one"
            listed = "; ".join(named(cell.at) for cell in found[:3])
            remedy = f": {listed}. Say more in `where`" if found else "; change `where`"
            yield complaint(documents, where, says + remedy)
            return
        network, of = found[0].model, f"the cell of {start.cells}"
        takes = known.datasets[found[0].at["dataset"]].shape[0]
        seeds = paper.cells[found[0].group].seeds or paper.seeds
        if start.seed is not None and start.seed not in seeds:
            yield complaint(documents, (*where, "seed"), f"is none of its seeds: {', '.join(map(str, seeds))}", start.seed)
        if start.take == "averaged" and not found[0].recipe.averaging:
            yield complaint(documents, (*where, "take"), f"the recipe {found[0].at['recipe']} keeps no average", start.take)
    seen_by = known.features.get(paper.cells[where[1]].dataset)
    if seen_by and (has := known.datasets[seen_by.of].shape[0]) not in (1, takes):
        yield complaint(documents, where, f"{seen_by.of} has images of {has} channels, {of} takes {takes}")
    for name, model in {} if seen_by else {cell.at["model"]: cell.model for cell in ours}.items():
        if model.as_spec({"label"}) != network.as_spec({"label"}):
            yield complaint(documents, where, f"{of} is of another network than {name}: one must say what the other says")


def _of_private(where: tuple, start: Start, ours: list[Cell], known: _Known) -> Iterator[str]:
    """Yield a line if cells train privately on pictures that the weights of other cells have seen without privacy."""
    if not start.cells:
        return

    def pictures(name: str) -> str:  # imagenet320 are imagenet's
        reader = known.datasets[name].reader
        return reader if reader in known.datasets else name

    private = [cell for cell in ours if cell.at["epsilon"] is not None]
    for own, *before in (data_seen(cell, known.paper, known.cells, known.features) for cell in private[:1]):
        for name in (name for name in before if pictures(name) == pictures(own)):
            void = f"was trained on {name} too, so that an ε of what begins with it would not hold"
            yield complaint(known.documents, where, f"the cell of {start.cells} {void}; begin with weights of public data")
