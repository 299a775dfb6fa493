"""The whole analysis, against Hessians that are known or small enough to write down."""

import copy
import json
import math
import warnings

import numpy as np
import pytest
import torch
from pyhessian import hessian as PyHessian

from dpvision.curvature import hessian as module
from dpvision.curvature.hessian import analyse, largest_eigenvalue, trace_samples
from dpvision.curvature.product import Hessian, flat_weights
from dpvision.curvature.spectrum import summary
from dpvision.errors import UserError

SHORT = {"iterations": 6, "tolerance": 1e-3, "lanczos_steps": 8, "seed": 0}


def whole(iterations: int = 200, seed: int = 0, tolerance: float = 1e-3) -> dict[str, float]:
    """Return the options for as many Lanczos steps as there are dimensions."""
    return {"iterations": iterations, "tolerance": tolerance, "lanczos_steps": 10_000, "seed": seed}


@pytest.fixture
def trained(net, cut):
    """Train for a few steps, so that the Hessian has a large positive and a small negative side."""
    batches = cut(10, 14)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(20):
        for images, labels in batches:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(images), labels).backward()
            optimiser.step()
    return net, batches


def test_a_known_spectrum_is_found(quadratic):
    eigenvalues = torch.tensor([-3.0, -1.0, 0.0, 0.5, 2.0, 12.0], dtype=torch.float64)
    model, batches = quadratic(torch.diag(eigenvalues))
    numbers = analyse(model, batches, **whole())
    assert numbers["examples"] == 4 and numbers["parameters"] == numbers["lanczos_steps"] == 6
    assert numbers["ritz_values"] == pytest.approx(eigenvalues.tolist(), abs=1e-12)
    assert sum(numbers["ritz_weights"]) == pytest.approx(1)
    assert numbers["ritz_negative"] == 2 and numbers["ritz_zero"] == 1
    assert numbers["lambda_max_lanczos"] == pytest.approx(12) and numbers["lambda_min_lanczos"] == pytest.approx(-3)
    assert numbers["lambda_max_power"] == pytest.approx(12, rel=1e-2)
    assert numbers["condition_largest_to_smallest_magnitude"] == pytest.approx(24)
    assert numbers["condition_smallest_positive_to_largest"] == pytest.approx(1 / 24)
    assert numbers["condition_most_negative_to_largest"] == pytest.approx(1 / 4)


def test_random_signs_give_the_trace_of_a_diagonal_hessian_exactly(quadratic):
    model, batches = quadratic(torch.diag(torch.tensor([-3.0, 1.0, 5.0, 7.25], dtype=torch.float64)))
    numbers = analyse(model, batches, **whole(iterations=20))
    assert numbers["trace"] == pytest.approx(10.25, abs=1e-12) and numbers["trace_samples"] == 2
    assert numbers["trace_full"] == pytest.approx(10.25, abs=1e-12) and numbers["trace_full_samples"] == 20
    assert numbers["trace_full_standard_error"] == pytest.approx(0, abs=1e-12)


def test_the_largest_magnitude_of_power_iteration_keeps_its_sign(quadratic):
    model, batches = quadratic(torch.diag(torch.tensor([-9.0, 1.0, 3.0], dtype=torch.float64)))
    numbers = analyse(model, batches, **whole(tolerance=1e-9))
    assert numbers["lambda_max_power"] == pytest.approx(-9, rel=1e-5)
    assert numbers["lambda_max_lanczos"] == pytest.approx(3)


def test_the_analysis_of_a_network_agrees_with_its_dense_hessian(trained, dense):
    matrix = dense(*trained)
    eigenvalues = torch.linalg.eigvalsh(matrix).numpy()
    numbers = analyse(*trained, **whole(tolerance=1e-6))
    expected = summary(eigenvalues, np.full(len(eigenvalues), 1 / len(eigenvalues)), np.finfo(np.float64).eps)
    assert numbers["ritz_negative"] == expected["ritz_negative"] > 50
    assert numbers["lambda_max_lanczos"] == pytest.approx(eigenvalues[-1], rel=1e-10)
    assert numbers["lambda_min_lanczos"] == pytest.approx(eigenvalues[0], rel=1e-10)
    assert numbers["lambda_max_power"] == pytest.approx(eigenvalues[-1], rel=1e-3)
    assert numbers["condition_most_negative_to_largest"] == pytest.approx(-eigenvalues[0] / eigenvalues[-1])
    assert abs(numbers["trace_full"] - eigenvalues.sum()) < 4 * numbers["trace_full_standard_error"]


def test_the_standard_error_is_that_of_hutchinsons_estimate(trained, dense):
    """A sample's variance is twice the sum of the squares off the diagonal."""
    matrix = dense(*trained)
    numbers = analyse(*trained, **{**SHORT, "iterations": 200})
    beside = float((matrix**2).sum() - (matrix.diagonal() ** 2).sum())
    assert numbers["trace_full_standard_error"] == pytest.approx(math.sqrt(2 * beside / 200), rel=0.2)


def test_the_standard_error_is_not_that_of_the_samples_as_a_population(quadratic):
    """Every sample is 2 or -2 here, so that the mean decides their variance."""
    model, batches = quadratic(torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64))
    numbers = analyse(model, batches, **whole(iterations=10))
    expected = math.sqrt((4 - numbers["trace_full"] ** 2) / 9)
    assert numbers["trace_full_standard_error"] == pytest.approx(expected)


def test_the_full_trace_goes_on_with_other_samples_where_pyhessian_stopped(trained):
    settings = {**SHORT, "tolerance": 0.5}
    first = analyse(*trained, **{**settings, "iterations": 30})["trace_samples"]
    assert 2 <= first < 30
    capped = analyse(*trained, **{**settings, "iterations": first})
    assert capped["trace_full"] == capped["trace"]
    twice = analyse(*trained, **{**settings, "iterations": 2 * first})
    assert (twice["trace"], twice["trace_full_samples"]) == (capped["trace"], 2 * first)
    others = 2 * twice["trace_full"] - twice["trace"]  # their mean
    assert others != pytest.approx(twice["trace"])
    assert others == pytest.approx(twice["trace"], rel=1)


def test_pyhessian_takes_a_negative_trace_for_converged_and_the_full_trace_does_not(quadratic):
    random = torch.randn(30, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    matrix = random + random.T - 30 * torch.eye(30, dtype=torch.float64)
    numbers = analyse(*quadratic(matrix), **whole(iterations=100))
    assert numbers["trace_samples"] == 2
    assert abs(numbers["trace_full"] - matrix.trace()) < 4 * numbers["trace_full_standard_error"]


def test_iterations_are_counted_up_to_the_cap(trained):
    numbers = analyse(*trained, **{**SHORT, "tolerance": 1e-300})
    assert (numbers["power_iterations"], numbers["trace_samples"], numbers["trace_full_samples"]) == (6, 6, 6)
    assert numbers["trace"] == numbers["trace_full"]
    loose = analyse(*trained, **{**SHORT, "tolerance": 1e3})
    assert loose["power_iterations"] == 2
    single = analyse(*trained, **{**SHORT, "iterations": 1})
    assert single["trace_samples"] == 1 and single["trace_standard_error"] is None


@pytest.mark.parametrize("sizes", [(24,), (3, 9, 12)])
def test_the_cut_into_physical_batches_does_not_matter(trained, cut, sizes):
    model, batches = trained
    one, other = analyse(model, batches, **SHORT), analyse(model, cut(*sizes), **SHORT)
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert other[key] == pytest.approx(value, rel=1e-9, abs=1e-12), key


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(trained):
    torch.manual_seed(5)
    one = analyse(*trained, **SHORT)
    torch.manual_seed(6)
    assert analyse(*trained, **SHORT) == one
    other = analyse(*trained, **{**SHORT, "seed": 1})
    assert all(one[key] != other[key] for key in ("lambda_max_power", "trace", "trace_full", "ritz_values"))


def test_no_stage_depends_on_how_long_another_took(trained):
    endless = {**SHORT, "tolerance": 1e-300}
    one, other = analyse(*trained, **endless), analyse(*trained, **{**endless, "iterations": 9})
    assert one["ritz_values"] == other["ritz_values"]
    assert one["lambda_max_power"] != other["lambda_max_power"]


def test_the_callers_random_state_and_model_are_left_as_they_were(trained):
    model, batches = trained
    model.train()
    model[1].eval()
    for parameter in model.parameters():
        parameter.grad = None
    model[0].weight.grad = kept = torch.ones_like(model[0].weight)
    model[3].bias.requires_grad = False
    before, state = torch.get_rng_state(), copy.deepcopy(model)
    analyse(model, batches, **SHORT)
    assert torch.equal(before, torch.get_rng_state())
    for now, then in zip(model.parameters(), state.parameters(), strict=True):
        assert torch.equal(now, then) and now.requires_grad == then.requires_grad
        assert now is model[0].weight or now.grad is None
    assert model[0].weight.grad is kept and (kept == 1).all()
    assert [module.training for module in model.modules()] == [module.training for module in state.modules()]


def test_pyhessian_finds_with_our_products_what_it_finds_with_its_own(trained):
    model, batches = trained
    settings, count = (50, 1e-6, 3), 5
    hessian = Hessian(model, batches, math.inf)
    value = largest_eigenvalue(hessian, *settings, lambda *_: None)["lambda_max_power"]
    samples = trace_samples(hessian, count, 1e-300, 3, lambda *_: None)
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Using backward.. with create_graph=True")
        theirs = PyHessian(copy.deepcopy(model), torch.nn.CrossEntropyLoss(), dataloader=batches, cuda=False)
        torch.manual_seed(3)
        assert theirs.eigenvalues(maxIter=settings[0], tol=settings[1])[0] == pytest.approx([value], rel=1e-10)
        torch.manual_seed(3)
        assert theirs.trace(maxIter=count, tol=1e-300) == pytest.approx(samples, rel=1e-10)


def test_kept_graphs_make_no_difference_to_any_number(trained):
    one, other = analyse(*trained, **SHORT), analyse(*trained, **SHORT, memory_mb=math.inf)
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert other[key] == pytest.approx(value, rel=1e-10, abs=1e-12), key


def test_room_for_the_vectors_of_lanczos_is_left(trained, monkeypatch):
    told = []
    monkeypatch.setattr(module, "Hessian", lambda model, batches, memory_mb: told.append(memory_mb) or Hessian(model, batches))
    weights = len(flat_weights(trained[0]))
    for steps in (8, 10_000):  # there are no more vectors than dimensions
        analyse(*trained, **{**SHORT, "lanczos_steps": steps}, memory_mb=100)
    assert told == pytest.approx([100 - vectors * weights * 8 / 2**20 for vectors in (8, weights)])


def test_the_numbers_are_plain_enough_for_json(trained):
    numbers = analyse(*trained, **SHORT)
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert {type(value) for value in numbers.values()} <= {int, float, list, type(None)}
    assert {type(value) for value in numbers["ritz_values"] + numbers["ritz_weights"]} == {float}


def test_single_precision_agrees_with_double(trained):
    model, batches = trained
    double = analyse(model, batches, **SHORT)
    single = analyse(copy.deepcopy(model).float(), [(images.float(), labels) for images, labels in batches], **SHORT)
    for key in ("lambda_max_power", "lambda_max_lanczos", "lambda_min_lanczos", "trace_full"):
        assert single[key] == pytest.approx(double[key], rel=1e-3), key


def test_each_stage_is_told_until_its_end(trained):
    told = []
    numbers = analyse(*trained, **{**SHORT, "tolerance": 0.9}, progress=lambda *said: told.append(said))
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == ["power", "trace", "trace_full", "lanczos"]
    last = {stage: (done, total) for stage, done, total in told}
    assert last["power"] == (numbers["power_iterations"], 6)
    assert last["trace"] == (numbers["trace_samples"], 6)
    rest = (6 - numbers["trace_samples"]) * 2  # of two batches
    assert last["trace_full"] == (rest, rest)
    assert last["lanczos"] == (8, 8)


def test_weights_that_diverged_are_an_error_that_says_so(trained):
    model, batches = trained
    with torch.no_grad():
        model[0].weight[0, 0, 0, 0] = math.nan
    with pytest.raises(UserError, match="diverged"):
        analyse(model, batches, **SHORT)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_model_on_a_gpu_is_analysed_there(trained):
    model, batches = trained
    here = analyse(model, batches, **SHORT)
    there = analyse(model.cuda(), batches, **SHORT)
    for key in ("lambda_max_power", "lambda_max_lanczos", "lambda_min_lanczos"):
        assert there[key] == pytest.approx(here[key], rel=1e-6), key
