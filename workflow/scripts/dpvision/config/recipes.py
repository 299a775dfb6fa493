"""Recipes: settings of a training."""

from typing import Annotated, Literal

from pydantic import Field

from dpvision.config.base import Later, Positive, Strict, members, one_of
from dpvision.training import initializations, optimizers, schedules


class Augmentation(Strict):
    """Random views of each example: the mean of their gradients is the example's gradient, which is clipped."""

    pad: Annotated[int, Field(ge=0)]
    """Pixels put around an image; a view is a random crop of the image's size."""
    resize: Annotated[float, Field(ge=1, lt=2), Later] = 1.0
    """Size of the image that a view is cropped from, in sizes of the view; above 1 for data sets that are streamed, whose
    pictures have more to show (De et al.: 1.2)."""
    border: Literal["mirror", "black"] = "mirror"
    """Filling beside an image: its mirror image, the edge mirrored too (De et al.), or black (torchvision's crop)."""
    rotate: Annotated[float, Field(ge=0, le=180)] = 0.0
    """Degrees by which an image is turned at most, either way, before it is cropped; to the nearest pixel."""
    flip: Annotated[float, Field(ge=0, le=1)]
    """Probability that a view is turned left to right."""
    erase: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Probability that a rectangle of a view, 2 to 33 % of it, takes the data's mean colour (torchvision's RandomErasing)."""
    views: Positive
    """K, the number of views of each example at each step; memory and time grow with it, the privacy spent does not."""
    include_original: bool = False
    """The first of the views is the image as it is."""


class Averaging(Strict):
    """Exponential moving average of the parameters, reported beside the last step's."""

    decay: Annotated[float, Field(gt=0, lt=1)]
    """Decay of the average; in the first steps (1 + t) / (10 + t) where that is smaller, t the steps made before."""


class Stop(Strict):
    """An end of training before the planned steps, after an epoch. The data decide when, so ε is that of the planned steps."""

    patience: Positive | None = None
    """Number of epochs without a better validation loss after which training ends; null: no such end."""
    above: float | None = None
    """Validation loss above which, or if it is no number, training ends; null: no such end."""


class Recipe(Strict):
    """A recipe for training."""

    optimizer: one_of(members(optimizers), "name")  # type: ignore[valid-type]
    """Optimiser, which turns gradients into steps."""
    schedule: one_of(members(schedules), "name")  # type: ignore[valid-type]
    """Schedule, which changes the learning rate with the epochs, or steps."""
    initialization: Annotated[one_of(members(initializations), "name") | None, Later] = None  # type: ignore[valid-type]
    """Start of the network's weights; null: what its family gives them."""
    batch: Positive | Literal["all"]
    """Expected batch: an example joins a step with probability batch / N, each by its own coin; all: N, every one in every
    step."""
    epochs: Positive | None = None
    """Passes over the data in expectation: floor(epochs * N / batch) steps."""
    steps: Positive | None = None
    """Number of steps, instead of epochs; the last epoch ends with the last of them."""
    evaluate_every: Annotated[Positive | None, Later] = None
    """Number of steps after which the held-out and the test examples are evaluated and the history gets a line, which is what
    an epoch is then; null: after every pass over the data in expectation."""
    clip: Annotated[float, Field(gt=0)]
    """C, bound on the L2 norm of an example's gradient."""
    divide_by_clip: Annotated[bool, Later] = False
    """The noisy sum of clipped gradients is divided by C too, which makes the learning rate independent of C (De et al. 2022,
    equation 3). Training without a budget clips nothing, and its sum is not divided by C."""
    noise: Annotated[Literal["repeatable", "secret"], Later] = "repeatable"
    """Source of coins, noise and views: the seed, so that the run can be repeated, and whoever knows the seed can take the
    noise away; or the operating system's entropy, so that nobody can, and weights may be released (docs/privacy.md)."""
    augmentation: Augmentation | None = None
    """Views of each example; null: the image as it is."""
    averaging: Averaging | None = None
    """A moving average of the parameters; null: none."""
    simulate: Annotated[int, Field(gt=1)] | None = None
    """k: samples and noise are those of the recipe divided by k, its steps are kept. Every step has the same noise for its
    signal, at 1/k of the cost; the accuracy predicts that of the training that is simulated. Not private."""
    stop: Annotated[Stop | None, Later] = None
    """Rule that ends a training before its planned steps; null: none."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the network's layers, in training and evaluation; parameters, norms, sums and noise are float32."""
    gpus: Annotated[Positive, Later] = 1
    """Devices of one machine that share every step, a process for each; CPU processes where no graphics card is visible. The
    result differs in rounding alone. Trials of a search train on one device each: its workers are what runs side by side."""
