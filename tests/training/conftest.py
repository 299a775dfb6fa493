"""Trainings of a second, on the digits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dpvision.data.prepared import Prepared, data_part, load
from dpvision.training.fit import Training

PHYSICAL = 64
torch.set_num_threads(1)  # as jobs in tests do: what is decided by timing is decided for a number of cores


@pytest.fixture(scope="session")
def prepared(digits: Path, run_spec: Callable[..., dict]) -> Prepared:
    return load(digits, data_part(run_spec()))


@pytest.fixture(scope="session")
def training(prepared: Prepared, run_spec: Callable[..., dict], digits: Path) -> Callable[..., Training]:
    """Return a training not yet begun; `changes` as of `run_spec`. All share what timing decides: bits are compared."""

    def make(changes: dict[str, Any] | None = None, data: Prepared = prepared, physical: int = PHYSICAL) -> Training:
        return Training(run_spec(changes), data, physical, torch.device("cpu"), digits.parent / "choices")

    return make


@pytest.fixture(scope="session")
def trained(training: Callable[..., Training]) -> Training:
    """Return a training that is over; to be looked at only."""
    done = training()
    done.run()
    return done


@pytest.fixture(scope="session")
def garbled(prepared: Prepared) -> Prepared:
    """Return the same data with a test split that says nothing."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, prepared.test_images.shape, dtype=np.uint8)
    labels = random.integers(0, 10, prepared.test_labels.shape)
    return Prepared(prepared.train_images, prepared.train_labels, images, labels, prepared.class_names, digest="garbled")


@pytest.fixture(scope="session")
def advance() -> Callable[[Training, int], None]:
    """Run a training on to a certain step and stop it there."""

    class Stop(Exception):
        pass

    def to(begun: Training, step: int) -> None:
        def stop(training: Training) -> None:
            if training.made == step:
                raise Stop

        with pytest.raises(Stop):
            begun.run(stop)

    return to
