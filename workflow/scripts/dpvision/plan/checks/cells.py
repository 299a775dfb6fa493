"""Check groups of cells, and each cell beside its data set."""

import functools
from collections.abc import Iterator

from dpvision.config.cells import Cells, PaperProtocol
from dpvision.config.datasets import Dataset
from dpvision.config.papers import Paper
from dpvision.plan.checks.recipes import of_first_step, of_held_out, of_recipe, of_views
from dpvision.plan.checks.searches import faults_of_value, of_space, of_trials, split_of_trials
from dpvision.plan.delta import fault_of_delta
from dpvision.plan.expand import Cell, named, shown
from dpvision.plan.reading import Documents, complaint, unknown
from dpvision.plan.stages import ANALYSES


def of_group(group: str, cells: Cells, paper: Paper, datasets: dict[str, Dataset], documents: Documents) -> Iterator[str]:
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


def of_cells(cells: list[Cell], paper: Paper, datasets: dict[str, Dataset], documents: Documents) -> Iterator[str]:
    """Yield a line for each thing of a cell, or of one with a value of its search, that does not go with its data set."""
    tuned = {cell.point[:2] + cell.point[3:]: cell for cell in cells if paper.cells[cell.group].search in paper.searches}
    for cell in tuned.values():  # one of those that differ in ε alone
        yield from of_space(cell, paper, datasets[cell.at["dataset"]], documents)
    for cell in cells:
        dataset, group, data = datasets[cell.at["dataset"]], ("cells", cell.group), cell.at["dataset"]
        count = dataset.train - cell.split.validation
        if count <= 0:
            below = f"must be below {dataset.train}, the training examples it is taken from"
            yield complaint(documents, (*group, "split", "validation"), below, cell.split.validation)
            continue
        of_data = f"{data} trains on N = {count} examples, {dataset.train} less {cell.split.validation} held out"
        for path, fault in [*of_recipe(cell, count, of_data), *of_held_out(cell, paper), *of_views(cell, dataset)]:
            if cell.varied:
                yield complaint(documents, group, f"with {named(cell.varied)}: {'.'.join(path)}: {fault}")
            else:
                value = functools.reduce(getattr, path[1:], cell.recipe)
                yield complaint(documents, ("recipes", cell.at["recipe"], *path[1:]), fault, value)
        if cell.at["search"] and cell.at["protocol"] == "clean" and not split_of_trials(cell, paper, dataset).validation:
            yield complaint(documents, (*group, "split"), "leaves its search no held-out examples to choose by")
        yield from of_trials(cell, paper, dataset, documents)
        for fault in of_first_step(cell, count):
            yield complaint(documents, group, fault)
        if paper.cells[cell.group].attack in paper.attacks:
            yield from _of_attack(cell, paper, count, dataset, documents)
        if cell.at["epsilon"] is not None and (wrong := fault_of_delta(cell.at["delta"], count)):
            yield complaint(documents, (*group, "delta"), f"{wrong}: {of_data}", cell.at["delta"])
        shown_by = [artifact for name, artifact in paper.artifacts.items() if shown(paper, [cell], name)]
        for stage in {stage for artifact in shown_by for stage in artifact.stages()}.intersection(ANALYSES):
            options = getattr(paper, stage)
            at_most = {"train": count, "test": dataset.test}.get(getattr(options, "OF", ""))
            if at_most and options.examples > at_most:
                all_of = f"must be at most {at_most}, all that {data} has"
                yield complaint(documents, (stage, "examples"), all_of, options.examples)


def _of_attack(cell: Cell, paper: Paper, count: int, dataset: Dataset, documents: Documents) -> Iterator[str]:
    """Yield what is wrong with an attack on a cell: the first fault of each key that it tries."""
    where, cells = ("cells", cell.group, "attack"), paper.cells[cell.group]
    name = str(cells.attack)
    attack = paper.attacks[name]
    if not isinstance(cell.at["epsilon"], float):
        yield complaint(documents, where, "an attack is held against an ε that is given; say epsilons", name)
    if cell.at["search"] or cell.at["protocol"] != "clean" or cell.recipe.steps is None:
        yield complaint(documents, where, "what is attacked has a recipe with steps, no search and no protocol", name)
    if attack.by == "models":
        for key, usual in _beyond_plain_steps(cell):
            says = f"must be {usual}: models that {name} attacks are trained side by side, by plain steps"
            yield complaint(documents, ("recipes", cell.at["recipe"], key), says)
        if cells.start or cells.train != "all":
            yield complaint(
                documents, where, "models are attacked that train whole, from their first weights: no start, no train"
            )
    for i, target in enumerate(attack.targets or []):
        for key, value in (("image", target.image), ("label", target.label)):
            if isinstance(value, int) and value >= dataset.classes:
                below = f"must be below {dataset.classes}, the classes of {cell.at['dataset']}"
                yield complaint(documents, ("attacks", name, "targets", i, key), below, value)
    for key, values in attack.space.items():
        faults = [fault for value in values for fault in faults_of_value(cell, key, value, count)]
        if not key.startswith("recipe."):
            faults = [f"{key}: what is tried begins with recipe."]
        if faults:
            yield complaint(documents, ("attacks", name, "space"), f"{faults[0]} (for {cell.group})")


def _beyond_plain_steps(cell: Cell) -> Iterator[tuple[str, str]]:
    """Yield each key of a recipe that models side by side would not heed, and what it must be: audit/worlds.py trains them."""
    recipe = cell.recipe
    if recipe.optimizer.model_dump(exclude={"learning_rate"}, exclude_defaults=True) != {"name": "sgd"}:
        yield "optimizer", "{name: sgd} and a learning rate"
    if recipe.schedule.name != "constant":
        yield "schedule", "{name: constant}"
    if recipe.augmentation and recipe.augmentation.resize > 1:
        yield "augmentation", "without resize"
    for key in ("initialization", "noise", "averaging", "simulate", "stop", "precision", "gpus"):
        usual = type(recipe).model_fields[key].default
        if getattr(recipe, key) != usual:
            yield key, "null" if usual is None else str(usual)
