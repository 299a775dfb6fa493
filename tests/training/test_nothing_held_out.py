"""A training with nothing held out, outside of the authors' protocol, chooses by nothing, least by the test split."""

import csv
from pathlib import Path

import pytest
import torch

from dpvision.errors import UserError
from dpvision.files import read_json, write_csv, write_json
from dpvision.looking import compare, show, status
from dpvision.looking.runs import Run, read
from dpvision.plan import Plan, specs
from dpvision.reporting import pages
from dpvision.reporting.kinds import curves
from dpvision.search import study
from dpvision.training import fit, run
from dpvision.training.underway import UnderWay
from dpvision.verify.place import Place
from dpvision.verify.runs import record

NOTHING = {
    "data.validation": 0,
    "recipe.epochs": 2,
    "recipe.optimizer": {"name": "sgd", "learning_rate": 0.5, "momentum": 0.0},
    "recipe.schedule": {"name": "step", "factor": 0.5, "every": 1, "unit": "epochs"},
    "recipe.averaging": {"decay": 0.9},
}
VALIDATION = [f"{prefix}validation_{key}" for prefix in ("", "averaged_") for key in ("loss", "top1", "top5")]


class Results:
    """A folder of results with one training."""

    def __init__(self, root: Path, data: Path, spec: specs.Spec) -> None:
        self.root, self.spec, self.name = root, spec, specs.run_name(spec)
        self.plan = Plan("paper", str(root / "results"), work={("train", self.name): spec})
        self.record = root / "results/runs" / self.name
        run.train(spec, data, [], self.record, root / "checkpoint", data.parent / "choices", 64, 4000, 0.0)

    def look(self) -> Run:
        return read(self.root, f"results/runs/{self.name}", self.plan)

    def problems(self) -> list[str]:
        return [str(found) for found in record(Place(self.root, self.root / "results", self.plan), ("train", self.name))]

    def history(self) -> list[dict[str, str]]:
        with open(self.record / "history.csv", encoding="utf-8") as file:
            return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def results(tmp_path_factory, digits, run_spec) -> Results:
    return Results(tmp_path_factory.mktemp("nothing held out"), digits, run_spec(NOTHING))


# --- the training ---


def test_it_trains_on_all_examples(training):
    run = training(NOTHING)
    assert (run.count, len(run.train), run.q, run.validation) == (1437, 1437, 100 / 1437, None)


def test_the_test_split_decides_nothing_and_is_all_that_is_looked_at(training, garbled, monkeypatch):
    seen, evaluate = [], fit.evaluate
    monkeypatch.setattr(
        fit, "evaluate", lambda network, examples, *more: seen.append(examples) or evaluate(network, examples, *more)
    )
    clear = training(NOTHING)
    clear.run()
    blind = training(NOTHING, data=garbled)
    blind.run()
    assert {id(examples) for examples in seen} == {id(clear.test), id(blind.test)}
    assert len(seen) == 2 * 2 * 2  # trainings, epochs, live and averaged: once each
    assert [row["test_loss"] for row in clear.history] != [row["test_loss"] for row in blind.history]
    ours, theirs = clear.state(), blind.state()
    assert all(torch.equal(ours["network"][name], tensor) for name, tensor in theirs["network"].items())
    assert ours["schedule"] == theirs["schedule"]
    assert ours["best"] == theirs["best"] == {"epoch": 0, "top1": -1.0, "weights": {}}


def test_a_schedule_sees_no_validation_loss(training, monkeypatch):
    seen = []
    steps = fit.schedules.module("step")
    monkeypatch.setattr(steps, "advance", lambda scheduler, epoch: seen.append(epoch))
    training(NOTHING).run()
    assert [row["validation_loss"] for row in seen if row] == [None, None]


def test_it_goes_on_from_a_checkpoint(training, advance, tmp_path):
    whole = training(NOTHING)
    whole.run()
    first, second = training(NOTHING), training(NOTHING)
    advance(first, 20)
    torch.save(first.state(), tmp_path / "state.pt")
    second.restore(torch.load(tmp_path / "state.pt"))
    second.run()
    assert all(torch.equal(second.network.state_dict()[name], tensor) for name, tensor in whole.network.state_dict().items())


def test_a_schedule_that_follows_the_validation_loss_is_refused_before_it_begins(training):
    with pytest.raises(
        UserError, match=r"schedule\.name = plateau: .* validation loss.*data\.validation = 0\); .* constant or step"
    ):
        training({"data.validation": 0})


def test_a_search_is_refused_before_it_begins(tmp_path, digits, run_spec):
    space = {"model.groups": [1, 2]}
    spec = {"kind": "study", "run": run_spec(NOTHING), "space": space, "trials": 2, "seed": 0, "prune_below": 0.0}
    with pytest.raises(UserError, match=r"by held-out examples, and no examples are held out .*data\.validation = 0"):
        study.work(spec, digits, tmp_path / "study", tmp_path / "done.json", tmp_path / "choices", 64, 4000)
    assert not (tmp_path / "study").exists()


# --- its record ---


def test_the_history_has_the_columns_of_any_other_and_nothing_in_those_of_validation(results, training, trained):
    rows = results.history()
    assert len(rows) == 2
    for row in rows:
        assert [row[key] for key in VALIDATION] == [""] * 6
        assert row["test_top1"] and row["averaged_test_top1"]
    assert [key for key in rows[0] if not key.startswith("averaged_")] == list(trained.history[0])


def test_the_metrics_have_no_best_epoch_and_nothing_of_validation(results):
    metrics = read_json(results.record / "metrics.json")
    assert set(metrics) == {"last_step", "averaged"}
    assert set(metrics["last_step"]) == {"step", "train", "test"}
    assert set(metrics["averaged"]) == {"train", "test"}


def test_the_ledger_says_that_nothing_was_held_out(results):
    ledger = read_json(results.record / "ledger.json")
    assert ledger["examples"] == 1437
    assert "nothing being held out" in ledger["not_accounted"][0]
    assert not any("picks the best epoch" in line for line in ledger["not_accounted"])


def test_the_record_holds(results):
    assert results.problems() == []


def test_a_record_with_a_best_epoch_or_validation_numbers_does_not_hold(tmp_path, digits, run_spec):
    spoilt = Results(tmp_path, digits, run_spec(NOTHING | {"recipe.epochs": 1}))
    metrics, rows = read_json(spoilt.record / "metrics.json"), spoilt.history()
    write_json(spoilt.record / "metrics.json", metrics | {"best_epoch": metrics["last_step"] | {"epoch": 1}})
    write_csv(spoilt.record / "history.csv", [row | {"validation_top1": row["test_top1"]} for row in rows])
    found = "\n".join(spoilt.problems())
    assert "best_epoch, nothing being held out" in found
    assert "none being held out: expected [], found ['validation_top1 at epoch 1']" in found


# --- for people who look ---


def test_show_leaves_out_what_there_is_not(results):
    text = show.as_text(results.look())
    assert "1437 train, 0 validation, 360 test" in text
    assert "best epoch" not in text
    assert "validation top-1, epochs" not in text
    assert "test top-1, epochs 1 to 2" in text
    assert "averaged" in text


def test_the_report_s_card_leaves_it_out_too(results):
    made = results.look()
    card = pages.card(made, [])
    assert "best epoch" not in card
    assert "–" in card
    assert "test top-1" in card
    assert "validation top-1" not in card


def test_it_compares_with_a_training_that_holds_some_out(results, tmp_path, digits, run_spec):
    other = Results(tmp_path, digits, run_spec({"recipe.epochs": 1}))
    found = compare.compared(results.look(), other.look())
    ours, theirs = found["results"]["last_step.validation.top1"]
    assert ours is None
    assert 0 <= theirs <= 1
    assert "data.validation" in compare.as_text(found)


def test_its_curves_are_drawn(results):
    at = {"dataset": "digits", "model": "m", "recipe": "r", "search": None, "epsilon": 7.42, "delta": 1e-4, "protocol": "clean"}
    spec = {"cells": [{"at": at, "work": {"train": {"34": results.name}}}]}
    frame = curves.read(spec, {"histories": [str(results.record / "history.csv")]})
    assert frame["validation_top1"].isna().all()
    figure = curves.draw(frame, {"models": {"m": "M"}, "title": "t"})
    assert len(figure.axes[0].lines) == 1


def test_its_lines_of_progress_name_the_test_split_alone(training, tmp_path):
    run_now = training(NOTHING)
    UnderWay(tmp_path / "begun", lambda: None).write(run_now, None)
    run_now.run()
    for line in (run._line(run_now), run._epoch_line(run_now)):
        assert "validation" not in line
        assert "test" in line
    UnderWay(tmp_path, lambda: None).write(run_now, 1.0)
    progress = read_json(tmp_path / "progress.json")
    assert progress["validation_top1"] is None
    assert "validation" not in status.how_far(progress | {"age": 0})
    with open(tmp_path / "history.csv", encoding="utf-8") as file:
        assert [row["validation_top1"] for row in csv.DictReader(file)] == ["", ""]
