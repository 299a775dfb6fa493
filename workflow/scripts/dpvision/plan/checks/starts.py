"""Check what cells begin with: weights, or the training of another cell."""

from collections.abc import Iterator
from typing import NamedTuple

from dpvision.config.cells import Start
from dpvision.config.datasets import Dataset
from dpvision.config.papers import Paper
from dpvision.config.weights import Features, Weights
from dpvision.plan.checks.pictures import named_by, share_pictures
from dpvision.plan.expand import Cell, named
from dpvision.plan.reading import Documents, complaint, unknown


def cell_before(start: Start, cells: list[Cell]) -> Cell:
    """Return the cell that a start names, if it is one."""
    found = _cells_before(start, cells)
    return found[0]


def _cells_before(start: Start, cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.group == start.cells and start.where.coordinates().items() <= cell.at.items()]


class _Known(NamedTuple):
    """The cells of a paper and the files beside it."""

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
    """Yield a line for each start that names no weights, not just one cell, itself, or those of another network.

    And for each private training that would begin with weights, or learn on features by weights, that saw its pictures.
    """
    known = _Known(cells, paper, datasets, features, weights, documents)
    for group, of_group in paper.cells.items():
        where, seen_by = ("cells", group, "start"), features.get(of_group.dataset)
        if not (start := of_group.start):
            if seen_by and not seen_by.weights:
                of_cells = "say whose weights see the images, as config/features.yaml does not"
                yield complaint(documents, where[:2], f"{of_group.dataset} are features: {of_cells}: start: {{cells: ...}}")
            yield from _of_private(group, known)
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
            yield from found or _of_private(group, known)


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
            says = f"`where` selects {len(found) or 'no'} cells of {start.cells}; it must select exactly one"
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
        elif model.has_auxiliaries():
            yield complaint(
                documents, where, f"{name} has auxiliary classifiers, which would begin with what they learnt before"
            )


def _of_private(group: str, known: _Known) -> Iterator[str]:
    """Yield a line if a group trains privately on pictures that were shown to a network before, without privacy."""
    private = [cell for cell in known.cells if cell.group == group and cell.at["epsilon"] is not None]
    for cell in private[:1]:  # all of a group have the same data and the same start
        own = _images(cell, known)
        for where, network, name in _shown_before(cell, known):
            if not share_pictures(name, own, known.datasets):
                continue
            void = "so that an ε of what begins with it would not hold; begin with weights of public data"
            seen = _seen_in_words(network, name, own, known.datasets)
            yield complaint(known.documents, ("cells", group, where), f"{seen}, {void}")


def _seen_in_words(network: str, seen: str, own: str, datasets: dict[str, Dataset]) -> str:
    """Say that a network has seen pictures of a private data set, `own`, and by which entry that is known."""
    if seen == own:
        return f"{network} was trained on {own} too"
    if seen in named_by(own, datasets):
        return f"{own} has pictures of {seen} (by its entry in datasets.yaml), on which {network} was trained"
    return f"{network} was trained on {seen}, which shares pictures with {own} (by their entries in datasets.yaml)"


def _shown_before(cell: Cell, known: _Known) -> Iterator[tuple[str, str, str]]:
    """Yield what was shown to a network before a cell's own training: the key that leads there, the network, the data set."""
    for place, earlier in enumerate(_back_from(cell, known)):
        start = known.paper.cells[earlier.group].start
        features = known.features.get(earlier.at["dataset"])
        if place:
            yield "start", f"the cell of {earlier.group}", _images(earlier, known)
        for where, name in (("dataset", features and features.weights), ("start", start and start.weights)):
            for seen in known.weights[name].seen if name in known.weights else []:
                yield "start" if place else where, f"the network of the weights {name}", seen


def _back_from(cell: Cell, known: _Known) -> Iterator[Cell]:
    """Yield a cell, the one that it starts from, and so on; where a start is wrong, its own group is told."""
    groups, found = set[str](), [cell]
    while found and found[0].group not in groups:
        yield found[0]
        groups.add(found[0].group)
        start = known.paper.cells[found[0].group].start
        found = _cells_before(start, known.cells) if start else []


def _images(cell: Cell, known: _Known) -> str:
    """Return the data set whose images a cell trains on, or what features were made of."""
    name = cell.at["dataset"]
    return known.features[name].of if name in known.features else name
