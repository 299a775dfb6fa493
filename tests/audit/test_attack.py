"""Attacks by many models: trained side by side as the engine trains one; thresholds by models that count for nothing else."""

import copy
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dpvision.audit import attack as attacks
from dpvision.audit import worlds as worlds_module
from dpvision.audit.attack import Reserved, advantage_bound, attack, auc, by_models, fitted, variation
from dpvision.audit.stacked import Stacked
from dpvision.audit.worlds import Chance, Worlds, trained
from dpvision.data.prepared import data_part, load
from dpvision.errors import UserError
from dpvision.files import read_json, write_json
from dpvision.plan import Plan
from dpvision.plan.specs import attack_name
from dpvision.privacy.clipping import OneAtATime
from dpvision.training import step as step_module
from dpvision.training.step import Step
from dpvision.verify.attacks import attack as verified
from dpvision.verify.place import Place

BLANK = {"image": "blank", "label": 9}
NET = {"family": "lenet", "slug": "lenet", "kernels": [3, 2]}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def run(run_spec: Any) -> dict[str, Any]:
    """Return a run of four steps on 20 digits."""
    run = copy.deepcopy(run_spec())
    run["data"]["validation"] = 1417
    run["model"] = NET
    recipe = {"optimizer": {"name": "sgd", "learning_rate": 0.5, "momentum": 0.0}, "schedule": {"name": "constant"}}
    recipe |= {"batch": 12, "steps": 4, "clip": 0.3, "divide_by_clip": True, "augmentation": None}
    run["recipe"] = {**recipe, "averaging": None, "simulate": None, "precision": "float32"}
    run["budget"] = {"epsilon": 8.0, "delta": 0.05, "accountant": "rdp"}
    return run


def spec_of(run: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the spec of an attack by a dozen models."""
    space = {"recipe.optimizer.learning_rate": [0.1, 0.5]}
    said = {"by": "models", "models": 12, "reserved": 4, "tried": 3, "confidence": 0.999, "space": space}
    return {"kind": "attack", "run": run, **said, "targets": [BLANK, {"image": 7, "label": 8}], **more}


class Noted(Chance):
    """Chance whose coins, views and noise are noted, in float64."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.tossed: list[Tensor] = []
        self.shown: list[Tensor] = []
        self.drawn: list[list[Tensor]] = []

    def joins(self, models: int) -> Tensor:
        self.tossed.append(super().joins(models))
        return self.tossed[-1]

    def seen(self, models: int) -> Tensor:
        self.shown.append(super().seen(models))
        return self.shown[-1]

    def noise(self, like: list[Tensor], scale: float) -> list[Tensor]:
        self.drawn.append(super().noise(like, scale))
        return self.drawn[-1]


class AsNoted:
    """A sampler, views and examples for the engine, that give one model what was noted."""

    generator = torch.Generator()
    margin = 0

    def __init__(self, worlds: Worlds, chance: Noted, model: int, inside: bool) -> None:
        self.worlds, self.chance, self.model, self.inside, self.made = worlds, chance, model, inside, -1

    def sample(self) -> Tensor:
        self.made += 1
        joined = self.chance.tossed[self.made][self.model].clone()  # after the target was left out where it is not in
        assert self.inside or not joined[-1]
        return joined.nonzero().squeeze(1)

    def draw(self, count: int) -> Tensor:
        return self.chance.tossed[self.made][self.model].nonzero().squeeze(1)

    def make(self, images: Tensor, drawn: Tensor) -> Tensor:
        mine = self.chance.shown[self.made][self.model].transpose(0, 1)
        return mine.unflatten(0, (-1, self.worlds.views))[drawn]

    def batches(self, cut: list[Tensor], margin: int = 0) -> list[tuple[Tensor, Tensor]]:
        return [(self.worlds.images[indices], self.worlds.labels[indices]) for indices in cut]

    def __len__(self) -> int:
        return len(self.worlds.labels)


def as_drawn(mine: list[Tensor], asked: list[float], parameters: list[Tensor], scale: float, generator: object) -> list[Tensor]:
    """Stand in for the engine's noise: give what was noted, and note what was asked for."""
    asked.append(scale)
    return [part.reshape(parameter.shape) for part, parameter in zip(mine, parameters, strict=True)]


@pytest.mark.parametrize("augmentation", [None, {"pad": 1, "flip": 0.5, "views": 3, "include_original": True}])
def test_models_side_by_side_are_what_the_engine_makes_of_them_one_at_a_time(run, digits, monkeypatch, augmentation):
    run["recipe"]["augmentation"] = augmentation
    worlds = Worlds(run, BLANK, load(digits, data_part(run)), "test", torch.device("cpu"))
    worlds.network, worlds.images = worlds.network.double(), worlds.images.double()
    chance = Noted(worlds, "models")
    inside = torch.tensor([False, True, True])
    scores = trained(worlds, inside, chance)
    assert len(set(scores.tolist())) == 3
    for model, joins in enumerate(inside.tolist()):
        network = copy.deepcopy(worlds.network)
        noted = AsNoted(worlds, chance, model, joins)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
        step = Step(
            network, optimizer, noted, noted, 12, 64, 0.3, worlds.mechanism.sigma, torch.Generator(),
            views=noted if augmentation else None, divide_by_clip=True,
        )  # fmt: skip
        for made in range(4):
            asked = list[float]()
            monkeypatch.setattr(
                step_module, "noise_like", partial(as_drawn, [part[model] for part in chance.drawn[made]], asked)
            )
            step()
            assert asked == pytest.approx([worlds.mechanism.sigma * 0.3])
        loss = torch.nn.functional.cross_entropy(network(worlds.images[-1:]), worlds.labels[-1:])
        assert scores[model].item() == pytest.approx(-loss.item(), abs=1e-10)


def test_noise_has_the_deviation_that_it_is_asked_for(run, digits):
    worlds = Worlds(run, BLANK, load(digits, data_part(run)), "test", torch.device("cpu"))
    drawn = Chance(worlds, "a").noise(Stacked(worlds.network, 16).tensors(), 3.0)
    every = torch.cat([part.flatten() for part in drawn])
    assert every.std().item() == pytest.approx(3.0, rel=0.02)
    assert len(every.unique()) > 0.99 * len(every)


def test_pooling_gives_the_gradient_to_the_first_of_equal_numbers():
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 2), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(3, 4),
    ).double()  # fmt: skip
    images, labels = torch.randint(0, 2, (6, 1, 6, 6)).double(), torch.arange(6) % 4  # of two values: many are equal
    one = OneAtATime(network, 0.5)(images, labels).sums
    for found, expected in zip(
        Stacked(network, 2).clipped_sums(images.transpose(0, 1)[None], labels, torch.ones(2, 6), 0.5), one, strict=True
    ):
        assert torch.allclose(found[1].view_as(expected), expected, atol=1e-12)


def test_a_gradient_that_is_not_finite_adds_nothing():
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3))
    images = torch.ones(2, 1, 2, 2)
    images[0] = math.inf
    both = Stacked(network, 1).clipped_sums(images.transpose(0, 1)[None], torch.tensor([0, 1]), torch.ones(1, 2), 0.5)
    assert all(tensor.isfinite().all() for tensor in both)


def test_another_layer_is_refused():
    with pytest.raises(UserError, match="GroupNorm: models that are trained side by side"):
        Stacked(torch.nn.Sequential(torch.nn.GroupNorm(1, 4)), 2)


# --- the threshold ---


class TwoNormals:
    """Worlds whose scores are normal, those of phase two with other numbers each time."""

    def __init__(self, seed: int) -> None:
        self.seed, self.asked = seed, list[str]()

    def scores(self, what: str, count: int, folder: Path) -> np.ndarray:
        self.asked.append(what)
        numbers = np.random.default_rng(self.seed if what == "phase two" else 0)
        return numbers.normal([[0.0], [2.0]], 1.0, (2, count)).astype(np.float32)


def test_the_threshold_never_sees_the_models_that_count(run, tmp_path):
    spec = spec_of(run, models=300, reserved=100)
    one, other = TwoNormals(1), TwoNormals(2)
    seen = [by_models(spec, worlds, tmp_path) for worlds in (one, other)]
    assert seen[0].thresholds == seen[1].thresholds
    assert not np.array_equal(seen[0].inside, seen[1].inside)
    assert one.asked == ["phase two, set aside", "phase two"]
    assert len(seen[0].inside) == 200
    assert 0 < seen[0].thresholds[0] < 4


def test_models_set_aside_share_no_seed_with_those_that_count(run, digits, tmp_path):
    worlds = Worlds(run, BLANK, load(digits, data_part(run)), "test", torch.device("cpu"))
    scores = [worlds.scores(what, 8, tmp_path) for what in ("phase two, set aside", "phase two")]
    assert len(np.unique(np.concatenate(scores))) == 32


def test_rates_of_models_set_aside_are_never_nothing():
    thresholds, fpr, fnr = Reserved(np.array([0.0, 1.0]), np.array([2.0, 3.0])).rates()
    assert thresholds.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert fpr == pytest.approx([0.5, 1 / 6, 1 / 6, 1 / 6])
    assert fnr == pytest.approx([1 / 6, 1 / 6, 0.5, 5 / 6])


# --- estimators ---


@pytest.mark.parametrize("one, other", [((0.0, 1.0), (1.0, 1.0)), ((0.0, 1.0), (0.5, 3.0)), ((-2.0, 0.1), (-2.0, 0.1))])
def test_total_variation_is_half_of_what_lies_between_the_densities(one, other):
    x = np.linspace(-20, 20, 400_001)
    densities = [np.exp(-(((x - m) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi)) for m, s in (one, other)]
    expected = np.abs(densities[0] - densities[1]).sum() * (x[1] - x[0]) / 2
    assert variation(*one, *other) == pytest.approx(expected, abs=1e-6)


def test_scores_that_are_all_equal_can_be_fitted():
    assert fitted(np.zeros(5), np.zeros(5))["total_variation"] == 0
    assert fitted(np.zeros(5), np.ones(5))["total_variation"] == 1


def test_auc_counts_ties_half():
    inside, out = np.array([1.0, 2.0, 2.0]), np.array([0.0, 2.0])
    pairs = [(a > b) + (a == b) / 2 for a in inside for b in out]
    assert auc(inside, out) == pytest.approx(sum(pairs) / len(pairs))


def test_the_bound_of_the_advantage_is_the_one_in_print():
    whole = [round(advantage_bound(epsilon, 1 / 60000), 2) for epsilon in (1, 2, 4, 8)]
    assert whole == [0.46, 0.76, 0.96, 1.00]
    assert round(advantage_bound(1, 0.01), 2) == 0.47


# --- the record ---


def place_of(folder: Path, spec: dict[str, Any]) -> Place:
    (folder.parents[1] / "runs").mkdir(exist_ok=True)
    return Place(
        folder.parents[1], folder.parents[1], Plan("demo", str(folder.parents[1]), work={("attack", folder.name): spec})
    )


def folder_of(spec: dict[str, Any], root: Path) -> Path:
    return root / "attacks" / attack_name(spec)


def test_an_attack_leaves_counts_thresholds_and_bounds_that_are_verified(run, digits, tmp_path):
    spec = spec_of(run)
    folder = folder_of(spec, tmp_path)
    about = attack(spec, digits, folder)
    assert (about["out"], about["inside"], about["reserved"]) == (8, 8, 4)
    assert len((folder / "tried.csv").read_text().splitlines()) == 1 + 2 * 2
    assert not list(folder.glob(".*"))
    assert list(verified(place_of(folder, spec), ("attack", folder.name))) == []
    for key, other in (("false_positives", 99), ("lower_bound", 3.5), ("threshold", 0.25)):
        write_json(folder / "attack.json", about | {key: other})
        found = [finding.what for finding in verified(place_of(folder, spec), ("attack", folder.name))]
        assert any(key.split("_")[0] in what for what in found), key
    chosen = about["chosen"] | {"target": "7 as 8" if about["chosen"]["target"] != "7 as 8" else "blank as 9"}
    write_json(folder / "attack.json", about | {"chosen": chosen})
    (finding,) = verified(place_of(folder, spec), ("attack", folder.name))
    assert finding.what == "target of the largest total variation"


def test_a_killed_attack_goes_on_to_the_same_bits(run, digits, tmp_path, monkeypatch):
    spec = spec_of(run, models=30, reserved=10, space={}, targets=[BLANK])
    whole = folder_of(spec, tmp_path / "whole")
    attack(spec, digits, whole)
    killed = folder_of(spec, tmp_path / "killed")
    monkeypatch.setattr(worlds_module, "SAVED_EVERY", -1.0)
    block, made = Worlds._block, list[str]()

    def until_killed(self, what, first, each):
        made.append(f"{what}, {first}")
        if len(made) == 4:
            raise KeyboardInterrupt
        return block(self, what, first, each)

    monkeypatch.setattr(Worlds, "_block", until_killed)
    with pytest.raises(KeyboardInterrupt):
        attack(spec, digits, killed)
    assert not (killed / "attack.json").exists()
    attack(spec, digits, killed)
    assert made[3:] == ["phase two, 8", "phase two, 8", "phase two, 16"]
    with np.load(whole / "scores.npz") as one, np.load(killed / "scores.npz") as other:
        assert all(np.array_equal(one[name], other[name]) for name in one)
    assert read_json(whole / "attack.json") == read_json(killed / "attack.json")


def test_another_seed_is_another_attack(run, digits, tmp_path):
    spec = spec_of(run, space={}, targets=[BLANK])
    other = spec_of(run | {"seed": 35}, space={}, targets=[BLANK])
    assert attack_name(spec) != attack_name(other)
    for one in (spec, other):
        attack(one, digits, folder_of(one, tmp_path))
    scores = [np.load(folder_of(one, tmp_path) / "scores.npz")["out"] for one in (spec, other)]
    assert not np.array_equal(*scores)


def test_canaries_take_the_place_of_models_and_their_threshold_is_the_claims(run, digits, tmp_path, monkeypatch):
    nothing = {"reserved": None, "tried": None, "targets": None, "space": {}}
    spec = spec_of(run, by="canaries", models=800, **nothing)
    run["recipe"] |= {"batch": 13}
    folder = folder_of(spec, tmp_path)
    about = attack(spec, digits, folder)
    assert about["by"] == "canaries"
    assert about["reserved"] == 0
    assert about["inside"] + about["out"] == 3 * 784
    assert list(verified(place_of(folder, spec), ("attack", folder.name))) == []
    scores = np.load(folder / "scores.npz")["out"]
    made = attacks.canary_run

    def only_behind_the_first(line, name, run):
        if run == 1 and not (again / ".canaries.npy").exists():
            raise AssertionError("the first run is not kept")
        if run == 1 and not killed:
            killed.append(True)
            raise KeyboardInterrupt
        assert run or not killed, "the first run is made twice"
        return made(line, name, run)

    again, killed = tmp_path / "again", list[bool]()
    monkeypatch.setattr(attacks, "canary_run", only_behind_the_first)
    with pytest.raises(KeyboardInterrupt):
        attack(spec, digits, again)
    attack(spec, digits, again)
    assert np.array_equal(np.load(again / "scores.npz")["out"], scores)
