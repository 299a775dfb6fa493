"""Recipes: how to train."""

from typing import Annotated, Literal

from pydantic import Field

from dpvision.config.base import Later, Positive, Strict, members, one_of
from dpvision.training import initializations, optimizers, schedules


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


class Stop(Strict):
    """Before the planned steps, after an epoch: what was planned and what was made stand in the ledger."""

    patience: Positive | None = None
    """So many epochs without a better validation loss; null: never for that."""
    above: float | None = None
    """A validation loss that is higher than this, or no number; null: never for that."""


class Recipe(Strict):
    """How to train."""

    optimizer: one_of(members(optimizers), "name")  # type: ignore[valid-type]
    """What turns gradients into steps."""
    schedule: one_of(members(schedules), "name")  # type: ignore[valid-type]
    """How the learning rate changes with the epochs, or steps."""
    initialization: Annotated[one_of(members(initializations), "name") | None, Later] = None  # type: ignore[valid-type]
    """What the network's weights start as; null: what its family gives them."""
    batch: Positive | Literal["all"]
    """Expected batch: an example joins a step with probability batch / N, each by its own coin; all: N, every one in every
    step."""
    epochs: Positive | None = None
    """Passes over the data in expectation: floor(epochs * N / batch) steps."""
    steps: Positive | None = None
    """Instead of epochs: how many steps; the last epoch ends with the last of them."""
    evaluate_every: Annotated[Positive | None, Later] = None
    """After how many steps the held-out and the test examples are looked at, and a line of the history is written, which is
    what an epoch is then; null: after every pass over the data in expectation."""
    clip: Annotated[float, Field(gt=0)]
    """C, bound on the L2 norm of an example's gradient."""
    divide_by_clip: Annotated[bool, Later] = False
    """The noisy sum of clipped gradients is divided by C too, which makes the learning rate independent of C (De et al. 2022,
    equation 3). Training without a budget clips nothing, and its sum is not divided by C."""
    augmentation: Augmentation | None = None
    """Views of each example; null: the image as it is."""
    averaging: Averaging | None = None
    """A moving average of the parameters; null: none."""
    simulate: Annotated[int, Field(gt=1)] | None = None
    """k: samples and noise are those of the recipe divided by k, its steps are kept. Every step has the same noise for its
    signal, at 1/k of the cost; the accuracy predicts that of the training that is simulated. Not private."""
    stop: Annotated[Stop | None, Later] = None
    """When a training ends before its planned steps; null: never."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the network's layers, in training and evaluation; parameters, norms, sums and noise are float32 in any case."""
    gpus: Annotated[Positive, Later] = 1
    """Devices of one machine that share every step, a process for each; CPU processes where no graphics card is visible. The
    result differs in rounding alone. Trials of a search train on one device each: its workers are what runs side by side."""
