"""Cells and their coordinates: what tells two of them apart, and how they are selected."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dpvision.config.base import Distinct, Dotted, Epsilon, Item, Later, Name, Positive, Seed, Strict

COORDINATES = ("dataset", "model", "recipe", "search", "epsilon", "sigma", "delta", "protocol", "held_out", "train", "start")
"""Coordinates of every cell, in the order of a table's columns; behind them the keys that its group varies."""

Value = int | float | str | bool | None


class Where(Strict):
    """Values of coordinates: it selects the cells that have all of them. What is left out may be any."""

    dataset: Name | None = None
    """A data set that the paper's cells name."""
    model: Name | None = None
    """One of the paper's models."""
    recipe: Name | None = None
    """One of the paper's recipes."""
    search: Name | None = None
    """The search that chose some of its values; null: none did."""
    epsilon: Epsilon | Literal["solve"] | None = None
    """The privacy level; null: not private; solve: what σ and the length spend."""
    sigma: Annotated[float, Field(gt=0)] | None = None
    """The noise multiplier that its budget gives."""
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    """δ of its privacy level."""
    protocol: Literal["clean", "paper"] | None = None
    """Protocol of its training: `clean`, like everything here; `paper`, like the authors' code."""
    held_out: Annotated[int, Field(ge=0)] | None = None
    """Number of training examples that were held out."""
    train: Literal["all", "norms", "head"] | None = None
    """Part of the network that trains, of cells that begin with weights or train a part."""
    start: Name | None = None
    """Weights that it begins with: their entry in config/weights.yaml, or a group of cells."""
    varied: dict[str, Value] = {}
    """Keys that the group of cells varies (`recipe.batch`, or `ladder`), and their values. In a claim null also selects the
    cells that have no such key: `recipe.augmentation.views: null` those without augmentation."""

    def coordinates(self) -> dict[str, Value]:
        """Return the coordinates that are given, null among them."""
        return {key: getattr(self, key) for key in COORDINATES if key in self.model_fields_set} | self.varied


class PaperProtocol(Strict):
    """The authors' protocol: nothing is held out, and the test split steers the learning rate and picks the epoch.

    Their sampling rate was 1 / (batches an epoch, rounded up). Their epochs ended early: after as many physical batches as
    an epoch would have were samples cut without remainder, while each sample's last physical batch is a part of one. (A
    sample that such an end cut off went on in the next epoch, with the next sample's noise: that is not repeated here.)
    """

    targets: Annotated[list[Epsilon], Field(min_length=1)]
    """The ε that the code was given, one for each of `epsilons`, in their order; what was spent is printed in the paper."""
    sigmas: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
    """σ for each of them, as their version of Opacus found it: within 0.01 of enough, which may be too little."""
    physical_batch: Positive
    """Physical batch of the authors' runs; it decided how many steps an epoch had."""


class Split(Strict):
    """A division of the training examples other than that of the data set's entry."""

    validation: Annotated[int, Field(ge=0)]
    """Number of examples held out; 0: none, so that nothing is chosen by their loss or accuracy."""
    by: Annotated[Literal["permutation", "first", "last"], Later] = "permutation"
    """Examples held out: the end of a permutation by the data set's seed, or the first or last in its own order."""


class Budget(Strict):
    """ε, σ and how long to train: two are given, the third is solved."""

    epsilon: Epsilon | Literal["solve"] = "solve"
    """The privacy level; solve: what σ and the recipe's length spend."""
    nominal: Epsilon | None = None
    """ε in print, of cells whose own ε is another: it names a row of a table, and decides nothing."""
    sigma: Annotated[float, Field(gt=0)] | None = None
    """Noise multiplier: the standard deviation of the noise divided by the clipping norm."""
    steps: Literal["solve"] | None = None
    """solve: as many as ε allows, for a recipe without epochs and steps; null: as the recipe says."""

    def fault(self) -> str | None:
        """Return what is wrong with the whole budget, or None; a group may vary a part of it."""
        if self.sigma is None:
            return "budget.sigma is missing; where σ is to be solved, say epsilons instead of a budget"
        if (self.epsilon == "solve") == (self.steps == "solve"):
            return "budget: give ε and `steps: solve`, or neither, so that what is spent is solved"
        return None


class Rung(Strict):
    """One step of an ablation: what it adds to all those before it."""

    add: str
    """Name of the step."""
    model: dict[Name, Any] = {}
    """Options of the model, laid over those before."""
    recipe: dict[Name, Any] = {}
    """Values of the recipe, laid over those before."""


class Start(Strict):
    """The weights that a network begins with, but for its head, which is new: it begins at zero."""

    weights: Name | None = None
    """Weights in config/weights.yaml."""
    cells: Name | None = None
    """Or of another training: a group of this paper's cells."""
    where: Where = Where()
    """Which of the group's cells, if it has several: coordinates that one of them alone has."""
    seed: Seed | None = None
    """Of that cell's seeds; null: the first."""
    take: Literal["last", "averaged"] = "last"
    """Its weights after the last step, or their moving average there."""
    images: Literal["as_before", "own"] = "as_before"
    """Constants that images are normalised by: those of the training that the weights are of, or the data set's own."""

    @model_validator(mode="after")
    def _has_one_source(self) -> "Start":
        if (self.weights is None) == (self.cells is None):
            raise ValueError("needs either weights or cells" + (", and has both" if self.weights else ""))
        if self.weights and self.model_fields_set - {"weights", "images"}:
            raise ValueError("of weights there is nothing else to say but images; where, seed and take are of cells")
        return self


Varied = Annotated[dict[Dotted, Item], Field(min_length=1)]


class Cells(Strict):
    """Cells that differ in model, ε and whatever is varied; each is trained with every seed."""

    dataset: Name
    """A name in config/datasets.yaml."""
    models: Distinct[Name]
    """Names of the paper's models."""
    recipe: Name
    """The name of one of the paper's recipes."""
    epsilons: Distinct[Epsilon | None] | None = None
    """Privacy levels, for each of which σ is solved; null among them: not private, no clipping and no noise."""
    budget: Budget | None = None
    """Budget in place of epsilons: σ given, and ε or the length of training solved."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    """δ of all of them; at least 1e-10, and at most 1/N, or 1/N to one digit, N the training examples without those held
    out. Above 1/(100 N), ledgers say what it allows."""
    protocol: PaperProtocol | None = None
    """The authors' protocol for these cells; null: the protocol `clean`, in which validation examples are held out and
    σ is the least for ε."""
    split: Split | None = None
    """Number of training examples held out, and which ones; null: as the data set says."""
    start: Start | None = None
    """Weights that they begin with; null: what the network's family gives it. They are taken as public, and images are
    normalised as they were when those were trained."""
    train: Literal["all", "norms", "head"] = "all"
    """Part of the network that trains. head: its last linear layer; norms: also scale and shift of normalisation layers, gains
    and biases of standardised convolutions; all: everything. But for `all` the head starts at zero, and batch normalisation
    keeps the statistics that it starts with, so that it may train privately."""
    seeds: Distinct[Seed] | None = None
    """Seeds, with each of which each cell is trained once; null: the paper's."""
    vary: Varied[Distinct[Any]] | None = None
    """Keys of model, recipe or split, dotted (recipe.optimizer.learning_rate), with their values: all combinations."""
    points: Annotated[list[Varied[Any]], Field(min_length=1)] | None = None
    """Values of such keys that belong together: a cell for each entry."""
    ladder: Annotated[list[Rung], Field(min_length=1)] | None = None
    """An ablation, a cell for each rung."""
    search: Name | None = None
    """A search that finds values for these cells, and for each of them anew: the keys of its space, of model and recipe. It
    takes the place of those that the models name."""
    attack: Name | None = None
    """An attack on these cells: no network is trained for a number of its own, but many that an example was in or not. Tables
    of the kinds `attack` and `attack_settings` show them, and the seeds are the attack's."""
    searches: dict[Name, Name] = {}
    """Searches that these cells use in the place of those that the models name: {search of the model: search used here}."""

    @model_validator(mode="after")
    def _has_one_budget(self) -> "Cells":
        if (self.epsilons is None) == (self.budget is None):
            raise ValueError("needs either epsilons or a budget" + (", and has both" if self.epsilons else ""))
        return self
