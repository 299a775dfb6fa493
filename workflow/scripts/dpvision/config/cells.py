"""Cells and their coordinates: what tells two of them apart, and how they are selected."""

from typing import Annotated, Literal

from pydantic import Field

from dpvision.config.base import Distinct, Epsilon, Name, Positive, Strict

COORDINATES = ("dataset", "model", "recipe", "search", "epsilon", "delta", "protocol")
"""In the order of a table's columns."""


class Where(Strict):
    """Values of coordinates: it selects the cells that have all of them. What is left out may be any."""

    dataset: Name | None = None
    """A data set that the paper's cells name."""
    model: Name | None = None
    """One of the paper's models."""
    recipe: Name | None = None
    """One of the paper's recipes."""
    search: Name | None = None
    """The search that chose for the model; null: none did."""
    epsilon: Epsilon | None = None
    """The privacy level; null: not private."""
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Its δ."""
    protocol: Literal["clean", "paper"] | None = None
    """How it was trained: as everything here, or as the authors' code does."""

    def coordinates(self) -> dict[str, str | float | None]:
        """Return those that are said, null among them."""
        return {key: getattr(self, key) for key in COORDINATES if key in self.model_fields_set}


class PaperProtocol(Strict):
    """As the authors' code trained: nothing is held out, and the test split steers the learning rate and picks the epoch.

    Their sampling rate was 1 / (batches an epoch, rounded up). Their epochs ended early: after as many physical batches as
    an epoch would have were samples cut without remainder, while each sample's last physical batch is a part of one. (A
    sample that such an end cut off went on in the next epoch, with the next sample's noise: that is not repeated here.)
    """

    targets: Annotated[list[Epsilon], Field(min_length=1)]
    """The ε that the code was given, one for each of `epsilons`, in their order; what was spent is printed in the paper."""
    sigmas: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
    """σ for each of them, as their version of Opacus found it: within 0.01 of enough, which may be too little."""
    physical_batch: Positive
    """Of the authors' runs; it decided how many steps an epoch had."""


class Cells(Strict):
    """Cells that differ in model and ε alone; each is trained with every seed."""

    dataset: Name
    """A name in config/datasets.yaml."""
    models: Distinct[Name]
    """Names of the paper's models."""
    recipe: Name
    """The name of one of the paper's recipes."""
    epsilons: Distinct[Epsilon | None]
    """Privacy levels; null: not private, no clipping and no noise."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    """δ of all of them; at most 1/N, N the training examples without those held out."""
    protocol: PaperProtocol | None = None
    """How the authors' code trained these cells; null: the protocol `clean`, in which validation examples are held out and
    σ is the least for ε."""
    searches: dict[Name, Name] = {}
    """Searches that here take the place of those that the models name: the model's -> this data set's."""
