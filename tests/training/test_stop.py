"""A run may end before its planned steps, and its record says how many were planned and how many made."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dpvision.files import read_json, write_csv, write_json
from dpvision.plan import Plan, specs
from dpvision.privacy.accounting import prv_epsilon
from dpvision.privacy.curve import Curve
from dpvision.privacy.ledger import spent
from dpvision.privacy.mechanism import mechanism_of
from dpvision.training import run
from dpvision.training.fit import Training
from dpvision.verify.place import Place
from dpvision.verify.runs import record

NAN = math.nan


@pytest.mark.parametrize(
    ("stop", "losses", "over"),
    [
        (None, [1.0, 2.0, 3.0], False),
        ({"patience": 2, "above": None}, [], False),
        ({"patience": 2, "above": None}, [1.0, 1.5], False),
        ({"patience": 2, "above": None}, [1.0, 1.5, 1.0], True),  # as good is not better
        ({"patience": 2, "above": None}, [1.0, 1.5, 0.9], False),
        ({"patience": 2, "above": None}, [NAN, 1.5, 1.4, 1.6], False),
        ({"patience": None, "above": 1000.0}, [1.0, 1000.0], False),
        ({"patience": None, "above": 1000.0}, [1.0, 1000.5], True),
        ({"patience": None, "above": 1000.0}, [1.0, NAN], True),
    ],
)
def test_a_run_ends_when_its_recipe_says(stop, losses, over):
    assert specs.is_stopped({"recipe": {"stop": stop} if stop else {}}, losses) is over


@pytest.mark.parametrize(("validation_loss", "epochs"), [(1e9, 1), (0.0, 4)])
def test_the_validation_loss_ends_a_run_not_the_training_loss(training, monkeypatch, validation_loss, epochs):
    """Training losses are some 2: between both validation losses and beyond the bound of one of them."""
    held_out = Training._held_out
    scripted = {"validation_loss": validation_loss}
    monkeypatch.setattr(Training, "_held_out", lambda *arguments: held_out(*arguments) | scripted)
    bound = 1e6 if validation_loss else 1e-6
    begun = training({"recipe.stop": {"patience": None, "above": bound}})
    begun.run()
    assert (begun.history[0]["train_loss"] > bound) is not (validation_loss > bound)
    assert len(begun.history) == epochs


@pytest.fixture(scope="module")
def stopped(digits, run_spec, tmp_path_factory) -> tuple[Path, specs.Spec]:
    """Train a run of four planned epochs whose loss is too high after the first."""
    spec = run_spec({"recipe.stop": {"patience": None, "above": 0.0}})
    root = tmp_path_factory.mktemp("stopped")
    folder = root / "results/runs" / specs.run_name(spec)
    run.train(spec, digits, [], folder, root / "checkpoint", digits.parent / "choices", 64, 4000, 0.0)
    return root, spec


def problems(root: Path, spec: specs.Spec) -> list[str]:
    name = specs.run_name(spec)
    plan = Plan("paper", str(root / "results"), work={("train", name): spec})
    return [str(found) for found in record(Place(root, root / "results", plan), ("train", name))]


def test_stopped_run_states_the_epsilon_of_its_planned_steps(stopped):
    """The data decided when it ended, so the ε of the steps made is no guarantee."""
    root, spec = stopped
    folder = root / "results/runs" / specs.run_name(spec)
    ledger, metrics = read_json(folder / "ledger.json"), read_json(folder / "metrics.json")
    planned = mechanism_of(spec)
    assert ledger["steps"] == {"planned": 40, "made": 10}
    curve = Curve.of(planned, 1e-4)
    accountants = {"rdp": planned.epsilon(1e-4), "prv": prv_epsilon(planned, 1e-4), "pld": curve.epsilon(1e-4)}
    assert ledger["epsilon"] == {"target": 7.42, **accountants}
    assert ledger["curve"] == curve.summary(1e-4)
    assert ledger["stopped"]["epsilon"]["rdp"] == replace(planned, steps=10).epsilon(1e-4) < ledger["epsilon"]["rdp"]
    assert "no guarantee" in ledger["stopped"]["meaning"]
    assert any("after which epoch the training ends" in text for text in ledger["not_accounted"])
    assert metrics["last_step"]["step"] == 10
    with open(folder / "history.csv", encoding="utf-8") as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["10"]


def test_older_ledger_of_a_stopped_run_holds(stopped):
    root, spec = stopped
    file = root / "results/runs" / specs.run_name(spec) / "ledger.json"
    text = file.read_text(encoding="utf-8")
    older = spent(spec, replace(mechanism_of(spec), steps=10), {}, written=1)
    assert older["epsilon"]["rdp"] < read_json(file)["epsilon"]["rdp"]
    write_json(file, older)
    assert problems(root, spec) == []
    write_json(file, {**read_json(file), "format": 2})
    assert any("epsilon.rdp, recomputed" in problem for problem in problems(root, spec))
    file.write_text(text, encoding="utf-8")


def test_its_record_holds_and_one_that_ends_elsewhere_does_not(stopped):
    root, spec = stopped
    assert problems(root, spec) == []
    file = root / "results/runs" / specs.run_name(spec) / "history.csv"
    text = file.read_text(encoding="utf-8")
    (row,) = csv.DictReader(text.splitlines())
    write_csv(file, [row, row | {"epoch": 2, "step": 20}])
    assert any("steps at the ends of epochs: expected [10], found [10, 20]" in problem for problem in problems(root, spec))
    file.write_text(text, encoding="utf-8")


def test_going_on_where_it_was_left_it_ends_where_it_would_have(digits, run_spec, stopped):
    from dpvision.data.prepared import data_part, load

    _, spec = stopped
    training = Training(spec, load(digits, data_part(spec)), 64, torch.device("cpu"))
    training.run()
    again = Training(spec, load(digits, data_part(spec)), 64, torch.device("cpu"))
    again.restore(training.state())
    again.run()
    assert (again.made, len(again.history)) == (10, 1)
