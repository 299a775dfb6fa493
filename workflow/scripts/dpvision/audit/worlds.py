"""Two worlds: models that are trained on the same data, in one world with one example more. They differ in nothing else.

The engine trains one model at a time; tests hold this against it. Number of examples for q, σ and the divisor are those of the
world without the example: an example more or less changes none of them.
"""

import logging
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpvision.audit.stacked import Stacked
from dpvision.data.augmentation import Views
from dpvision.data.prepared import Prepared, split_of
from dpvision.data.streamed import read
from dpvision.errors import UserError
from dpvision.files import replacing
from dpvision.logs import Progress
from dpvision.models import build
from dpvision.plan import specs
from dpvision.privacy.mechanism import mechanism_of
from dpvision.training.examples import Examples
from dpvision.training.randomness import stream, stream_seed

AT_ONCE = 16  # images of views count as models: more models at once leave the processor's memory
SAVED_EVERY = 5.0  # seconds

log = logging.getLogger(__name__)


class Worlds:
    """A run's data and its start, with a target beside; `name` is a part of the seeds of all that chance decides."""

    def __init__(self, run: specs.Spec, target: dict[str, Any], data: Prepared, name: str, device: torch.device) -> None:
        recipe = run["recipe"]
        if recipe["optimizer"] != {"name": "sgd", "learning_rate": recipe["optimizer"]["learning_rate"], "momentum": 0.0}:
            raise UserError("models that are trained side by side take plain steps: optimizer {name: sgd, momentum: 0}")
        self.run, self.name, self.device = run, name, device
        self.target = f"{target['image']} as {target['label']}"
        train, _ = split_of(run["data"])
        image = image_of(target["image"], data, run["seed"])
        images = np.concatenate([*read(data.train_images, [train]), image[None]])
        labels = np.append(data.train_labels[train], target["label"])
        self.examples = Examples(images, labels, run["data"]["mean"], run["data"]["std"], device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(stream_seed(run["seed"], "weights"))
            self.network = build(run["model"], run["data"]["classes"], run["data"]["shape"][0]).to(device)
        mechanism = mechanism_of(run)
        assert mechanism is not None
        self.mechanism = mechanism
        self.views: int = recipe["augmentation"]["views"] if recipe["augmentation"] else 1
        self.together = max(2, AT_ONCE // self.views)
        self.images, self.labels = self.examples.batch(slice(None))

    def scores(self, what: str, count: int, folder: Path) -> np.ndarray:
        """Return the scores of so many models of each world, [2, count], that without the target first; killed, it goes on.

        A score is the loss on the target, its sign changed: high, where the target was in. `what` tells these models from
        others of the attack: none has a seed of another.
        """
        part, each = folder / f".{what}.npy", self.together // 2
        there = np.load(part) if part.exists() else np.zeros((2, 0), np.float32)
        if there.shape[1]:
            log.info("%s: goes on behind %d of %d models", what, there.shape[1], count)
        blocks, saved = [there], time.monotonic()
        with closing(Progress(f"{self.name} {what}", count)) as progress:
            for first in range(there.shape[1], count, each):
                blocks.append(self._block(what, first, each))
                if time.monotonic() - saved > SAVED_EVERY or first + each >= count:
                    blocks = [np.concatenate(blocks, axis=1)]
                    with replacing(part) as beside:
                        np.save(beside, blocks[0])
                    saved = time.monotonic()
                progress.step(min(first + each, count), lambda: "models of each world")
        return np.concatenate(blocks, axis=1)[:, :count]

    def _block(self, what: str, first: int, each: int) -> np.ndarray:
        """Train some models of each world side by side, from the first on; their seeds are their own."""
        purpose = f"{self.name}, {what}, {self.target}, models {first} on"
        chance = Chance(self, purpose)
        inside = torch.arange(2 * each, device=self.device) >= each
        found = trained(self, inside, chance)
        return found.cpu().numpy().reshape(2, each)


class Chance:
    """All that chance decides of some models: who joins, which views are seen, the noise. One stream, drawn step by step.

    Its seeds have 63 bits, unlike those of PyTorch on a CPU: of a million models no two share their noise.
    """

    def __init__(self, worlds: Worlds, purpose: str) -> None:
        seed = worlds.run["seed"]
        self.worlds = worlds
        self.numbers = np.random.default_rng(stream_seed(seed, f"coins and noise of {purpose}"))
        self.views = None
        if augmentation := worlds.run["recipe"]["augmentation"]:
            drawn = stream(seed, f"views of {purpose}", worlds.device)
            self.views = Views(**augmentation, generator=drawn, black=worlds.examples.black)

    def joins(self, models: int) -> Tensor:
        """Toss a coin for each model and example: true, it joins."""
        coins = self.numbers.random((models, len(self.worlds.labels))) < self.worlds.mechanism.q
        return torch.as_tensor(coins, device=self.worlds.device)

    def seen(self, models: int) -> Tensor:
        """Return the images of all models, or with views those of each, as Stacked takes them."""
        images = self.worlds.images
        if self.views is None:
            return images.transpose(0, 1)[None]
        count = len(images)
        made = self.views.make(images.repeat(models, 1, 1, 1), self.views.draw(models * count))
        return made.view(models, count * made.shape[1], *images.shape[1:]).transpose(1, 2)

    def noise(self, like: list[Tensor], scale: float) -> list[Tensor]:
        """Draw N(0, scale²) for every weight of every model."""
        sizes = [tensor[0].numel() for tensor in like]
        drawn = torch.from_numpy(self.numbers.standard_normal((len(like[0]), sum(sizes)), dtype=np.float32) * np.float32(scale))
        parts = drawn.to(self.worlds.device, like[0].dtype).split(sizes, dim=1)
        return [part.reshape(tensor.shape) for part, tensor in zip(parts, like, strict=True)]


def trained(worlds: Worlds, inside: Tensor, chance: Chance) -> Tensor:
    """Train models side by side, those `inside` with the target; return how surely each knows it: its loss, sign changed."""
    recipe, mechanism, models = worlds.run["recipe"], worlds.mechanism, len(inside)
    stacked = Stacked(worlds.network, models)
    clip, rate = recipe["clip"], recipe["optimizer"]["learning_rate"]
    divisor = specs.expected_batch(worlds.run) * (clip if recipe.get("divide_by_clip", False) else 1)
    seen = chance.seen(models)
    for step in range(mechanism.steps):
        if chance.views and step:
            seen = chance.seen(models)
        joins = chance.joins(models)
        joins[:, -1] &= inside
        sums = stacked.clipped_sums(seen, worlds.labels, joins, clip, worlds.views)
        noise = chance.noise(stacked.tensors(), mechanism.sigma * clip)
        stacked.move([(total.view_as(part) + part) / divisor for total, part in zip(sums, noise, strict=True)], rate)
    with torch.no_grad():
        losses = stacked.losses(worlds.images[-1:].transpose(0, 1)[None], worlds.labels[-1:], [])[:, 0]
    return torch.nan_to_num(-losses, nan=-torch.finfo(losses.dtype).max)


def image_of(what: str | int, data: Prepared, seed: int) -> np.ndarray:
    """Return a target's image: black; noise, by the attack's seed; or the first test example of a class."""
    shape = data.train_images.shape[1:]
    if what == "blank":
        return np.zeros(shape, np.uint8)
    if what == "noise":
        return np.random.default_rng(stream_seed(seed, "image of noise")).integers(0, 256, shape, np.uint8)
    return next(read(data.test_images, [np.flatnonzero(data.test_labels == what)[:1]]))[0]
