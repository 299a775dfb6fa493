"""The run that is audited: its Training on made-up data, and what its ledger claims."""

from typing import Any

import numpy as np

from dpvision.data.prepared import Prepared
from dpvision.errors import UserError
from dpvision.plan import specs
from dpvision.privacy.accounting import Mechanism
from dpvision.privacy.ledger import spent
from dpvision.privacy.mechanism import solved
from dpvision.training.devices import ALONE, Devices
from dpvision.training.fit import Training

PHYSICAL_BATCH = 256
MEMORY_MB = 2000.0


def engine_run(model: specs.Spec, epsilon: float = 8.0, **recipe: Any) -> specs.Spec:
    """Return a run for the engine alone: q, steps and δ of the smallest that De et al. audit."""
    return {
        "kind": "run",
        "data": {
            "name": "made_up",
            "shape": [3, 32, 32],
            "classes": 10,
            "train": 1000,
            "test": 1,
            "validation": 0,
            "split_seed": 0,
            "mean": [0.5, 0.5, 0.5],
            "std": [0.25, 0.25, 0.25],
        },
        "model": model,
        "recipe": {
            "optimizer": {"name": "sgd", "learning_rate": 1.0, "momentum": 0.0},
            "schedule": {"name": "constant"},
            "batch": 640,
            "steps": 50,
            "clip": 0.5,  # not 1: a C that is forgotten is to show
            "augmentation": None,
            "averaging": None,
            "simulate": None,
            "precision": "float32",
            **recipe,
        },
        "budget": {"epsilon": epsilon, "delta": 0.01, "accountant": "rdp"},
        "seed": 0,
    }


class Subject:
    """A run's Training, as training/fit.py makes it, on made-up data: q, σ, C, divisor, views and precision are its own."""

    def __init__(self, run: specs.Spec, devices: Devices = ALONE) -> None:
        if run["budget"] is None:
            raise UserError(
                "this run is not private: it claims nothing that an audit could refute. Name one with a budget; "
                "`python -m dpvision status` lists them"
            )
        run = {key: value for key, value in run.items() if key != "start"}  # weights say nothing of the mechanism
        run["recipe"] = {key: value for key, value in run["recipe"].items() if key != "stop"}  # all planned steps are attacked
        run = solved(run)
        self.run = run
        self.where = f" on {devices.count} devices" if devices.count > 1 else ""
        self.training = Training(run, _made_up(run), PHYSICAL_BATCH, devices.device(), None, MEMORY_MB, devices)
        self.views: int = run["recipe"]["augmentation"]["views"] if run["recipe"]["augmentation"] else 1
        self.clip: float = run["recipe"]["clip"]
        self.divisor: float = specs.expected_batch(run) / specs.simulated(run)
        assert self.training.whole is not None
        self.q = self.training.whole.q / specs.simulated(run)  # as claimed: what the sampler does is what is audited

    def ledger(self, mechanism: Mechanism | None) -> dict[str, Any]:
        """Return what the run's ledger would say of a Training with this mechanism."""
        return spent(self.run, mechanism, {})


def claim_of(ledger: dict[str, Any]) -> tuple[Mechanism, float, dict[str, float]]:
    """Return the mechanism that a ledger claims, its δ, and its ε by accountant; of a simulation, of what was done."""
    said = ledger if ledger["private"] else {**ledger["simulated"], **ledger["done"]}
    epsilons = {name: value for name, value in said["epsilon"].items() if name != "target"}
    return Mechanism(said["sampling_rate"], said["noise_multiplier"], said["steps"]["made"]), said["delta"], epsilons


def _made_up(run: specs.Spec) -> Prepared:
    """Return as many examples as the run has, of one black pixel, since no step sees them; and two whole test images."""
    data = run["data"]
    images, labels = np.zeros((data["train"], 1, 1, 1), np.uint8), np.zeros(data["train"], np.int64)
    return Prepared(images, labels, np.zeros((2, *data["shape"]), np.uint8), labels[:2], [], digest="made up")
