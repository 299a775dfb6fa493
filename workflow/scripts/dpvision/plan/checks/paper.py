"""Check a paper as its files say it: its models, recipes and selection, and by other modules the rest."""

from collections.abc import Iterator

from dpvision.config.datasets import Dataset
from dpvision.config.papers import Paper
from dpvision.models.options import Network
from dpvision.plan.checks.artifacts import of_artifact
from dpvision.plan.checks.cells import of_group
from dpvision.plan.checks.searches import of_search
from dpvision.plan.delta import fault_of_delta
from dpvision.plan.reading import Documents, complaint, unknown


def of_paper(
    paper: Paper, datasets: dict[str, Dataset], taken: dict[str, str], artifacts: list[str], documents: Documents
) -> Iterator[str]:
    """Yield what is wrong. `taken`: names no artifact can have -> what has them; `artifacts`: with those a scale leaves out."""
    for name, model in paper.models.items():
        yield from _of_model(name, model, paper, documents)
    for name, recipe in paper.recipes.items():
        solved = [bool(cells.budget and cells.budget.steps) for cells in paper.cells.values() if cells.recipe == name]
        # all that train by it solve their steps; so do those that a scale leaves out, as nothing says otherwise
        if (recipe.epochs is None) == (recipe.steps is None) and not (all(solved) and recipe.epochs is None):
            one = "needs either epochs or steps, how long to train" + ("" if recipe.epochs is None else ", and has both")
            yield complaint(documents, ("recipes", name), one)
    for name in paper.searches:
        yield from of_search(name, paper, documents)
    for group, cells in paper.cells.items():
        yield from of_group(group, cells, paper, datasets, documents)
    for i, name in enumerate(paper.selection or []):
        if name not in paper.artifacts:
            yield unknown(documents, ("selection", i), "artifact", name, list(paper.artifacts), name, " at this scale")
    for name, artifact in paper.artifacts.items():
        if name in taken:
            yield complaint(documents, ("artifacts", name), f"this is the name of {taken[name]}: a target needs one of its own")
        yield from of_artifact(name, artifact, paper, artifacts, documents)
    yield from _of_practice(paper, documents)


def _of_practice(paper: Paper, documents: Documents) -> Iterator[str]:
    """Yield what is wrong with the searches of a paper's authors that are to be priced."""
    for i, searched in enumerate(paper.practice.searched if paper.practice else []):
        where = ("practice", "searched", i)
        if fault := fault_of_delta(searched.delta, searched.examples):
            yield complaint(documents, (*where, "delta"), fault, searched.delta)
        if searched.batch > searched.examples:
            most = f"must be at most {searched.examples}, the number of `examples`: an expected batch is drawn from them"
            yield complaint(documents, (*where, "batch"), most, searched.batch)


def _of_model(name: str, model: Network, paper: Paper, documents: Documents) -> Iterator[str]:
    for key, search in model.searched().items():
        if search not in paper.searches:
            path = ("models", name, key, "search")
            yield unknown(documents, path, "search", search, list(paper.searches), search)
    if len(set(model.searched().values())) > 1:
        yield complaint(documents, ("models", name), "leaves values to several searches; one search can find them all")
    for key, fault in model.faults(bool(model.searched()) or _trains_privately(name, paper)):
        yield complaint(documents, ("models", name, key), fault, getattr(model, key))


def _trains_privately(model: str, paper: Paper) -> bool:
    """Tell whether all of a model trains privately somewhere: where a part trains, batch normalisation has fixed statistics."""
    groups = [cells for cells in paper.cells.values() if model in cells.models and cells.train == "all"]
    return any(cells.epsilons is None or any(epsilon is not None for epsilon in cells.epsilons) for cells in groups)
