"""Analyses of trained weights: a paper's options of each."""

from typing import Annotated, ClassVar

from pydantic import Field

from dpvision.config.base import Positive, Seed, Strict


class Hessian(Strict):
    """How the Hessian of the training loss is examined at the trained weights."""

    OF: ClassVar = "train"
    """Which examples it looks at."""

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

    OF: ClassVar = "test"
    """Which examples it looks at."""

    examples: Positive = 1024
    """Test examples that are passed through the network."""
    bins: Annotated[int, Field(ge=10)] = 80
    """Bars of each histogram."""


class ByClass(Strict):
    """Accuracy by class: of all test examples, so there is nothing to say."""


class Analyses(Strict):
    """What a paper says of each analysis, by the stage's name."""

    hessian: Hessian = Hessian()
    """Of artifacts of the kinds hessian and spectrum."""
    activations: Activations = Activations()
    """Of artifacts of the kind activations."""
    by_class: ByClass = ByClass()
    """Of artifacts of the kind by_class."""
