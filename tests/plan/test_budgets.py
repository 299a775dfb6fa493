"""A budget is ε, σ and how long to train: two are given, the third is solved, and what is solved is in no spec."""

import json

import pytest

from dpvision.data.prepared import data_part
from dpvision.files import read_json
from dpvision.plan import cost, specs
from dpvision.plan.renyi import steps_within
from dpvision.privacy.accounting import Mechanism, most_steps
from dpvision.privacy.mechanism import mechanism_of, solved
from dpvision.training.run import train

PAPER = "papers/scalenorm/paper.yaml"
EPSILONS = "    epsilons: [2.89, 7.42, 9.88]\n"
LENGTH = "    epochs: 50\n"
AT = "config/papers/scalenorm/paper.yaml"
SETTINGS = [(8.0, 1e-5, 4096 / 45000, 3.0), (1.0, 1e-5, 4096 / 50000, 10.0), (3.0, 1e-4, 0.01, 0.9), (0.5, 1e-6, 1.0, 300.0)]
SETTINGS += [(40.0, 1e-5, 0.01, 0.3), (40.0, 1e-5, 0.01, 0.4), (24.0, 1e-5, 0.08, 0.4)]  # little noise: orders between 1 and 3


@pytest.fixture
def configuration(configuration):
    """Return the tests' paper without numbers in print, claims, and the search, whose trials have an ε of their own."""
    (configuration.root / "config/papers/scalenorm/published.yaml").unlink()
    text = (configuration.root / "config" / PAPER).read_text()
    for old in ("groups: {search: groups}", "groups: {search: groups}"):
        text = text.replace(old, "groups: 32")
    text = text.replace("  groups:\n    kind: search", "  trials:\n    kind: curves")
    text = text.replace("    epsilons: [7.42] # left open\n", "").replace("    epsilons: [7.42]\n", "")
    text = text.replace("  claims:\n    kind: claims\n    title: What the paper says, and whether it holds\n", "")
    (configuration.root / "config" / PAPER).write_text(text)
    return configuration


@pytest.mark.parametrize(("epsilon", "delta", "q", "sigma"), SETTINGS)
def test_the_most_steps_fit_and_one_more_does_not(epsilon, delta, q, sigma):
    steps = most_steps(epsilon, delta, q, sigma)
    assert Mechanism(q, sigma, steps).epsilon(delta) <= epsilon < Mechanism(q, sigma, steps + 1).epsilon(delta)


@pytest.mark.parametrize(("epsilon", "delta", "q", "sigma"), SETTINGS)
def test_the_plan_s_estimate_is_near_the_solution_and_spends_no_more(epsilon, delta, q, sigma):
    estimate, steps = steps_within(epsilon, delta, q, sigma), most_steps(epsilon, delta, q, sigma)
    assert 0.95 * steps <= estimate <= steps
    assert Mechanism(q, sigma, estimate).epsilon(delta) > epsilon / 1.03


def test_steps_of_table_13_of_de_et_al_are_the_most_that_their_sigma_allows():
    assert most_steps(8.0, 1e-5, 4096 / 45000, 3.0) == pytest.approx(2468, rel=0.01)


def test_what_is_solved_is_in_no_spec_and_no_name(configuration):
    configuration.change(PAPER, EPSILONS, "    budget: {epsilon: 8.0, sigma: 3.0, steps: solve}\n")
    planned = configuration.change(PAPER, LENGTH, "").plan()
    for name, run in planned.runs.items():
        assert "-eps8-sigma3-" in name and not {"steps", "epochs"} & run["recipe"].keys()
        assert run["budget"] == {"epsilon": 8.0, "sigma": 3.0, "delta": 1e-5, "accountant": "rdp"}
        filled = solved(run)
        assert filled["recipe"]["steps"] == mechanism_of(run).steps == mechanism_of(filled).steps
        assert specs.as_planned(filled) == run
        assert 0 < cost.training(run, 256).steps <= filled["recipe"]["steps"]
        assert planned.data_of(("train", name))


def test_without_an_epsilon_what_sigma_and_the_length_spend_is_the_level(configuration):
    planned = configuration.change(PAPER, EPSILONS, "    budget: {sigma: 2.0}\n").plan()
    name, run = next(iter(planned.runs.items()))
    assert "-sigma2-" in name and "epsilon" not in run["budget"]
    assert mechanism_of(run) == Mechanism(specs.sampling_rate(run), 2.0, specs.step_count(run))
    assert {cell["at"]["epsilon"] for cell in planned.artifacts["table1"]["cells"]} == {"solve"}


def test_points_give_budgets_that_belong_together(configuration):
    points = "[{budget.epsilon: 1.0, budget.sigma: 10.0}, {budget.epsilon: 8.0, budget.sigma: 3.0}]"
    text = f"    budget: {{steps: solve}}\n    points: {points}\n"
    planned = configuration.change(PAPER, EPSILONS, text).change(PAPER, LENGTH, "").plan()
    cells = planned.artifacts["table1"]["cells"]
    assert {(cell["at"]["epsilon"], cell["at"]["sigma"]) for cell in cells} == {(1.0, 10.0), (8.0, 3.0)}


@pytest.mark.parametrize(
    ("budget", "complaint"),
    [
        ("budget: {epsilon: 8.0, sigma: 3.0}", "cells.cifar10: budget: give ε and `steps: solve`, or neither"),
        (
            "budget: {epsilon: 8.0, steps: solve}",
            "cells.cifar10: budget.sigma is missing; where σ is to be solved",
        ),
        ("budget: {sigma: 3.0, steps: solve}", "cells.cifar10: budget: give ε and `steps: solve`, or neither"),
        ("budget: {epsilon: 8.0, sigma: 3.0, steps: 100}", "cells.cifar10.budget.steps = 100: must be "),
        (
            "budget: {epsilon: 8.0, sigma: 3.0, steps: solve}",
            "recipes.resnet9.epochs = 50: must be left out: the budget",
        ),
        ("epsilons: [8.0]\n    budget: {sigma: 3.0}", "cells.cifar10: needs either epsilons or a budget, and has both"),
        ("delta: 1.0e-6", "cells.cifar10: needs either epsilons or a budget"),
    ],
)
def test_a_budget_that_does_not_leave_one_to_solve_is_refused(configuration, budget, complaint):
    text = (configuration.root / "config" / PAPER).read_text().replace("    delta: 1.0e-5\n", "")
    (configuration.root / "config" / PAPER).write_text(text.replace(EPSILONS, f"    {budget}\n"))
    found = configuration.complaints()
    assert any(line.startswith(f"{AT}: {complaint}") for line in found), found


def test_epsilons_beside_a_varied_budget_are_refused(configuration):
    configuration.change(PAPER, EPSILONS, f"{EPSILONS}    vary: {{budget.sigma: [1.0, 2.0]}}\n")
    found = configuration.complaints()
    assert found and all("it has epsilons, from which σ follows, and budget.sigma; write" in line for line in found)


def test_an_artifact_that_a_scale_leaves_out_and_no_paper_has_is_refused(configuration):
    configuration.change("papers/scalenorm/demo.yaml", "activations: {examples: 360}", "artifacts: {table33: null}")
    (line,) = configuration.complaints(scale="demo")
    assert 'there is no artifact "table33". Did you mean "table' in line


def test_a_budget_too_small_for_one_step_is_refused(configuration):
    configuration.change(PAPER, EPSILONS, "    budget: {epsilon: 0.01, sigma: 0.5, steps: solve}\n")
    (complaint,) = configuration.change(PAPER, LENGTH, "").complaints()
    assert complaint.startswith(f"{AT}: cells.cifar10: not one step fits ε = 0.01")


@pytest.mark.slow
def test_a_run_makes_the_solved_steps_and_its_record_says_so(digits, run_spec, tmp_path):
    spec = run_spec(
        {"recipe.schedule": {"name": "constant"}, "budget": {"epsilon": 4.0, "sigma": 3.0, "delta": 1e-4, "accountant": "rdp"}}
    )
    spec = {**spec, "recipe": {key: value for key, value in spec["recipe"].items() if key != "epochs"}}
    spec = {**spec, "data": {**spec["data"], **data_part(spec)}}
    train(spec, digits, [], tmp_path / "run", tmp_path / "checkpoint", tmp_path / "choices", 512, 1000, 0.0)
    steps, ledger = mechanism_of(spec).steps, read_json(tmp_path / "run/ledger.json")
    assert ledger["steps"] == {"planned": steps, "made": steps}
    assert 3.9 < ledger["epsilon"]["rdp"] <= 4.0 == ledger["epsilon"]["target"]
    assert specs.as_planned(json.loads((tmp_path / "run/spec.json").read_text())) == spec
