"""Check the recipe of a cell beside its data, its split and its budget."""

from collections.abc import Iterator

from dpvision.config.datasets import Dataset
from dpvision.config.papers import Paper
from dpvision.plan import specs
from dpvision.plan.expand import Cell
from dpvision.plan.renyi import steps_within
from dpvision.training.schedules import follows_validation


def of_recipe(cell: Cell, count: int, of_data: str) -> Iterator[tuple[tuple[str, ...], str]]:
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
    if recipe.schedule.name == "cosine" and recipe.schedule.warm_up >= recipe.schedule.end:
        yield ("recipe", "schedule", "warm_up"), f"must be below {recipe.schedule.end}, its end"
    if recipe.stop and recipe.stop.patience is recipe.stop.above is None:
        yield ("recipe", "stop"), "has neither patience nor above; give it one of them, or leave it out"
    if recipe.noise == "secret":
        yield from ((("recipe", "noise"), f"cannot be secret {fault}") for fault in _against_secret(cell))
    if cell.varied:
        private = cell.at["epsilon"] is not None and cell.at.get("train", "all") == "all"
        yield from ((("model", key), fault) for key, fault in cell.model.faults(private))


def of_first_step(cell: Cell, count: int) -> Iterator[str]:
    """Yield what is wrong if the budget solves the number of steps and allows none."""
    if not (cell.budget and cell.budget.steps):
        return
    level = (cell.at["epsilon"], cell.at["delta"], specs.batch_of(cell.recipe, count) / count, cell.at["sigma"])
    if not steps_within(*level):
        spends = f"not one step fits ε = {level[0]:g}: one with batches of {cell.recipe.batch} spends more"
        yield f"{spends}. Choose a larger σ or ε, or a smaller batch"


def _against_secret(cell: Cell) -> Iterator[str]:
    """Yield what does not go with secret noise."""
    if cell.recipe.simulate:
        yield "in a simulation, which is not private, and is worth something if it can be repeated"
    elif cell.at["epsilon"] is None:
        yield f"where there is no noise, and {cell.group} trains without a budget; give it a recipe of its own"
    if cell.recipe.gpus > 1:
        yield f"on several devices (gpus: {cell.recipe.gpus}), which have to draw the same sample and views each by itself"


def of_views(cell: Cell, dataset: Dataset) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what is wrong with views that are cropped from larger images, where there are none."""
    views = cell.recipe.augmentation
    if views and views.resize > 1 and not dataset.streamed:
        kept = f"{cell.at['dataset']} is kept at the size of its images, and is not `streamed`"
        yield ("recipe", "augmentation", "resize"), f"must be 1: {kept}; crops come from pixels around an image (pad)"


def of_held_out(cell: Cell, paper: Paper) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what needs held-out examples where there are none."""
    if cell.split.validation or cell.at["protocol"] == "paper":
        return
    if cell.recipe.stop:
        yield ("recipe", "stop"), f"asks for the loss of held-out examples, and {cell.group} holds none out"
    if follows_validation(cell.recipe.schedule.name):
        yield ("recipe", "schedule"), f"follows the loss of held-out examples, and {cell.group} holds none out"
