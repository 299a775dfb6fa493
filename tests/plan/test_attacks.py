"""Cells that are attacked: no network is trained for them, their attack's spec says all, and what is wrong is said before."""

import pytest
import yaml

from dpvision.plan.specs import attack_name

TARGETS = [{"image": "blank", "label": 9}]
RECIPE = {
    "optimizer": {"name": "sgd", "learning_rate": 0.5},
    "schedule": {"name": "constant"},
    "batch": 64,
    "steps": 50,
    "clip": 1.0,
}
CELLS = {"dataset": "digits", "models": ["small"], "recipe": "attacked", "epsilons": [8.0], "delta": 0.01, "attack": "many"}
PART = {
    "models": {"small": {"family": "lenet", "label": "Small", "kernels": [3, 2]}},
    "recipes": {"attacked": RECIPE},
    "attacks": {"many": {"models": 120, "reserved": 20, "targets": TARGETS, "space": {"recipe.clip": [0.1, 1.0]}, "tried": 10}},
    "cells": {"attacked": {**CELLS, "split": {"validation": 1337}, "seeds": [0]}},
    "artifacts": {"bounds": {"kind": "attack", "title": "Bounds", "cells": ["attacked"]}},
}


@pytest.fixture
def part(configuration):
    """Return a function that writes a part of ScaleNorm with an attack, changed as it is told."""
    folder = configuration.root / "config/papers/scalenorm/attacks"
    folder.mkdir()

    def write(**changes):
        content = {
            section: {name: {**of, **changes.get(section, {})} for name, of in PART[section].items()} for section in PART
        }
        (folder / "paper.yaml").write_text(yaml.safe_dump(content))
        return configuration

    return write


def test_an_attacked_cell_is_an_attack_and_no_training(part):
    before = part(artifacts={"kind": "splits"}).plan().runs
    planned = part().plan()
    assert planned.runs == before
    (name,) = planned.of("attack")
    spec = planned.work["attack", name]
    assert name == attack_name(spec) and name.startswith("digits-lenet-eps8-seed0-")
    assert (spec["models"], spec["targets"], spec["run"]["data"]["validation"]) == (120, TARGETS, 1337)
    assert planned.needs(("attack", name)) == [("data", spec["run"]["data"]["prepared"])]
    assert planned.inputs_of("bounds")["attack"] == [f"results/attacks/{name}/attack.json"]
    assert set(planned.record(("attack", name))) < set(planned.kept_files())


def test_other_seeds_are_a_line(part):
    one = set(part().plan().of("attack"))
    both = part(cells={"seeds": [0, 1]}).plan().of("attack")
    assert one < set(both) and len(both) == 2


def test_other_numbers_of_models_are_another_attack(part):
    one = set(part().plan().of("attack"))
    assert one.isdisjoint(part(attacks={"models": 240}).plan().of("attack"))


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"cells": {"attack": "mny"}}, 'there is no attack "mny"'),
        ({"artifacts": {"kind": "accuracy"}}, "is attacked and not trained"),
        ({"cells": {"attack": None}}, "names no attack"),
        ({"attacks": {"targets": [{"image": 10, "label": 9}]}}, "must be below 10, the classes of digits"),
        ({"attacks": {"space": {"recipe.clip": [0.1, -1.0]}}}, "recipe.clip"),
        ({"attacks": {"space": {"model.kernels": [3, 4]}}}, "what is tried begins with recipe."),
        ({"attacks": {"reserved": 120}}, "reserved must be below 120"),
        ({"attacks": {"reserved": None}}, "reserved is missing"),
        ({"attacks": {"tried": None}}, "tried is missing"),
        ({"attacks": {"by": "canaries"}}, "reserved is not for canaries"),
        ({"attacks": {"by": "canaries", "reserved": None, "targets": None, "tried": None}}, "space is not for canaries"),
        ({"cells": {"epsilons": [None]}}, "an attack is held against an ε that is given"),
        (
            {"recipes": {"schedule": {"name": "step", "every": 2, "factor": 0.5}}},
            "schedule: must be {name: constant}: models that many attacks",
        ),
        ({"recipes": {"optimizer": {"name": "sgd", "learning_rate": 0.5, "momentum": 0.9}}}, "optimizer: must be {name: sgd}"),
        ({"recipes": {"averaging": {"decay": 0.9}}}, "averaging: must be null"),
        ({"cells": {"train": "head"}}, "no start, no train"),
        ({"recipes": {"precision": "bfloat16"}}, "precision: must be float32"),
    ],
)
def test_what_is_wrong_is_said(part, changes, says):
    assert says in "\n".join(part(**changes).complaints())
