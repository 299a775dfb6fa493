"""Check searches, and what the values of their spaces would make of cells."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from dpvision.config.cells import Split
from dpvision.config.datasets import Dataset
from dpvision.config.papers import Paper
from dpvision.config.recipes import Recipe
from dpvision.errors import UserError
from dpvision.models.options import Network
from dpvision.plan import space
from dpvision.plan.checks.recipes import of_first_step, of_recipe
from dpvision.plan.expand import Cell, having
from dpvision.plan.reading import KINDS, Documents, complaint, plain_values, unknown


def of_search(name: str, paper: Paper, documents: Documents) -> Iterator[str]:
    """Yield what is wrong with a search: it must vary what its models leave open, by choices that they could have."""
    search, where = paper.searches[name], ("searches", name)
    asked_of = _asked_of(name, paper)
    users = {key: paper.models[key] for key in asked_of}
    asked = dict.fromkeys(f"model.{option}" for options in asked_of.values() for option in options)
    if search.recipe is not None and search.recipe not in paper.recipes:
        yield unknown(documents, (*where, "recipe"), "recipe", search.recipe, list(paper.recipes), search.recipe)
    values = search.as_spec()["space"]
    for key, here in values.items():
        if users and key not in asked:
            yield unknown(documents, (*where, "space", key), "key to search over", key, list(asked))
            continue
        for i, choice in enumerate(space.examples(here)):
            faults = (f for model_name, model in users.items() for f in _faults_with(model_name, model, key, choice))
            if fault := next(faults, None):
                yield complaint(documents, (*where, "space", key, *space.kind(here), i), fault, choice)
        if search.sampler == "grid" and isinstance(here, dict):
            listed = "is a range, and a grid tries every value of a list; list the values, or say `sampler: tpe` or `random`"
            yield complaint(documents, (*where, "space", key), listed)
    for key in asked:
        if key not in search.space and all(other in asked for other in search.space):
            yield complaint(documents, (*where, "space"), f"{key} is missing: {', '.join(users)} leave it to this search")
    if search.sampler == "covered":
        for key in values.keys() & space.SPENDING:
            if isinstance(values[key], dict):
                listed = "is a range, and ε of the search is that of its dearest trial: list the values, or say another sampler"
                yield complaint(documents, (*where, "space", key), listed)
        return
    combinations = math.prod(map(space.count, values.values()))
    if search.trials > combinations:
        most = f"must be at most {combinations}: no combination is tried twice, and the space has no more"
        yield complaint(documents, (*where, "trials"), most, search.trials)
    if search.sampler == "grid" and search.trials < combinations < math.inf:
        every = f"must be {combinations}: a grid tries every combination of the space; or say another sampler"
        yield complaint(documents, (*where, "trials"), every, search.trials)


def _asked_of(search: str, paper: Paper) -> dict[str, list[str]]:
    """Return for each model the options left to this search: by its name, or by cells that put it in another's place.

    A model whose cells all name a search of their own is left out: its own names stand for nothing then.
    """
    asked = {}
    for key, model in paper.models.items():
        groups = [cells for cells in paper.cells.values() if key in cells.models]
        if groups and all(cells.search for cells in groups):
            continue
        replaced = [cells.searches for cells in groups if not cells.search]
        names = {search, *(old for searches in replaced for old, new in searches.items() if new == search)}
        if options := [option for option, by in model.searched().items() if by in names]:
            asked[key] = options
    return asked


def _faults_with(name: str, model: Network, key: str, choice: Any) -> Iterator[str]:
    """Yield what would be wrong with a model that had this choice."""
    option = key.removeprefix("model.")
    try:
        tried = type(model).model_validate({**dict(model), option: choice})
    except ValidationError:
        yield f"must be {plain_values(type(model), option)} (for {name})"
        return
    yield from (f"{fault} (for {name})" for at, fault in tried.faults(private=True) if at == option)


def split_of_trials(cell: Cell, paper: Paper, dataset: Dataset) -> Split:
    """Return the division of the training examples that the trials of a cell's search train on."""
    search = paper.searches.get(cell.at["search"])
    if search and search.split:
        return search.split
    return cell.split if cell.at["protocol"] == "clean" else Split(validation=dataset.validation)


def recipe_of_trials(cell: Cell, paper: Paper) -> Recipe:
    """Return the recipe that the trials of a cell's search train by."""
    search = paper.searches.get(cell.at["search"])
    return paper.recipes.get(search.recipe or "", cell.recipe) if search else cell.recipe


def of_trials(cell: Cell, paper: Paper, dataset: Dataset, documents: Documents) -> Iterator[str]:
    """Yield what is wrong with the trials of a private cell's search: its ledger could not say what they spent."""
    name = cell.at["search"]
    if name not in paper.searches or cell.at["epsilon"] is None or cell.recipe.simulate:
        return
    search, by, held_out = paper.searches[name], recipe_of_trials(cell, paper), split_of_trials(cell, paper, dataset)
    varied = search.as_spec()["space"]

    def fault(key: str, says: str) -> str:
        if key in varied:
            return complaint(documents, ("searches", name, "space", key), says, varied[key])
        return complaint(documents, ("searches", name, "recipe"), says, search.recipe)

    if by.simulate or "recipe.simulate" in varied:
        spends = f"simulates trials, which spend far more than their ε, and {cell.group} is private"
        yield fault("recipe.simulate", f"{spends}; leave `simulate` out of them, or simulate {cell.group} too")
    noises = varied.get("recipe.noise", [by.noise])
    if "secret" in varied.get("recipe.noise", [cell.recipe.noise]) and {*noises} != {"secret"}:
        need = f"all trials need `noise: secret` where trainings of {cell.group} have it: the seed repeats other noise"
        yield fault("recipe.noise", f"{need}; say it in the recipe of the trials")
    kept = cell.split.validation if cell.split.by == held_out.by else 0
    if search.sampler == "covered" and held_out.validation > kept:
        trained = f"{cell.group} trains on examples that the trials hold out, and no theorem covers what was read of those"
        remedy = "hold them out of both, or say another sampler"
        yield complaint(documents, ("searches", name, "sampler"), f"{trained}; {remedy}", search.sampler)


def of_space(cell: Cell, paper: Paper, dataset: Dataset, documents: Documents) -> Iterator[str]:
    """Yield what would be wrong with a cell that had a value of its search: the first fault of each key."""
    name = cell.at["search"]
    search, count = paper.searches[name], dataset.train - split_of_trials(cell, paper, dataset).validation
    if count <= 0:
        below = f"must be below {dataset.train}, the training examples it is taken from"
        yield complaint(documents, ("searches", name, "split", "validation"), below)
        return
    trained_by = [cell.recipe, *([paper.recipes[search.recipe]] if search.recipe in paper.recipes else [])]
    if search.objective.startswith("averaged_") and not trained_by[-1].averaging:
        lacking = f"the trainings of {cell.group} keep no average of the weights; give their recipe `averaging`"
        yield complaint(documents, ("searches", name, "objective"), lacking, search.objective)
    for key, values in search.as_spec()["space"].items():
        faults = (
            fault
            for value in space.examples(values)
            for recipe in trained_by
            for fault in faults_of_value(replace(cell, recipe=recipe), key, value, count)
        )
        if fault := next(faults, None):
            yield complaint(documents, ("searches", name, "space"), f"{fault} (for {cell.group})")


def faults_of_value(cell: Cell, key: str, value: Any, count: int) -> Iterator[str]:
    """Yield what would be wrong with a cell whose search found this value."""
    part, _, below = key.partition(".")
    if part not in ("model", "recipe") or not below:
        yield f"{key}: what is searched begins with model. or recipe."
    elif key in cell.varied:
        yield f"{key}: is varied by {cell.group}; leave it out of one of them"
    elif below.rpartition(".")[2] in KINDS:
        yield f"{key}: says what has which keys; vary it in the cells, and each has a search of its own"
    elif (key, value) == ("recipe.batch", "all"):
        yield f"{key}: all is no number to try; write the number, or vary it in the cells, and each has a search of its own"
    else:
        try:
            tried = replace(cell, **{part: having(part, getattr(cell, part), key, value)}, varied={key: value})
        except UserError as error:
            yield str(error)
            return
        at = f"with {key}: {value}: "
        if tried.recipe.epochs and tried.recipe.steps:
            yield f"{at}the recipe has both epochs and steps; how long to train is said by one of them"
        yield from (f"{at}{'.'.join(path)}: {fault}" for path, fault in of_recipe(tried, count, f"there are {count} examples"))
        yield from (f"{at}{fault}" for fault in of_first_step(tried, count))
