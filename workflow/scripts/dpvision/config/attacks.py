"""Attacks on whole trainings: is one example in the data, or not? What they prove of ε is the paper's own audit."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dpvision.config.base import Distinct, Positive, Strict


class Target(Strict):
    """The example that is in the data of one world alone: an image, and the label that it is given."""

    image: Literal["blank", "noise"] | Annotated[int, Field(ge=0)]
    """A black image; uniform noise; or, by the number of a class, the first test example of that class."""
    label: Annotated[int, Field(ge=0)]
    """Number of the class that it is said to be."""


class Attack(Strict):
    """An attack: many models are trained with an example and without it, and their losses on it are told apart by a threshold.

    In phase one a few models of each setting decide which target and which values of the recipe tell the worlds apart best. In
    phase two, with new models, some choose the threshold, and the others count.
    """

    by: Literal["models", "canaries"] = "models"
    """`models`: as above. `canaries`: the engine's audit at the run's q, σ and steps, in place of whole trainings: canaries
    with gradients of known directions, and a threshold that was planned before any data. It needs no phase one."""
    models: Positive
    """Number of models of each world in phase two; of canaries, the number of observations of each world, about."""
    reserved: Positive | None = None
    """Number of these that choose the threshold; the others count. Canaries need none."""
    targets: Distinct[Target] | None = None
    """Examples that are tried in phase one. Canaries are targets themselves."""
    space: dict[str, Distinct[int | float]] = {}
    """Keys of the recipe, dotted (recipe.clip), with values; phase one tries all combinations. None: the recipe's."""
    tried: Annotated[int, Field(ge=3)] | None = None
    """Number of models of each world and setting in phase one."""
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.999
    """Confidence of the lower bound of ε."""

    @model_validator(mode="after")
    def _says_what_it_needs(self) -> "Attack":
        needed: dict[str, Any] = {"reserved": self.reserved, "targets": self.targets}
        if self.settings() > 1:
            needed["tried"] = self.tried
        for key, value in needed.items():
            if self.by == "models" and value is None:
                raise ValueError(f"{key} is missing")
            if self.by == "canaries" and value is not None:
                raise ValueError(f"{key} is not for canaries; leave it out")
        if self.by == "canaries" and self.space:
            raise ValueError("space is not for canaries, which try nothing; leave it out")
        if self.reserved and self.reserved >= self.models:
            raise ValueError(f"reserved must be below {self.models}, the models that they are some of")
        return self

    def settings(self) -> int:
        """Return the number of settings of phase one."""
        found = len(self.targets or [])
        for values in self.space.values():
            found *= len(values)
        return found
