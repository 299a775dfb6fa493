"""A right engine is consistent, whatever the run; one with a bug is not; the record says what was counted."""

import csv
import json
import logging
import math
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from false_alarms import verdicts
from torch import nn

from dpvision import __main__ as command_line
from dpvision.audit import designs, job
from dpvision.audit.job import audit, listing
from dpvision.audit.judge import CONSISTENT, LOOSE, REFUTED, Test, exactly, judged
from dpvision.audit.replay import Bench
from dpvision.audit.subject import Subject, engine_run
from dpvision.errors import UserError
from dpvision.files import write_json
from dpvision.models.found import FAMILIES
from dpvision.plan import Plan, audits
from dpvision.privacy import clipping
from dpvision.privacy.accounting import Mechanism
from dpvision.privacy.audit import two_sided
from dpvision.privacy.audit.two_sided import Found
from dpvision.privacy.contributions import Deferred
from dpvision.privacy.convolution import Convolution
from dpvision.privacy.fast import UNTIMED
from dpvision.reporting.audits import write_figures
from dpvision.source import ROOT
from dpvision.training import step as step_module
from dpvision.training.fit import Training
from dpvision.verify.place import Place
from dpvision.verify.records import audit as verified

MODEL = audits.engine_audit([])["networks"][0]["model"]
VIEWS = {"pad": 4, "flip": 0.5, "views": 3, "include_original": True}
RUNS: dict[str, dict[str, Any]] = {
    "plain": {},
    "views": {"augmentation": VIEWS},
    "bfloat16": {"precision": "bfloat16"},
    "divided by C": {"divide_by_clip": True},
    "simulated": {"simulate": 4},
    "secret noise": {"noise": "secret"},
    "averaged, small batches": {"batch": 30, "steps": 80, "averaging": {"decay": 0.99}},
}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def run_of(**recipe: Any) -> dict[str, Any]:
    return engine_run(MODEL, **recipe)


def verdict(subject: Subject, runs: int = 4) -> str:
    """Return the verdict of all designs but the networks."""
    found = designs.coins(subject) + designs.pairs(subject) + designs.canaries(subject, "test", runs, 0.999)
    return judged(found.tests, 0.999)[0]


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "views" else pytest.mark.slow) for name in RUNS])
def test_a_right_engine_is_consistent_with_any_run_s_claim(name, monkeypatch):
    monkeypatch.setattr(os, "urandom", np.random.default_rng(0).bytes)  # once in a thousand times chance alone refutes
    assert verdict(Subject(run_of(**RUNS[name]))) == CONSISTENT


@pytest.mark.slow
def test_examples_held_out_and_the_authors_protocol_are_claimed_as_they_are_done():
    run = run_of(batch=128, epochs=4)
    run["recipe"].pop("steps")
    run["data"] |= {"train": 1300, "validation": 200}
    assert verdict(Subject(run)) == CONSISTENT
    authors = {**run, "protocol": {"name": "paper", "batches": 9, "sigma": 1.3, "steps": 33}}
    authors["data"] = {**run["data"], "validation": 0}
    subject = Subject(authors)
    assert verdict(subject) == CONSISTENT
    assert subject.training.whole == Mechanism(1 / 9, 1.3, 33)


def test_a_neighbour_of_a_run_on_features_is_replayed_without_views():
    run = engine_run({"family": "linear", "slug": "linear", "constant": 0.1}, batch=1000)
    run["data"] |= {"kind": "features", "shape": [24], "mean": [], "std": []}
    found = designs.replay(Subject(run), "linear")
    assert {test.of for test in found.tests} == {"linear, K = 1, float32"}
    assert judged(found.tests, 0.999)[0] == CONSISTENT


def test_a_neighbour_in_a_network_with_dropout_is_replayed_without_its_coins():
    subject = Subject(run_of())
    network = nn.Sequential(nn.Dropout(0.5), subject.training.network)
    found = Bench(subject, network, 1).replayed()
    assert found.longest == pytest.approx(1, abs=1e-4)


def test_a_run_without_a_budget_has_nothing_to_refute():
    with pytest.raises(UserError, match="not private"):
        Subject({**run_of(), "budget": None})


# --- what is wrong shows ---

drawn = step_module.noise_like


def less_noise(tensors: Any, scale: float, generator: torch.Generator) -> Any:
    return drawn(tensors, 0.8 * scale, generator)


def more_noise(tensors: Any, scale: float, generator: torch.Generator) -> Any:
    return drawn(tensors, 1.2 * scale, generator)


@pytest.mark.parametrize(("wrong", "expected"), [(less_noise, REFUTED), (more_noise, LOOSE)])
def test_noise_that_is_not_as_claimed_shows_on_the_side_where_it_is(wrong, expected, monkeypatch):
    monkeypatch.setattr(step_module, "noise_like", wrong)
    assert verdict(Subject(run_of())) == expected


def test_a_neighbour_adds_c_and_one_that_adds_more_is_seen(monkeypatch):
    subject = Subject(run_of())
    assert judged(designs.replay(subject, "narrow").tests, 0.999)[0] == CONSISTENT
    assert judged(designs.tied_and_frozen(subject).tests, 0.999)[0] == CONSISTENT
    right = clipping.clip_factors
    monkeypatch.setattr("dpvision.privacy.fast.clip_factors", lambda norms, clip, dtype: 1.0001 * right(norms, clip, dtype))
    assert judged(designs.replay(subject, "narrow", noisy=False).tests, 0.999)[0] == REFUTED


@pytest.mark.slow
def test_the_choices_that_a_training_was_made_with_are_attacked_too(monkeypatch):
    """Break a way that no untimed training goes: its norms are halved."""
    gram = Convolution.gram

    def half(self: Convolution, *arguments: Any) -> Deferred:
        found = gram(self, *arguments)
        return replace(found, squares=found.squares / 4)

    monkeypatch.setattr(Convolution, "gram", half)
    subject = Subject(run_of())
    layers = {name: "gram" for name, p in subject.training.network.named_parameters() if p.dim() == 4}
    assert judged(designs.replay(subject, "narrow", noisy=False).tests, 0.999)[0] == CONSISTENT
    recorded = {**UNTIMED, "images": 16, "layers": layers}
    assert judged(designs.replay(subject, "narrow", noisy=False, clipping=recorded).tests, 0.999)[0] == REFUTED


@pytest.mark.slow
def test_a_run_on_two_devices_is_audited_on_two():
    one, two = (job.Part("", run_of(gpus=count), partial(designs.replay, name="narrow")).done() for count in (1, 2))
    assert judged(two.tests, 0.999)[0] == CONSISTENT
    assert {test.of for test in two.tests} == {f"{test.of} on 2 devices" for test in one.tests}
    values = [[test.found.value for test in result.tests] for result in (two, one)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)  # the same noise, and sums but for rounding


def test_a_ledger_that_counts_other_steps_than_were_made_is_seen(monkeypatch):
    subject = Subject(run_of())
    monkeypatch.setattr(type(subject.training), "mechanism", property(lambda self: Mechanism(0.64, self.sigma, self.made // 2)))
    tests = designs.canaries(subject, "test", 1, 0.999).tests
    assert {test.looks_at for test in tests if test.verdict(1e-9) == REFUTED} >= {designs.STEPS_MADE}


def test_steps_that_do_nothing_are_seen():
    subject = Subject(run_of())
    made = iter(range(10**6))
    line = designs.Canaries(subject)
    line.step.optimizer.step = lambda: next(made) % 2 and torch.optim.SGD.step(line.step.optimizer)  # type: ignore[method-assign]
    line.place(np.zeros(designs.COUNT, bool))
    seen = line.train()
    assert len(seen.along) == line.training.made // 2


@pytest.mark.parametrize(("factor", "expected"), [(1.1, REFUTED), (0.9, LOOSE)])
def test_coins_show_a_wrong_sampling_rate(factor, expected):
    subject = Subject(run_of())
    subject.training.step.sampler.q *= factor
    tests = designs.coins(subject).tests
    assert {test.looks_at for test in tests if test.verdict(1e-5) == expected} == {"share that joins"}
    assert judged(tests, 0.999)[0] == expected


@pytest.mark.parametrize(("stream", "what"), [("sampling", "samples"), ("noise", "noise")])
def test_coins_show_what_repeats_in_each_epoch(stream, what, monkeypatch):
    end_epoch = Training._end_epoch

    def begin_anew(training: Training) -> None:
        end_epoch(training)
        getattr(training, stream).manual_seed(5)

    run = run_of(batch=100, steps=60)
    assert judged(designs.coins(Subject(run)).tests, 0.999)[0] == CONSISTENT
    monkeypatch.setattr(Training, "_end_epoch", begin_anew)
    (repeated,) = (test for test in designs.coins(Subject(run)).tests if test.looks_at.startswith(f"correlation of {what}"))
    assert repeated.found.value == pytest.approx(1.0)
    assert repeated.verdict(1e-9) == REFUTED


def test_epochs_of_any_length_are_compared_where_both_have_steps():
    rows = np.arange(9)[:, None]
    pairs = designs._pairs_of_epochs(rows, [4, 5, 8, 9])
    assert [[half.ravel().tolist() for half in pair] for pair in pairs[:3]] == [[[0], [4]], [[0, 1, 2], [5, 6, 7]], [[0], [8]]]
    assert len(pairs) == 6
    assert designs._pairs_of_epochs(rows, [9]) == []


def test_coins_and_canaries_are_whole_trainings(monkeypatch):
    """Steps that a Training makes are counted by it; a run that may stop early is attacked over all planned steps."""
    trained, run, made, step = [], Training.run, [], step_module.Step.__call__
    monkeypatch.setattr(Training, "run", lambda training, *ticks: (run(training, *ticks), trained.append(training.made)))
    monkeypatch.setattr(step_module.Step, "__call__", lambda one: made.append(1) or step(one))
    spec = run_of(batch=100, steps=60, stop={"patience": 1, "above": None})
    spec["data"] |= {"validation": 200}
    designs.coins(Subject(spec))
    designs.canaries(Subject(spec), "test", 2, 0.999)
    assert trained == [60] * (4 + 2)
    assert len(made) == sum(trained)


# --- verdicts ---


def a_test(less: float, more: float, exact: bool = False) -> Test:
    return Test("noise", "x", "y", Found(1.0, 1.0, less, more, 10), REFUTED, LOOSE, exact)


def test_the_worst_test_decides_and_chance_is_shared_out_among_those_that_have_any():
    tests = [a_test(0.5, 0.5), a_test(0.4, 1e-3), a_test(1.0, 1.0, exact=True)]
    assert judged(tests, 0.99)[:2] == (LOOSE, pytest.approx(0.005))
    assert judged([*tests, a_test(1e-3, 0.4)], 0.99)[0] == REFUTED
    assert judged([a_test(0.02, 0.5)], 0.99)[0] == CONSISTENT


@pytest.mark.parametrize("value", [1.1, math.inf, math.nan])
def test_a_value_too_large_or_not_finite_refutes(value):
    test = exactly("replay", "x", "y", value, 1.0, (0, 1.0), CONSISTENT, REFUTED)
    assert test.verdict(1e-9) == REFUTED
    assert judged([test], 0.999)[2][0]["value"] == (value if math.isfinite(value) else None)


NULL: dict[str, Callable[[np.random.Generator], Found]] = {
    "variance": lambda random: two_sided.variance(random.normal(size=(20, 784))),
    "tails": lambda random: two_sided.tails(random.normal(size=(20, 784))),
    "mean": lambda random: two_sided.mean(random.normal(3, 2, 784), 3),
    "correlation": lambda random: two_sided.correlation(*random.normal(size=(2, 5000))),
    "largest_correlation": lambda random: two_sided.largest_correlation(random.normal(size=(20, 64))),
    "association": lambda random: two_sided.association(*random.random((2, 8000)) < 0.64),
    "association, seldom": lambda random: two_sided.association(*random.random((2, 200_000)) < 0.003),
    "oddest": lambda random: two_sided.oddest([two_sided.correlation(*random.normal(size=(2, 784))) for _ in range(15)]),
    "rate": lambda random: two_sided.rate(random.binomial(40000, 0.07), 40000, 0.07),
    "dispersion": lambda random: two_sided.dispersion(random.binomial(200, 0.07, 784), 200, 0.07),
    "coarse": lambda random: two_sided.coarse(random.normal(size=4000).astype(np.float32)),
}


@pytest.mark.parametrize("name", NULL)
def test_two_sided_tests_err_as_rarely_as_they_say(name):
    """400 tests at 5 % err 20 times on average, and more than 40 times by chance less than once in 10,000."""
    random = np.random.default_rng(0)
    found = [NULL[name](random) for _ in range(400)]
    assert sum(min(one.less, one.more) < 0.025 for one in found) <= 40


def test_what_is_drawn_in_bfloat16_is_coarse():
    assert two_sided.coarse(torch.randn(2000).bfloat16().float().numpy()).more < 1e-9


@pytest.mark.slow
def test_a_right_engine_is_called_wrong_no_more_often_than_the_confidence_allows():
    """Audit 6: at 80 %, 1.2 at most are expected, and more than 4 come once in 600; at 99.9 %, one comes once in 160."""
    found = verdicts(range(6), (0.8, 0.999))
    assert found[0.8][CONSISTENT] > 1
    assert found[0.999][CONSISTENT] == 6


# --- the record ---


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    spec = audits.engine_audit([])
    spec = {**spec, "networks": spec["networks"][:1], "levels": [8.0], "runs": 3}
    folder = tmp_path_factory.mktemp("results") / "audits" / audits.audit_name(spec)
    return folder, audit(spec, folder, processes=2)


def test_the_record_says_counts_thresholds_confidence_claim_and_seeds(record):
    folder, about = record
    said = json.loads((folder / "audit.json").read_text())
    assert said == json.loads(json.dumps(about))
    assert said["verdict"] == CONSISTENT
    assert {"neighbours", "sampling", "noise", "not_accounted"} == set(said["claim"])
    (bound,) = said["bounds"]
    assert bound["inside"] + bound["out"] == 3 * designs.COUNT
    assert {"false_negatives", "false_positives", "threshold", "sigma", "q", "steps", "delta", "seed"} <= set(bound)
    assert 0 < bound["lower_bound"] < bound["lower_bound_95"] < bound["claimed"] < bound["claimed_rdp"]
    with open(folder / "tests.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(said["tests"])
    assert listing(about, folder).startswith("consistent at 99.9%")


def test_verify_computes_bounds_from_counts_and_the_verdict_from_tests(record):
    folder, about = record
    results = folder.parents[1]
    place, key = Place(results, results, Plan("demo", str(results))), ("audit", folder.name)
    assert list(verified(place, key)) == []
    forged = {**about, "verdict": REFUTED, "bounds": [{**about["bounds"][0], "lower_bound": 0.1}]}
    write_json(folder / "audit.json", forged)
    try:
        assert [finding.what.split(" of ")[0] for finding in verified(place, key)] == ["verdict", "lower bound"]
    finally:
        write_json(folder / "audit.json", about)


def test_figures_lie_beside_the_numbers_that_they_show(record, tmp_path):
    folder, about = record
    write_figures(folder, tmp_path)
    for name in ("audit_roc", "audit_steps"):
        assert all((tmp_path / f"{name}.{kind}").stat().st_size for kind in ("svg", "pdf", "png"))
    with open(tmp_path / "audit_steps.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["lower_bound"]) == pytest.approx(about["bounds"][0]["lower_bound"])
    assert [float(row["claimed"]) for row in rows] == sorted(float(row["claimed"]) for row in rows)


def test_each_part_is_told_as_it_is_done(caplog):
    with caplog.at_level(logging.INFO):
        job._done([job.Part(name, run_of(), lambda _: designs.Result([])) for name in ("coins of x", "replay of y")], 1)
    assert [line.partition("  ")[2] for line in caplog.messages] == ["1 of 2: coins of x", "2 of 2: replay of y"]


def test_a_part_that_fails_is_named():
    with pytest.raises(UserError, match="^replay of nothing: this part of the audit failed"):
        job._done([job.Part("replay of nothing", {}, designs.coins)], 2)


# --- the plan ---


def test_every_plan_has_one_audit_of_the_engine_with_each_family_s_smallest_network(run_spec):
    spec = audits.engine_audit([run_spec({"budget": None}), run_spec()])
    others = {"backbone", "linear"}  # of public weights, and of features: their runs are audited by name
    others |= {"lenet"}  # is attacked, and not trained
    assert {one["model"]["family"] for one in spec["networks"]} == set(FAMILIES) - others
    assert spec["run"]["recipe"] == run_spec()["recipe"]
    assert audits.audit_name(spec).startswith("engine-")
    every = audits.engine_audit([], every_network=True)["networks"]
    assert len(every) > len(spec["networks"])
    assert {one["model"]["family"] for one in every} == {one["model"]["family"] for one in spec["networks"]}
    assert "nfnet_f3" not in [one["name"] for one in every]  # 255 million parameters are no laptop's


def test_the_engine_is_audited_with_a_recipe_of_several_devices_on_one(run_spec):
    assert audits.engine_audit([run_spec({"recipe.gpus": 4})])["run"] == audits.engine_audit([run_spec()])["run"]


def test_a_run_whose_values_a_search_has_still_to_find_cannot_be_audited(run_spec):
    with pytest.raises(UserError, match=r"recipe\.batch is left to a search"):
        audits.run_audit(run_spec({"recipe.batch": {"study": "some-study"}}))


def test_a_run_that_is_trained_is_audited_by_its_choices_and_under_another_name(run_spec):
    planned, trained = audits.run_audit(run_spec()), audits.run_audit(run_spec(), UNTIMED)
    assert "clipping" not in planned
    assert trained["clipping"] == UNTIMED
    assert audits.audit_name(planned) != audits.audit_name(trained)


def test_each_part_of_an_audit_is_told_on_the_terminal(monkeypatch, capsys):
    def audited(spec, folder, processes):
        job.log.info("0:01  1 of 1: replay")
        return {"verdict": "consistent", "confidence": 0.999, "tests": [], "bounds": []}

    monkeypatch.setattr(job, "audit", audited)
    monkeypatch.setattr(command_line, "_here", lambda: ROOT)
    for name, value in (("handlers", [logging.StreamHandler()]), ("level", logging.WARNING)):
        monkeypatch.setattr(logging.getLogger(), name, value)  # as a package leaves it that was imported
    command_line._audit(None, False, "demo")
    assert "1 of 1: replay" in capsys.readouterr().err
