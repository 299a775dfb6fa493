"""A training from its first step to its last: the loop, its history, and its whole state at any step."""

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dpvision.data.augmentation import Views, margin_of
from dpvision.data.prepared import Prepared, split_of
from dpvision.data.sampling import PoissonSampler
from dpvision.errors import UserError
from dpvision.files import digest
from dpvision.models import build
from dpvision.plan import specs
from dpvision.privacy.accounting import Mechanism
from dpvision.privacy.fast import Choices, ClippedSum
from dpvision.privacy.mechanism import mechanism_of
from dpvision.secret import Secret, Source
from dpvision.training import initializations, optimizers, parts, schedules
from dpvision.training.averaging import Average
from dpvision.training.choices import Decided
from dpvision.training.devices import ALONE, Devices
from dpvision.training.evaluate import evaluate
from dpvision.training.examples import Examples
from dpvision.training.precision import in_precision
from dpvision.training.randomness import stream, stream_seed
from dpvision.training.start import begin
from dpvision.training.step import Step

QUANTILES = (0.1, 0.5, 0.9)
Tick = Callable[["Training"], None]


class Training:
    """A training run. `spec` is complete: nothing in it is left to a search.

    `decided` is the folder of choices that runs share (choices.py); `memory_mb` what clipping may use; `start` the folder of
    what it begins with.
    """

    def __init__(
        self,
        spec: specs.Spec,
        data: Prepared,
        physical_batch: int,
        device: torch.device,
        decided: Path | None = None,
        memory_mb: float = math.inf,
        devices: Devices = ALONE,
        start: Path | None = None,
    ) -> None:
        recipe = spec["recipe"]
        if "start" in spec and start is None:
            raise ValueError("the spec names what the run begins with, and no folder of it was given")
        self.chooser = specs.chooser(spec)
        if self.chooser is None and schedules.follows_validation(name := recipe["schedule"]["name"]):
            raise UserError(
                f"recipe.schedule.name = {name}: it follows the validation loss, and no examples are held out "
                "(data.validation = 0); hold some out, or take a schedule that follows none, like constant or step"
            )
        self.spec, self.physical_batch, self.device, self.devices = spec, physical_batch, device, devices
        self.ends = specs.epoch_ends(spec)
        self.planned = specs.step_count(spec)
        self.count, self.q = specs.training_count(spec), specs.sampling_rate(spec)
        self.divisor, self.repeatable = specs.simulated(spec), specs.is_repeatable(spec)
        self.whole = mechanism_of(spec)  # the mechanism of all steps; none: not private
        self.sigma = None if self.whole is None else self.whole.sigma

        self.train, self.test, self.validation = self._examples(data)
        self.network = self._first_weights()
        self.part = specs.trained_part(spec)
        self.start_sha256 = begin(self.network, spec["start"], start) if start else None
        self.begun_with: dict[str, str] | None = None
        if start or self.part != "all":
            parts.zero_head(self.network)
            if self.part != "all":
                parts.freeze(self.network, self.part)
            self.begun_with = parts.digests_of(self.network)
        self.network.to(device)
        self.average = Average(self.network, **recipe["averaging"]) if recipe["averaging"] else None
        self.optimizer = optimizers.module(recipe["optimizer"]["name"]).build(recipe["optimizer"], self.network)
        self.schedule = schedules.module(recipe["schedule"]["name"]).build(recipe["schedule"], self.optimizer)
        # noise that two runs shared would cancel when they are compared: each run has its own, whatever its seed
        self.name = name = digest(specs.on_one_device(spec))
        self.sampling = self._source("sampling", torch.device("cpu"))
        self.noise = self._source("noise", device)
        self.views = self._views()
        self.decided = Decided(decided, spec, device) if decided and self.whole and devices.first else None
        self.step = self._step(memory_mb)
        self.made = 0
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Any] = {"epoch": 0, "top1": -1.0, "weights": {}}  # and so it stays where no split chooses
        self._losses: list[torch.Tensor] = []
        self._norms: list[torch.Tensor] = []
        self._seconds = 0.0

    def _examples(self, data: Prepared) -> tuple[Examples, Examples, Examples | None]:
        """Return the examples to train on, to test on, and to choose by: those held out, the test split, or none."""
        train, held_out = split_of(self.spec["data"])
        constants = (self.spec["data"]["mean"], self.spec["data"]["std"], self.device)
        test = Examples(data.test_images, data.test_labels, *constants)
        validation = test if self.chooser == "test" else None
        if self.chooser == "validation":
            validation = Examples(data.train_images, data.train_labels, *constants, rows=held_out)
        return Examples(data.train_images, data.train_labels, *constants, rows=train), test, validation

    def _first_weights(self) -> nn.Module:
        """Build the network with the weights that the seed draws."""
        data, first = self.spec["data"], self.spec["recipe"].get("initialization")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(stream_seed(self.spec["seed"], "weights"))
            network = build(self.spec["model"], data["classes"], data["shape"][0])
            if first:
                initializations.module(first["name"]).apply(first, network)
        return network

    def _views(self) -> Views | None:
        if not (said := self.spec["recipe"]["augmentation"]):
            return None
        options = {key: value for key, value in said.items() if key != "resize"}
        margin = margin_of(self.spec["data"]["shape"][1], said.get("resize", 1.0))
        return Views(**options, generator=self._source("views", self.device), black=self.train.black, margin=margin)

    def _step(self, memory_mb: float) -> Step:
        recipe = self.spec["recipe"]
        return Step(
            in_precision(self.network, recipe["precision"]),
            self.optimizer,
            self.train,
            PoissonSampler(self.count, self.q / self.divisor, self.sampling),
            expected_batch=specs.expected_batch(self.spec) / self.divisor,
            physical_batch=self.physical_batch,
            clip=recipe["clip"],
            sigma=None if self.sigma is None else self.sigma / self.divisor,
            noise=self.noise,
            views=self.views,
            divide_by_clip=recipe.get("divide_by_clip", False),
            earlier=self.decided.read if self.decided else None,
            memory_mb=memory_mb,
            devices=self.devices,
        )

    def _source(self, purpose: str, device: torch.device) -> Source:
        return stream(self.spec["seed"], f"{purpose} of {self.name}", device) if self.repeatable else Secret(device)

    @property
    def _streams(self) -> dict[str, torch.Generator]:
        """Return the random streams that have a state to keep: none of secret noise has."""
        sources = {"sampling": self.sampling, "noise": self.noise, "views": self.views and self.views.generator}
        return {name: source for name, source in sources.items() if isinstance(source, torch.Generator)}

    @property
    def mechanism(self) -> Mechanism | None:
        """Return what has been spent so far, as the accountant sees it; in a simulation, what would have been."""
        return self.whole and replace(self.whole, steps=self.made)

    @property
    def epsilon(self) -> float | None:
        return None if self.mechanism is None else self.mechanism.epsilon(self.spec["budget"]["delta"])

    @property
    def choices(self) -> Choices:
        """Return how gradients are clipped, once it is decided: to the last bit, sums depend on it."""
        return self.step.gradients.choices if isinstance(self.step.gradients, ClippedSum) else {}

    @property
    def is_stopped(self) -> bool:
        """Tell whether the recipe ends the run before its planned steps; asked between epochs, of the history alone."""
        over = bool(self.history) and self.made == self.history[-1]["step"]
        return over and specs.is_stopped(self.spec, [row["validation_loss"] for row in self.history])

    def run(self, after_step: Tick = lambda _: None, after_epoch: Tick = lambda _: None) -> None:
        """Train on from any step to the last one, and to the end of its epoch."""
        if self.devices.count > 1:
            self.step.decide()
        while len(self.history) < len(self.ends) and not self.is_stopped:
            begun = time.perf_counter()
            if self.made < self.ends[len(self.history)]:  # else a signal interrupted the evaluation after this step
                self._make_step()
            epoch_over = self.made == self.ends[len(self.history)]
            if epoch_over:
                self._end_epoch()
            self._seconds += time.perf_counter() - begun
            if epoch_over:
                self.history[-1]["seconds"] = round(self._seconds, 3)
                self._seconds = 0.0
                after_epoch(self)
            after_step(self)

    def _make_step(self) -> None:
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            # coins of dropout, if the network tosses any: known by the step, so that a run goes on to the same bits
            coins = stream_seed(self.spec["seed"], f"coins of {self.name}, {self.made}, {self.devices.rank}")
            torch.manual_seed(coins if self.repeatable else secrets.randbits(63))
            seen = self.step()
        self._advance_schedule(None)
        if self.decided and not self.made and isinstance(self.step.gradients, ClippedSum):  # the first step decides
            self.decided.write(self.choices, self.step.gradients.kinds)
        if self.average:
            self.average.update(self.made)
        self.made += 1
        self._losses.append(seen.losses)
        self._norms.append(seen.norms)

    def _end_epoch(self) -> None:
        losses, norms = torch.cat(self._losses).cpu(), torch.cat(self._norms).cpu()
        row: dict[str, Any] = {
            "epoch": len(self.history) + 1,
            "step": self.made,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "epsilon": None if self.divisor > 1 else self.epsilon,
            "train_loss": losses.mean().item() if len(losses) else None,
        }
        if self.divisor > 1:
            row["simulated_epsilon"] = self.epsilon
        row |= _clipping(norms, self.spec["recipe"]["clip"])
        row |= self._held_out(self.network)
        if self.average:
            row |= {f"averaged_{key}": value for key, value in self._held_out(self.average.network).items()}
        self.history.append(row)
        self._losses, self._norms = [], []
        if self.chooser and row["validation_top1"] > self.best["top1"]:
            weights = {name: tensor.detach().cpu().clone() for name, tensor in self.network.state_dict().items()}
            self.best = {"epoch": row["epoch"], "top1": row["validation_top1"], "weights": weights}
        self._advance_schedule(row)

    def _advance_schedule(self, epoch: dict[str, Any] | None) -> None:
        if self.schedule:
            schedules.module(self.spec["recipe"]["schedule"]["name"]).advance(self.schedule, epoch)

    def _held_out(self, network: nn.Module) -> dict[str, float | None]:
        """Evaluate on examples that no step sees, once if both splits are one; validation is None if nothing is held out."""
        test = self.evaluate(self.test, network)
        validation: dict[str, Any] = test if self.validation is self.test else dict.fromkeys(test)
        if self.validation is not None and self.validation is not self.test:
            validation = self.evaluate(self.validation, network)
        row = {f"validation_{key}": value for key, value in validation.items()}
        return row | {f"test_{key}": value for key, value in test.items()}

    def evaluate(self, examples: Examples, network: nn.Module | None = None) -> dict[str, float]:
        """Evaluate the live network, or another with its layers, in the precision in which it is trained."""
        network = in_precision(self.network if network is None else network, self.spec["recipe"]["precision"])
        return evaluate(network, examples, self.physical_batch, self.devices)

    def state(self) -> dict[str, Any]:
        """Return all that the steps to come depend on, and all that was seen so far."""
        return {
            "made": self.made,
            "choices": self.choices,
            "network": self.network.state_dict(),
            "average": self.average.network.state_dict() if self.average else None,
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict() if self.schedule else None,
            **{name: kept.get_state() for name, kept in self._streams.items()},
            "history": self.history,
            "best": self.best,
            "losses": [t.cpu() for t in self._losses],
            "norms": [t.cpu() for t in self._norms],
            "seconds": self._seconds,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.made = state["made"]
        if isinstance(self.step.gradients, ClippedSum):
            self.step.gradients.choices = state["choices"]
        self.network.load_state_dict(state["network"])
        if self.average:
            self.average.network.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.schedule:
            self.schedule.load_state_dict(state["schedule"])
        for name, kept in self._streams.items():
            kept.set_state(state[name])
        self.history, self.best = state["history"], state["best"]
        self._losses = [t.to(self.device) for t in state["losses"]]
        self._norms = [t.to(self.device) for t in state["norms"]]
        self._seconds = state["seconds"]


def _clipping(norms: torch.Tensor, clip: float) -> dict[str, float | None]:
    """Return the share of examples that were clipped, and quantiles of the norms before clipping."""
    names = [f"norm_q{round(100 * q)}" for q in QUANTILES]
    if not len(norms):
        return dict.fromkeys(["clipped", *names])
    values = norms.double().quantile(torch.tensor(QUANTILES, dtype=torch.float64)).tolist()
    return {"clipped": (norms > clip).double().mean().item(), **dict(zip(names, values, strict=True))}
