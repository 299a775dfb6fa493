"""Metrics of a training: the weights, the examples, and what is counted."""

from typing import Literal

from pydantic import model_validator

from dpvision.config.base import Strict

Weights = Literal["last_step", "averaged", "best_epoch"]
Examples = Literal["train", "validation", "test"]

NO_AVERAGE = "no averaged weights"  # stands in tables for a training without such a number
NOTHING_HELD_OUT = "nothing held out"


class Metric(Strict):
    """A number of a training."""

    weights: Weights = "last_step"
    """Weights measured: of the last step, their moving average there, or of the epoch that was chosen as the best."""
    split: Examples = "test"
    """Examples that it is counted on."""
    name: Literal["top1", "top5", "minutes"]
    """Accuracy in per cent, or how long the training took."""

    @model_validator(mode="after")
    def _is_of_one_training(self) -> "Metric":
        if self.name == "minutes" and self.model_fields_set & {"weights", "split"}:
            raise ValueError("minutes are of the whole training; leave out weights and split")
        return self


def measured(protocol: str, name: str | None, weights: str | None = None, split: str | None = None) -> tuple[str | None, ...]:
    """Return the weights, the split and the name of a metric; the protocol's row decides what is not said."""
    if name == "minutes":
        return None, None, name
    return weights or ("best_epoch" if protocol == "paper" else "last_step"), split or "test", name
