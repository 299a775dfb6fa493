"""Analyses of trained weights: a paper's options of each."""

from typing import Annotated, ClassVar

from pydantic import Field

from dpvision.config.base import Positive, Seed, Strict


class Hessian(Strict):
    """Settings for examining the Hessian of the training loss at the trained weights."""

    OF: ClassVar = "train"
    """Examples that it looks at."""

    examples: Positive = 1024
    """Training examples over which the loss is averaged."""
    iterations: Positive = 1000
    """Largest number of iterations, of power iteration and of Hutchinson's estimate each (appendix A)."""
    tolerance: Annotated[float, Field(gt=0)] = 1e-3
    """Relative change at which the iterations stop (appendix A)."""
    lanczos_steps: Annotated[int, Field(gt=1)] = 1000
    """Lanczos steps of the spectrum; each keeps one more vector of the model's size in memory."""
    seed: Seed = 0
    """Seed of the random vectors that it starts from."""


class Activations(Strict):
    """Settings of the histograms of activations."""

    OF: ClassVar = "test"
    """Examples that it looks at."""

    examples: Positive = 1024
    """Test examples that are passed through the network."""
    bins: Annotated[int, Field(ge=10)] = 80
    """Bars of each histogram."""


class Analyses(Strict):
    """Settings of each analysis in a paper, by the stage's name."""

    hessian: Hessian = Hessian()
    """Settings for artifacts of the kinds hessian and spectrum."""
    activations: Activations = Activations()
    """Settings for artifacts of the kind activations."""
