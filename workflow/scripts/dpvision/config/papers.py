"""config/papers/NAME/paper.yaml, and NAME/SCALE.yaml, which is laid over it."""

from collections.abc import Container
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from dpvision.config.analyses import Analyses
from dpvision.config.artifacts import Artifact
from dpvision.config.attacks import Attack
from dpvision.config.base import Distinct, Epsilon, Item, Later, Name, Positive, Seed, Strict, one_of
from dpvision.config.cells import Cells, Split
from dpvision.config.recipes import Recipe
from dpvision.models.found import Model
from dpvision.reporting.kinds import KINDS

if TYPE_CHECKING:
    AnyArtifact = Artifact
else:
    AnyArtifact = one_of(KINDS, "kind")


def _ascending(ends: list) -> list:
    if ends[0] >= ends[1]:
        raise ValueError("must be two numbers, the smaller one first")
    return ends


Ends = Annotated[list[Item], Field(min_length=2, max_length=2), AfterValidator(_ascending)]


class Range(Strict):
    """A range: all numbers between two."""

    uniform: Annotated[Ends[float] | None, Later] = None
    """The least and the greatest; each number between them is as likely as any other."""
    log_uniform: Annotated[Ends[Annotated[float, Field(gt=0)]] | None, Later] = None
    """The least and the greatest, above 0; each order of magnitude is as likely as any other."""
    integers: Annotated[Ends[int] | None, Later] = None
    """The least and the greatest; whole numbers alone, both ends among them."""

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> "Range":
        if len(self.as_spec()) != 1:
            raise ValueError("must have one of uniform, log_uniform and integers")
        return self


Choices = Annotated[Distinct[int | float | str | bool], Field(min_length=2)]


class Search(Strict):
    """A search by Optuna: its sampler draws trials, and a threshold pruner gives them up."""

    recipe: Name | None = None
    """Recipe that trials train by; where absent, that of the cells that ask for the search."""
    space: Annotated[dict[str, Choices | Range], Field(min_length=1)]
    """Keys to vary, of the model or recipe, dotted (model.groups, recipe.optimizer.learning_rate), each with its choices,
    or a range: {uniform: [0.1, 20]}, {log_uniform: [0.001, 1]} or {integers: [10, 50]}."""
    epsilon: Epsilon | None = None
    """Privacy level at which trials train; where absent, the budget of the cells that ask for it. Each trial is given the
    whole of it: its noise is solved for its own batch and length."""
    trials: Positive
    """Number of trials to finish; with `sampler: covered`, their mean number. No combination is tried twice but by that
    sampler, so at most as many as there are."""
    objective: Annotated[Literal["validation_top1", "averaged_validation_top1", "validation_loss"], Later] = "validation_top1"
    """Measure of the best trial: the most accuracy, or the least loss, on the examples held out, after the last step;
    averaged_: of the moving average of the weights. A loss that is no finite number is worse than any other."""
    sampler: Annotated[Literal["tpe", "grid", "random", "covered"], Later] = "tpe"
    """Source of values: a tree-structured Parzen estimator; all combinations in their order, of choices alone; chance; or
    chance as a theorem on the privacy of a search asks for it (Papernot and Steinke 2022): each trial draws its values
    anew and trains with a seed of its own, and the number of trials is drawn too, all of it from the operating system's
    entropy, so that ledgers can say what the search spent. Of the other samplers, only the composition of all trials is
    known."""
    split: Annotated[Split | None, Later] = None
    """Division of the training examples for the trials; null: as for the cells that ask for it. So values can be chosen on
    held-out examples, and trainings with them hold none out."""
    seed: Seed = 0
    """Seed of the sampler and of the trainings, which all start alike; a covered search draws nothing from it."""
    prune_below: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """A trial whose validation accuracy is below this after `prune_after` epochs is given up, whatever the objective."""
    prune_after: Annotated[int, Field(ge=0)] = 5
    """Number of epochs that a trial is given before it may be given up."""


class Searched(Strict):
    """Trainings that a paper's authors chose among, to price what it does not count."""

    what: str
    """What they were, and where that is said. A display label."""
    trainings: Positive
    """Number of them; each is held to spend the whole budget."""
    epsilon: Epsilon
    """Privacy level of each."""
    delta: Annotated[float, Field(gt=0, lt=1)]
    """Its δ; at least 1e-10, and at most 1/N, or 1/N to one digit."""
    examples: Positive
    """Number of training examples, N."""
    batch: Positive
    """Expected batch; at most the number of examples."""
    epochs: Positive
    """Length of each."""


class Practice(Strict):
    """Origin of a paper's own numbers, by its text and its authors' code: for the page of all evidence."""

    selection: str
    """What chose the number in print. A display label."""
    search: str
    """How values were found, and what was counted of that. A display label."""
    accounting: str
    """What is printed of σ and δ, and how batches were drawn. A display label."""
    searched: list[Searched] = []
    """Searches whose number of trainings is known, to be priced."""


class Paper(Analyses):
    """A paper: its recipes of training, and its tables and figures."""

    title: str
    """Title of the paper, and who wrote it. A display label."""
    seeds: Distinct[Seed]
    """Seeds, with each of which each cell is trained once."""
    models: Annotated[dict[Name, Model], Field(min_length=1)]
    """Networks, by the names that cells call them."""
    recipes: Annotated[dict[Name, Recipe], Field(min_length=1)]
    """Recipes for training networks, by the names that cells call them."""
    searches: dict[Name, Search] = {}
    """Searches, by the names that models and cells call them."""
    attacks: dict[Name, Attack] = {}
    """Attacks on trainings, by the names that cells call them."""
    cells: Annotated[dict[Name, Cells], Field(min_length=1)]
    """Groups of cells, by the names that artifacts call them; one that no artifact shows is not trained."""
    artifacts: Annotated[dict[Name, AnyArtifact], Field(min_length=1)]
    """Tables and figures, by the names of their files, which are targets as well; null, in a scale: left out there."""

    selection: Distinct[Name] | None = None
    """The artifacts that are built where config/config.yaml says `artifacts: selection`, which `make demo` does; all of them
    where absent."""
    practice: Practice | None = None
    """How the paper's own numbers came about, where somebody looked it up; it changes no result."""

    @field_validator("artifacts", mode="before")
    @classmethod
    def _left_out(cls, artifacts: Any) -> Any:
        if not isinstance(artifacts, dict):
            return artifacts
        return {name: artifact for name, artifact in artifacts.items() if artifact is not None}

    def _group_before(self, group: str) -> str | None:
        """Return the group of cells whose weights a group starts from."""
        start = self.cells[group].start if group in self.cells else None
        return start.cells if start else None

    def showing(self, artifacts: Container[str]) -> "Paper":
        """Return the paper with these artifacts alone, the cells that they show, and those that these start from."""
        shown = {name: artifact for name, artifact in self.artifacts.items() if name in artifacts}
        wanted = {group for artifact in shown.values() for group in getattr(artifact, "cells", [])}
        while more := {before for group in wanted if (before := self._group_before(group))} - wanted:
            wanted |= more
        cells = {name: here for name, here in self.cells.items() if name in wanted}
        return self.model_copy(update={"artifacts": shown, "cells": cells})
