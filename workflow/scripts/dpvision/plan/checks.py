"""Checks of what is right in itself and wrong beside other values: each yields one line for each fault."""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpvision.config.artifacts import Artifact, Table
from dpvision.config.attacks import Attack
from dpvision.config.cells import Cells, PaperProtocol, Split
from dpvision.config.datasets import Dataset
from dpvision.config.metrics import measured
from dpvision.config.papers import Paper
from dpvision.config.published import Published
from dpvision.config.scales import Scale
from dpvision.config.settings import Config
from dpvision.config.weights import Features, Weights
from dpvision.errors import UserError
from dpvision.models.options import Network
from dpvision.plan import space, specs
from dpvision.plan.expand import Cell, having, named, shown
from dpvision.plan.reading import KINDS, Document, complaint, nearest, plain_values, unknown
from dpvision.plan.renyi import steps_within
from dpvision.plan.resources import OTHERS
from dpvision.plan.stages import ANALYSES, STAGES
from dpvision.reporting.coordinates import telling
from dpvision.reporting.layout import OF_NUMBERS, collisions
from dpvision.training.schedules import follows_validation

Documents = list[Document]
NUMBER = {"metric", "weights", "split", "statistic", "value", "spread"}  # keys of a published row, beside its coordinates
# the sections of a paper whose keys are names
NAMED = {"models": "model", "recipes": "recipe", "searches": "search", "attacks": "attack"}
NAMED |= {"cells": "group of cells", "artifacts": "artifact"}

# what results/ holds besides the folders of scales
FOLDERS = ["benchmarks", "checkpoints", "data", "figures", "logs", "plan", "tables", *(s.folder for s in STAGES.values())]


def of_settings(
    settings: Config, scales: list[str], papers: list[str], rules: tuple[str, ...], documents: Documents
) -> Iterator[str]:
    if settings.scale not in scales:
        yield unknown(documents, ("scale",), "scale", settings.scale, scales, settings.scale)
    elif settings.scale in FOLDERS:
        yield complaint(
            documents, ("scale",), "this is the name of a folder of results; rename the scale's file", settings.scale
        )
    for i, name in enumerate(settings.papers):
        if name not in papers:
            yield unknown(documents, ("papers", i), "paper", name, papers, name)
        elif name in rules:
            yield complaint(documents, ("papers", i), "this is the name of a rule of the workflow; rename the folder", name)


def of_files(root: Path, papers: list[str], scales: list[str]) -> Iterator[str]:
    """Yield a line for a file in a paper's folder that nothing reads: a scale's name mistyped, most likely."""
    known = ["paper", "published", "claims", *(scale for scale in scales if scale != "paper")]
    for file in (file for name in papers for file in sorted((root / "config/papers" / name).rglob("*.yaml"))):
        if file.stem not in known:
            near = nearest(file.stem, known)
            yield f"{file.relative_to(root)}: there is no scale of this name.{near} Allowed: {', '.join(known)}"


def of_scale(scale: Scale, papers: list[str], documents: Documents) -> Iterator[str]:
    for i, name in enumerate(scale.papers or []):
        if name not in papers:
            yield unknown(documents, ("papers", i), "paper", name, papers, name)
    jobs = [*OTHERS, *(name for name, stage in STAGES.items() if stage.cost)]
    for name in scale.resources:
        if name not in jobs:
            yield unknown(documents, ("resources", name), "kind of job", name, jobs)


def of_folders(folders: dict[str, str], known: list[str], documents: Documents) -> Iterator[str]:
    for name, folder in folders.items():
        if name not in known:
            yield unknown(documents, ("folders", name), "data set", name, known, folder)


def of_weights(weights: dict[str, Weights], datasets: dict[str, Dataset], documents: Documents) -> Iterator[str]:
    for name, entry in weights.items():
        if name in datasets:
            yield complaint(
                documents, (name,), "this is the name of a data set; `folders` could mean either: rename the weights"
            )
        if len(entry.mean) != len(entry.std):
            yield complaint(documents, (name, "std"), f"must have {len(entry.mean)} values, as mean has", entry.std)


def of_features(
    features: dict[str, Features], datasets: dict[str, Dataset], weights: dict[str, Weights], documents: Documents
) -> Iterator[str]:
    for name, entry in features.items():
        if name in datasets:
            yield complaint(documents, (name,), "this is the name of a data set; give the features a name of their own")
        if entry.of not in datasets:
            yield unknown(documents, (name, "of"), "data set", entry.of, list(datasets), entry.of)
        if entry.weights is None:
            continue
        if entry.weights not in weights:
            yield unknown(documents, (name, "weights"), "file of weights", entry.weights, list(weights), entry.weights)
        elif entry.of in datasets:
            has, takes = datasets[entry.of].shape[0], len(weights[entry.weights].mean)
            if has not in (1, takes):
                yield complaint(documents, (name, "of"), f"its images have {has} channels, the network takes {takes}", entry.of)


def of_datasets(datasets: dict[str, Dataset], documents: Documents) -> Iterator[str]:
    for name, dataset in datasets.items():
        if dataset.validation >= dataset.train:
            left = f"must be below {dataset.train}, the training examples it is taken from"
            yield complaint(documents, (name, "validation"), left, dataset.validation)
        if not dataset.files and not (dataset.streamed and not dataset.sources):
            yield complaint(documents, (name, "files"), "must name the raw files, and the MD5 of each")
        if dataset.streamed and dataset.shape[1] != dataset.shape[2]:
            yield complaint(documents, (name, "shape"), "must be square: streamed pictures become squares", dataset.shape)
        for key, values in (("mean", dataset.mean), ("std", dataset.std)):
            if len(values) != dataset.shape[0]:
                yield complaint(documents, (name, key), f"must have {dataset.shape[0]} values, one a channel", values)


def of_overlays(documents: Documents, overlays: Sequence[Document]) -> Iterator[str]:
    """Yield a line for each name that a scale has and its paper has not."""
    for section, what in NAMED.items():
        known = [name for document in documents for name in _names(document, section)]
        for overlay in overlays:
            for name in _names(overlay, section):
                if name not in known:
                    yield unknown([overlay], (section, name), what, name, known)


def of_parts(documents: Documents) -> Iterator[str]:
    """Yield a line for each name that two files of a paper give, and each key that those after the first cannot have."""
    for document in documents[1:]:
        for key in document.content if isinstance(document.content, dict) else []:
            if key not in NAMED:
                yield unknown([document], (key,), "key", key, list(NAMED), among=" in a part of a paper")
    for section in NAMED:
        below = [document._replace(part=(section,)) for document in documents]
        yield from _given_twice(below, [_names(document, section) for document in documents])


def of_claims(documents: Documents) -> Iterator[str]:
    """Yield a line for each claim whose name two files of a paper give."""
    yield from _given_twice(documents, [list(d.content) if isinstance(d.content, dict) else [] for d in documents])


def _given_twice(documents: Documents, names: list[list[str]]) -> Iterator[str]:
    first: dict[str, str] = {}
    for document, here in zip(documents, names, strict=True):
        for name in here:
            if first.setdefault(name, document.file) != document.file:
                yield complaint([document], (name,), f"{first[name]} has this name already; rename one of them")


def _names(document: Document, section: str) -> list[str]:
    here = document.content.get(section) if isinstance(document.content, dict) else None
    return [name for name in here if isinstance(name, str)] if isinstance(here, dict) else []


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
        yield from _of_search(name, paper, documents)
    for group, cells in paper.cells.items():
        yield from _of_cells(group, cells, paper, datasets, documents)
    for i, name in enumerate(paper.selection or []):
        if name not in paper.artifacts:
            yield unknown(documents, ("selection", i), "artifact", name, list(paper.artifacts), name, " at this scale")
    for name, artifact in paper.artifacts.items():
        if name in taken:
            yield complaint(documents, ("artifacts", name), f"this is the name of {taken[name]}: a target needs one of its own")
        yield from _of_artifact(name, artifact, paper, artifacts, documents)


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


def _of_search(name: str, paper: Paper, documents: Documents) -> Iterator[str]:
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


def _of_cells(group: str, cells: Cells, paper: Paper, datasets: dict[str, Dataset], documents: Documents) -> Iterator[str]:
    where = ("cells", group)
    for i, name in enumerate(cells.models):
        if name not in paper.models:
            yield unknown(documents, (*where, "models", i), "model", name, list(paper.models), name)
    if cells.recipe not in paper.recipes:
        yield unknown(documents, (*where, "recipe"), "recipe", cells.recipe, list(paper.recipes), cells.recipe)
    elif (gpus := paper.recipes[cells.recipe].gpus) > 1 and cells.train == "all":
        for name in cells.models:
            if name in paper.models and paper.models[name].mixes_examples():
                only = f"must be 1 for {name}: batch normalisation needs a whole sample on one device"
                yield complaint(documents, ("recipes", cells.recipe, "gpus"), only, gpus)
    named = {search for name in cells.models if name in paper.models for search in paper.models[name].searched().values()}
    for old, new in cells.searches.items():
        if old not in named:
            yield unknown(documents, (*where, "searches", old), "search of these models", old, sorted(named), new)
        elif new not in paper.searches:
            yield unknown(documents, (*where, "searches", old), "search", new, list(paper.searches), new)
    if cells.search and cells.search not in paper.searches:
        yield unknown(documents, (*where, "search"), "search", cells.search, list(paper.searches), cells.search)
    elif cells.search:
        yield from _of_its_search(where, cells, paper, documents)
    if cells.dataset not in datasets:
        yield unknown(documents, (*where, "dataset"), "data set", cells.dataset, list(datasets), cells.dataset)
    else:
        of_features = len(datasets[cells.dataset].shape) == 1
        for i, name in enumerate(cells.models):
            if name in paper.models and paper.models[name].takes_features() != of_features:
                takes, has = ("features", "images") if not of_features else ("images", "features")
                yield complaint(documents, (*where, "models", i), f"takes {takes}, and {cells.dataset} has {has}", name)
        if of_features and cells.recipe in paper.recipes and paper.recipes[cells.recipe].augmentation:
            once = f"must be null for {cells.dataset}: features were computed once, of each image as it is"
            yield complaint(documents, ("recipes", cells.recipe, "augmentation"), once)
    if cells.attack and cells.attack not in paper.attacks:
        yield unknown(documents, (*where, "attack"), "attack", cells.attack, list(paper.attacks), cells.attack)
    if cells.protocol:
        yield from _of_protocol(where, cells, cells.protocol, documents)


def _of_its_search(where: tuple[str, str], cells: Cells, paper: Paper, documents: Documents) -> Iterator[str]:
    """Yield what is wrong with a search that cells name, beside the values of its space."""
    search = paper.searches[cells.search or ""]
    for name in (name for name in cells.models if name in paper.models):
        for key in (f"model.{option}" for option in paper.models[name].searched()):
            if key not in search.space:
                missing = f"its space has no {key}, which {name} leaves to a search; add it, or name a value in the model"
                yield complaint(documents, (*where, "search"), missing, cells.search)
    for other in ("searches", "protocol"):
        if getattr(cells, other):
            yield complaint(documents, (*where, "search"), f"cannot stand beside {other}; leave one of them out", cells.search)


def of_cells(cells: list[Cell], paper: Paper, datasets: dict[str, Dataset], documents: Documents) -> Iterator[str]:
    """Yield a line for each thing of a cell, or of one with a value of its search, that does not go with its data set."""
    tuned = {cell.point[:2] + cell.point[3:]: cell for cell in cells if paper.cells[cell.group].search in paper.searches}
    for cell in tuned.values():  # one of those that differ in ε alone
        yield from _of_space(cell, paper, datasets[cell.at["dataset"]], documents)
    for cell in cells:
        dataset, group, data = datasets[cell.at["dataset"]], ("cells", cell.group), cell.at["dataset"]
        count = dataset.train - cell.split.validation
        if count <= 0:
            below = f"must be below {dataset.train}, the training examples it is taken from"
            yield complaint(documents, (*group, "split", "validation"), below, cell.split.validation)
            continue
        of_data = f"{data} trains on N = {count} examples, {dataset.train} less {cell.split.validation} held out"
        for path, fault in [*_of_recipe(cell, count, of_data), *_of_held_out(cell, paper), *_of_views(cell, dataset)]:
            if cell.varied:
                yield complaint(documents, group, f"with {named(cell.varied)}: {'.'.join(path)}: {fault}")
            else:
                value = functools.reduce(getattr, path[1:], cell.recipe)
                yield complaint(documents, ("recipes", cell.at["recipe"], *path[1:]), fault, value)
        if cell.at["search"] and cell.at["protocol"] == "clean" and not _split_of_trials(cell, paper).validation:
            yield complaint(documents, (*group, "split"), "leaves its search no held-out examples to choose by")
        for fault in _of_first_step(cell, count):
            yield complaint(documents, group, fault)
        if (attack := paper.cells[cell.group].attack) in paper.attacks:
            yield from _of_attack(cell, str(attack), paper.attacks[str(attack)], count, dataset, documents)
        # δ has one digit in print: De et al. have 8e-7 for N = 1,271,167, where 1/N is 7.87e-7
        if cell.at["epsilon"] is not None and cell.at["delta"] > max(1 / count, float(f"{1 / count:.0e}")):
            yield complaint(documents, (*group, "delta"), f"must be at most 1/N = {1 / count:.3g}: {of_data}", cell.at["delta"])
        shown_by = [artifact for name, artifact in paper.artifacts.items() if shown(paper, [cell], name)]
        for stage in {stage for artifact in shown_by for stage in artifact.stages()}.intersection(ANALYSES):
            options = getattr(paper, stage)
            at_most = {"train": count, "test": dataset.test}.get(getattr(options, "OF", ""))
            if at_most and options.examples > at_most:
                all_of = f"must be at most {at_most}, all that {data} has"
                yield complaint(documents, (stage, "examples"), all_of, options.examples)


def _of_attack(cell: Cell, name: str, attack: Attack, count: int, dataset: Dataset, documents: Documents) -> Iterator[str]:
    """Yield what is wrong with an attack on a cell: the first fault of each key that it tries."""
    where = ("cells", cell.group, "attack")
    if not isinstance(cell.at["epsilon"], float):
        yield complaint(documents, where, "an attack is held against an ε that is given; say epsilons", name)
    if cell.at["search"] or cell.at["protocol"] != "clean" or cell.recipe.steps is None:
        yield complaint(documents, where, "what is attacked has a recipe with steps, no search and no protocol", name)
    for i, target in enumerate(attack.targets or []):
        for key, value in (("image", target.image), ("label", target.label)):
            if isinstance(value, int) and value >= dataset.classes:
                below = f"must be below {dataset.classes}, the classes of {cell.at['dataset']}"
                yield complaint(documents, ("attacks", name, "targets", i, key), below, value)
    for key, values in attack.space.items():
        faults = [fault for value in values for fault in _faults_of_value(cell, key, value, count)]
        if not key.startswith("recipe."):
            faults = [f"{key}: what is tried begins with recipe."]
        if faults:
            yield complaint(documents, ("attacks", name, "space"), f"{faults[0]} (for {cell.group})")


def _split_of_trials(cell: Cell, paper: Paper) -> Split:
    search = paper.searches.get(cell.at["search"])
    return (search and search.split) or cell.split


def _of_space(cell: Cell, paper: Paper, dataset: Dataset, documents: Documents) -> Iterator[str]:
    """Yield what would be wrong with a cell that had a value of its search: the first fault of each key."""
    name = cell.at["search"]
    search, count = paper.searches[name], dataset.train - _split_of_trials(cell, paper).validation
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
            for fault in _faults_of_value(replace(cell, recipe=recipe), key, value, count)
        )
        if fault := next(faults, None):
            yield complaint(documents, ("searches", name, "space"), f"{fault} (for {cell.group})")


def _faults_of_value(cell: Cell, key: str, value: Any, count: int) -> Iterator[str]:
    """Yield what would be wrong with a cell whose search found this value."""
    part, _, below = key.partition(".")
    if part not in ("model", "recipe") or not below:
        yield f"{key}: what is searched begins with model. or recipe."
    elif key in cell.varied:
        yield f"{key}: is varied by {cell.group}; leave it out of one of them"
    elif below.rpartition(".")[2] in KINDS:
        yield f"{key}: says what has which keys; vary it in the cells, and each has a search of its own"
    else:
        try:
            tried = replace(cell, **{part: having(part, getattr(cell, part), key, value)}, varied={key: value})
        except UserError as error:
            yield str(error)
            return
        at = f"with {key}: {value}: "
        if tried.recipe.epochs and tried.recipe.steps:
            yield f"{at}the recipe has both epochs and steps; how long to train is said by one of them"
        yield from (f"{at}{'.'.join(path)}: {fault}" for path, fault in _of_recipe(tried, count, f"there are {count} examples"))
        yield from (f"{at}{fault}" for fault in _of_first_step(tried, count))


def _of_first_step(cell: Cell, count: int) -> Iterator[str]:
    """Yield what is wrong if the budget solves the number of steps and allows none."""
    if not (cell.budget and cell.budget.steps):
        return
    level = (cell.at["epsilon"], cell.at["delta"], specs.batch_of(cell.recipe, count) / count, cell.at["sigma"])
    if not steps_within(*level):
        spends = f"not one step fits ε = {level[0]:g}: one with batches of {cell.recipe.batch} spends more"
        yield f"{spends}. Choose a larger σ or ε, or a smaller batch"


def _of_recipe(cell: Cell, count: int, of_data: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what is wrong with a cell's recipe and, where it is varied, its model: the key, and why."""
    recipe = cell.recipe
    batch = specs.batch_of(recipe, count)
    if batch > count:
        yield ("recipe", "batch"), f"must be at most {count}: {of_data}"
    solved = bool(cell.budget and cell.budget.steps)
    for key in ("epochs", "steps"):
        if solved and getattr(recipe, key) is not None:
            yield ("recipe", key), f"must be left out: the budget of {cell.group} solves the steps"
    if recipe.simulate and batch % recipe.simulate:
        yield ("recipe", "simulate"), f"must divide the batch, {batch}"
    if recipe.simulate and cell.at["epsilon"] is None:
        yield ("recipe", "simulate"), f"{cell.group} trains without a budget, too: there is no noise to simulate"
    if recipe.noise == "secret":
        yield from ((("recipe", "noise"), f"cannot be secret {fault}") for fault in _against_secret(cell))
    if cell.varied:
        private = cell.at["epsilon"] is not None and cell.at.get("train", "all") == "all"
        yield from ((("model", key), fault) for key, fault in cell.model.faults(private))


def _against_secret(cell: Cell) -> Iterator[str]:
    """Yield what does not go with secret noise."""
    if cell.recipe.simulate:
        yield "in a simulation, which is not private, and is worth something if it can be repeated"
    elif cell.at["epsilon"] is None:
        yield f"where there is no noise, and {cell.group} trains without a budget; give it a recipe of its own"
    if cell.recipe.gpus > 1:
        yield f"on several devices (gpus: {cell.recipe.gpus}), which have to draw the same sample and views each by itself"


def _of_views(cell: Cell, dataset: Dataset) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what is wrong with views that are cropped from larger images, where there are none."""
    views = cell.recipe.augmentation
    if views and views.resize > 1 and not dataset.streamed:
        kept = f"{cell.at['dataset']} is kept at the size of its images, and is not `streamed`"
        yield ("recipe", "augmentation", "resize"), f"must be 1: {kept}; crops come from pixels around an image (pad)"


def _of_held_out(cell: Cell, paper: Paper) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what needs held-out examples where there are none."""
    if cell.split.validation or cell.at["protocol"] == "paper":
        return
    if cell.recipe.stop:
        yield ("recipe", "stop"), f"asks for the loss of held-out examples, and {cell.group} holds none out"
    if follows_validation(cell.recipe.schedule.name):
        yield ("recipe", "schedule"), f"follows the loss of held-out examples, and {cell.group} holds none out"


def _of_protocol(where: tuple[str, str], cells: Cells, protocol: PaperProtocol, documents: Documents) -> Iterator[str]:
    epsilons = cells.epsilons or []
    if None in epsilons:
        yield complaint(documents, (*where, "protocol"), "is of private training; take null out of the epsilons")
    if cells.split:
        yield complaint(documents, (*where, "split"), "the authors' protocol holds nothing out; leave this key out")
    for key, values in (("targets", protocol.targets), ("sigmas", protocol.sigmas)):
        if len(values) != len(epsilons):
            one_each = f"must have {len(epsilons)} values, one for each of the epsilons"
            yield complaint(documents, (*where, "protocol", key), one_each, values)


def _shows(artifact: Artifact, group: str) -> bool:
    return group in getattr(artifact, "cells", [])


def _of_artifact(name: str, artifact: Artifact, paper: Paper, artifacts: list[str], documents: Documents) -> Iterator[str]:
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


def of_published(rows: list[Published], artifacts: list[str], documents: Documents) -> Iterator[str]:
    first: dict[tuple, int] = {}
    for i, row in enumerate(rows):
        if row.artifact not in artifacts:
            yield unknown(documents, (i, "artifact"), "artifact", row.artifact, artifacts, row.artifact)
        of = [row.metric, *filter(None, (row.weights, row.split))]
        key = (row.artifact, *row.coordinates().items(), *of)
        if first.setdefault(key, i) != i:
            values = [row.artifact, *row.coordinates().values(), *of]
            yield complaint(documents, (i,), f"the same as entry {first[key] + 1}: {', '.join(map(str, values))}; keep one")


def of_rows(rows: list[Published], paper: Paper, cells: list[Cell], documents: Documents) -> Iterator[str]:
    """Yield a line for a number that is of two cells of an artifact, or a cell that has two numbers.

    A number that says no protocol is of both: it stands beside ours and beside what the authors' code reaches.
    """
    for name, artifact in paper.artifacts.items():
        there = shown(paper, cells, name)
        by_protocol = [[cell.at for cell in there if cell.at["protocol"] == protocol] for protocol in ("clean", "paper")]
        told_apart = list(dict.fromkeys(key for ats in by_protocol for key in telling(ats)))
        first: dict[tuple, int] = {}
        for i, row in enumerate(rows):
            if not hasattr(artifact, "published") or row.artifact != (artifact.published or name):
                continue
            said = row.coordinates()
            ats = [cell.at for cell in there if said.items() <= cell.at.items()]
            found = [(named({key: at.get(key) for key in told_apart}), at["protocol"]) for at in ats]
            places = list(dict.fromkeys(place for place, _ in found))
            if len(places) > 1:
                two = f"is of two cells of {name}: {places[0]}; and {places[1]}. Say more of its coordinates"
                yield complaint(documents, (i,), two)
            for place, protocol in found:
                of = (place, *measured(protocol, row.metric, row.weights, row.split))
                if first.setdefault(of, i) != i:
                    both = f"entry {first[of] + 1} is of the same cell of {name}: {place}; keep one"
                    yield complaint(documents, (i,), both)
