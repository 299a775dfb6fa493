"""A step is (clipped sum + noise) / expected batch, with the noise that the accountant was told of, once."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from dpvision.data.augmentation import Views
from dpvision.data.sampling import PoissonSampler
from dpvision.privacy.clipping import Gradients
from dpvision.privacy.fast import ClippedSum
from dpvision.secret import Secret
from dpvision.training import step as step_module
from dpvision.training.examples import Examples, pieces
from dpvision.training.step import Step

COUNT, BATCH, CLIP, SIGMA = 60, 20, 0.5, 1.7
TINY = 1e-13  # noise that no comparison sees


class InFloat64(Examples):
    def batch(self, indices: Tensor | slice) -> tuple[Tensor, Tensor]:
        images, labels = super().batch(indices)
        return images.double(), labels


class Bench:
    """A network on made-up images whose steps can be watched: with SGD at rate 1, the update is the gradient."""

    def __init__(
        self,
        network: nn.Module,
        physical: int = 7,
        sigma: float | None = SIGMA,
        batch: int = BATCH,
        q: float | None = None,
        views: int | None = None,
    ):
        random = np.random.default_rng(0)
        images, labels = random.integers(0, 256, (COUNT, 1, 8, 8), dtype=np.uint8), random.integers(0, 3, COUNT)
        self.examples = InFloat64(images, labels, [0.5], [0.3], torch.device("cpu"))
        self.plain, self.network = network, copy.deepcopy(network)
        self.optimizer: torch.optim.Optimizer = torch.optim.SGD(self.network.parameters(), lr=1.0)
        self.sampler = PoissonSampler(COUNT, q or batch / COUNT, torch.Generator().manual_seed(1))
        self.samples: list[Tensor] = []
        draw = self.sampler.sample
        self.sampler.sample = lambda: self.samples.append(draw()) or self.samples[-1]  # type: ignore[func-returns-value, method-assign]
        noise = torch.Generator().manual_seed(2)
        augmented = Views(2, 0.5, views, False, torch.Generator().manual_seed(3)) if views else None
        self.step = Step(
            self.network, self.optimizer, self.examples, self.sampler, batch, physical, CLIP, sigma, noise, augmented
        )

    def weights(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.network.parameters()]

    def update(self) -> list[Tensor]:
        """Return what a step takes from each parameter, times the expected batch."""
        before = self.weights()
        self.step()
        return [(a - b) * self.step.expected_batch for a, b in zip(before, self.weights(), strict=True)]

    def clipped_sum(self, one_at_a_time: Callable) -> Tensor:
        """Compute the clipped sum of the next step's gradients, were it to draw the last sample again."""
        self.plain.load_state_dict(self.network.state_dict())
        return one_at_a_time(self.plain, *self.examples.batch(self.samples[-1]), CLIP)[0]


@pytest.fixture(autouse=True)
def one_stream_of_random_numbers():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def vector(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


# --- properties of a step ---


def update_is_the_clipped_sum_over_the_expected_batch(network: nn.Module, one_at_a_time: Callable) -> None:
    for physical in (3, 10**9):
        bench = Bench(network, physical, sigma=TINY)
        for _ in range(3):
            before = copy.deepcopy(bench.network.state_dict())
            update = vector(bench.update())
            after, _ = bench.network.state_dict(), bench.network.load_state_dict(before)
            torch.testing.assert_close(update, bench.clipped_sum(one_at_a_time), rtol=0, atol=1e-9)
            bench.network.load_state_dict(after)
        assert {len(sample) for sample in bench.samples} != {BATCH}


def noise_is_gaussian_of_sigma_times_c(network: nn.Module, one_at_a_time: Callable) -> None:
    """Check each parameter's variance by its chi-square interval, and all together by Kolmogorov and Smirnov."""
    for physical in (3, 10**9):
        noise = noise_of_steps(network, 12, physical)
        for draws in zip(*noise, strict=True):
            squares = (torch.stack(draws) / (SIGMA * CLIP)).square()
            assert 1e-6 < stats.chi2.sf(squares.sum().item(), squares.numel()) < 1 - 1e-6
        together = torch.cat([vector(step) for step in noise]) / (SIGMA * CLIP)
        assert stats.kstest(together.numpy(), "norm").pvalue > 1e-4


def noise_is_drawn_anew_for_every_step_and_parameter(network: nn.Module, one_at_a_time: Callable) -> None:
    noise = noise_of_steps(network, 6, 7)
    steps = torch.stack([vector(step) for step in noise])
    assert largest_correlation(steps) < 5
    large = [[tensor.flatten()[:256] for tensor in step if tensor.numel() >= 256] for step in noise]
    parameters = torch.stack([torch.cat(draws) for draws in zip(*large, strict=True)])
    assert len(parameters) > 3
    assert largest_correlation(parameters) < 5


def noise_of_steps(network: nn.Module, count: int, physical: int) -> list[list[Tensor]]:
    """Return each parameter's noise at each step: the update less that of the same step with next to no noise."""
    noisy, quiet = Bench(network, physical), Bench(network, physical, sigma=TINY)
    noise = []
    for _ in range(count):
        quiet.network.load_state_dict(noisy.network.state_dict())
        noise.append([a - b for a, b in zip(noisy.update(), quiet.update(), strict=True)])
    return noise


def largest_correlation(rows: Tensor) -> float:
    """Return the largest correlation of two rows, in standard deviations of what independent rows have."""
    off_diagonal = torch.corrcoef(rows) - torch.eye(len(rows), dtype=rows.dtype)
    return off_diagonal.abs().max().item() * rows.shape[1] ** 0.5


CHECKS = [
    update_is_the_clipped_sum_over_the_expected_batch,
    noise_is_gaussian_of_sigma_times_c,
    noise_is_drawn_anew_for_every_step_and_parameter,
]
SUM, SCALE, ANEW = CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_step(check, narrow, one_at_a_time):
    check(narrow(), one_at_a_time)


# --- divided by C ---


def test_dividing_gradients_by_c_equals_dividing_the_rate_by_c(narrow):
    """C and the rate change together or not at all: De et al. 2022, equation 3."""
    network = narrow()
    plain, divided = Bench(network), Bench(network)
    divided.step.divide_by_clip = True
    plain.optimizer.param_groups[0]["lr"] = 0.8 / CLIP
    divided.optimizer.param_groups[0]["lr"] = 0.8
    for _ in range(3):
        plain.step()
        divided.step()
    assert divided.step.gradients.sensitivity == plain.step.gradients.sensitivity == CLIP
    torch.testing.assert_close(vector(divided.weights()), vector(plain.weights()), rtol=0, atol=1e-10)
    assert (vector(divided.weights()) - vector(list(network.parameters()))).abs().max() > 1e-3


def test_without_a_budget_nothing_is_clipped_or_divided_by_c(narrow):
    network = narrow()
    plain, divided = Bench(network, sigma=None), Bench(network, sigma=None)
    divided.step.divide_by_clip = True
    assert torch.equal(vector(divided.update()), vector(plain.update()))


# --- the same properties notice what could go wrong ---


def noise_scaled_by(factor: float) -> Callable:
    return lambda tensors, scale, generator: step_noise(tensors, factor * scale, generator)


def uniform_noise(tensors: list[Tensor], scale: float, generator: torch.Generator) -> list[Tensor]:
    return [12**0.5 * scale * (torch.rand(t.shape, generator=generator, dtype=t.dtype) - 0.5) for t in tensors]


def noise_of_the_first_step_again(tensors: list[Tensor], scale: float, generator: torch.Generator) -> list[Tensor]:
    return step_noise(tensors, scale, torch.Generator().manual_seed(3))


def the_same_noise_for_each_parameter(tensors: list[Tensor], scale: float, generator: torch.Generator) -> list[Tensor]:
    seed = generator.initial_seed()
    generator.manual_seed(seed + 1)
    return [step_noise([tensor], scale, torch.Generator().manual_seed(seed))[0] for tensor in tensors]


def noise_in_every_physical_batch(self: ClippedSum, images: Tensor, labels: Tensor) -> Any:
    found = fast_call(self, images, labels)
    noise = step_noise(found.sums, SIGMA * CLIP, torch.Generator().manual_seed(int(images.sum() * 1e6)))
    return Gradients([total + more for total, more in zip(found.sums, noise, strict=True)], found.losses, found.norms)


def divided_by_the_actual_batch(self: Step) -> Any:
    sample = self.sampler.sample()
    self.sampler.sample = lambda: sample  # type: ignore[method-assign]
    declared, self.expected_batch = self.expected_batch, len(sample)
    try:
        return step_call(self)
    finally:
        self.expected_batch = declared
        del self.sampler.sample


step_noise, fast_call, step_call = step_module.noise_like, ClippedSum.__call__, Step.__call__

BUGS: list[tuple[str, Any, str, Callable, list[Callable]]] = [
    ("half the noise", step_module, "noise_like", noise_scaled_by(0.5), [SCALE]),
    ("no noise", step_module, "noise_like", noise_scaled_by(0), [SCALE]),
    ("noise of sigma, without C", step_module, "noise_like", noise_scaled_by(1 / CLIP), [SCALE]),
    ("noise of another kind", step_module, "noise_like", uniform_noise, [SCALE]),
    ("one noise for all steps", step_module, "noise_like", noise_of_the_first_step_again, [ANEW]),
    ("one noise for all parameters", step_module, "noise_like", the_same_noise_for_each_parameter, [ANEW]),
    ("noise in every physical batch", ClippedSum, "__call__", noise_in_every_physical_batch, [SUM]),
    ("divided by the actual batch", Step, "__call__", divided_by_the_actual_batch, [SUM]),
]


@pytest.mark.parametrize(
    ("owner", "name", "bug", "check"),
    [pytest.param(*bug[1:4], check, id=f"{bug[0]}: {check.__name__}") for bug in BUGS for check in bug[4]],
)
def test_a_planted_bug_is_noticed(owner, name, bug, check, narrow, one_at_a_time, monkeypatch):
    monkeypatch.setattr(owner, name, bug)
    with pytest.raises(AssertionError):
        check(narrow(), one_at_a_time)


# --- the rest of what a step promises ---


@pytest.mark.parametrize("views", [None, 3])
@pytest.mark.parametrize("physical", [1, 7, 10**9])
def test_weights_do_not_depend_on_the_physical_batch(physical, views, narrow):
    """The optimiser is the recipes', which divides by the gradient's size and so would magnify a difference."""
    network, weights = narrow(), []
    for size in (physical, 64):
        bench = Bench(network, size, views=views)
        bench.step.optimizer = torch.optim.NAdam(bench.network.parameters(), lr=1e-3)
        for _ in range(5):
            bench.step()
        weights.append(vector(bench.weights()))
    torch.testing.assert_close(*weights, rtol=0, atol=1e-9)


@pytest.mark.parametrize("views", [None, 3])
def test_weights_without_privacy_do_not_depend_on_the_physical_batch_even_under_batch_normalisation(views, narrow):
    network, outcomes = narrow(norm="batch"), []
    for physical in (3, 10**9):
        bench = Bench(network, physical, sigma=None, views=views)
        for _ in range(3):
            bench.step()
        outcomes.append(vector([value.double() for value in bench.network.state_dict().values()]))
    torch.testing.assert_close(*outcomes, rtol=0, atol=1e-9)


@pytest.mark.parametrize("physical", [1, 7, 10**9])
def test_noise_is_drawn_once_a_step(physical, narrow, monkeypatch):
    scales: list[float] = []
    monkeypatch.setattr(step_module, "noise_like", lambda *given: scales.append(given[1]) or step_noise(*given))
    bench = Bench(narrow(), physical)
    for made in range(1, 6):
        bench.step()
        assert scales == [SIGMA * CLIP] * made


@pytest.mark.parametrize("sigma", [TINY, None])
def test_the_update_is_the_sum_of_clipped_mean_gradients_over_views_drawn_for_the_whole_sample(sigma, narrow):
    """Each view's gradient is computed by itself; their mean over an example's views is clipped."""
    bench = Bench(narrow(), sigma=sigma, views=4)
    twin = Views(2, 0.5, 4, False, torch.Generator().manual_seed(3))
    parameters = list(bench.plain.parameters())
    for _ in range(2):
        bench.plain.load_state_dict(bench.network.state_dict())
        update = vector(bench.update())
        images, labels = bench.examples.batch(bench.samples[-1])
        expected, several = torch.zeros_like(update), twin.make(images, twin.draw(len(images)))
        for example, label in zip(several, labels, strict=True):
            losses = [torch.nn.functional.cross_entropy(bench.plain(view[None]), label[None]) for view in example]
            mean = torch.stack([vector(torch.autograd.grad(loss, parameters)) for loss in losses]).mean(0)
            expected += mean if sigma is None else mean * min(1.0, CLIP / mean.norm().item())
        torch.testing.assert_close(update, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("views", [None, 2])
def test_an_empty_sample_is_a_step_of_noise_alone(views, narrow):
    bench, quiet = (Bench(narrow(), sigma=sigma, q=1e-9, views=views) for sigma in (SIGMA, TINY))
    noise, nothing = vector(bench.update()), vector(quiet.update())
    assert [len(sample) for sample in bench.samples] == [0]
    assert nothing.abs().max() < 1e-9
    assert 1e-6 < stats.chi2.sf((noise / (SIGMA * CLIP)).square().sum().item(), len(noise)) < 1 - 1e-6
    seen = bench.step()
    assert len(seen.losses) == len(seen.norms) == 0


def test_an_empty_sample_still_moves_the_optimiser(narrow):
    bench = Bench(narrow(), q=1e-9)
    bench.step.optimizer = torch.optim.NAdam(bench.network.parameters())
    bench.step()
    assert all(state["step"] == 1 for state in bench.step.optimizer.state.values())


def test_over_many_samples_the_update_is_the_mean_of_all_clipped_gradients(narrow, one_at_a_time):
    """Division by the actual batch would not give it: a third of the samples are empty where one is expected."""
    bench = Bench(narrow(), sigma=TINY, batch=1)
    everybody = bench.examples.batch(torch.arange(COUNT))
    mean = one_at_a_time(bench.plain, *everybody, CLIP)[0] / COUNT
    start, along = copy.deepcopy(bench.network.state_dict()), []
    for _ in range(600):
        bench.network.load_state_dict(start)
        along.append((vector(bench.update()) @ mean / mean.norm()).item())
    standard_error = np.std(along) / len(along) ** 0.5
    assert abs(np.mean(along) - mean.norm()) < 3 * standard_error
    assert 3 * standard_error < 0.25 * mean.norm()


def test_gradients_and_hooks_leave_nothing_in_the_network(narrow):
    bench = Bench(narrow())
    bench.step()
    assert all(p.grad is None for p in bench.network.parameters())


def test_a_step_trains_whatever_mode_the_network_was_left_in(narrow):
    ours, theirs = Bench(narrow()), Bench(narrow())
    theirs.network.load_state_dict(ours.network.state_dict())
    ours.network.eval()
    ours.step()
    theirs.step.gradients.choices = ours.step.gradients.choices  # type: ignore[attr-defined]
    theirs.step()
    assert torch.equal(vector(ours.weights()), vector(theirs.weights()))


@pytest.mark.parametrize(("count", "physical"), [(1, 1), (7, 3), (100, 33), (5, 10**9)])
def test_physical_batches_are_even_whole_and_in_order(count, physical):
    cut = pieces(torch.arange(count), physical)
    sizes = [len(piece) for piece in cut]
    assert torch.cat(cut).tolist() == list(range(count))
    assert max(sizes) <= physical
    assert max(sizes) - min(sizes) <= 1


def test_an_empty_sample_has_no_physical_batch():
    assert pieces(torch.arange(0), 5) == ()


# --- secret noise ---


def test_secret_noise_is_gaussian_of_sigma_times_c_also_for_an_empty_sample(narrow):
    bench = Bench(narrow().float(), q=1e-12, sigma=SIGMA)
    nothing = np.zeros((COUNT, 1, 8, 8), np.uint8)
    bench.step.examples = Examples(nothing, nothing[:, 0, 0, 0], [0.5], [0.3], torch.device("cpu"))
    bench.step.noise = Secret()
    noise = torch.cat([vector(bench.update()) for _ in range(5)]) / (SIGMA * CLIP)
    assert stats.kstest(noise.numpy(), "norm").pvalue > 1e-6
    assert len(noise.unique()) > 0.99 * len(noise)
    assert bench.samples and not any(map(len, bench.samples))


def test_secret_noise_is_added_to_the_clipped_sum(narrow, one_at_a_time):
    bench = Bench(narrow(), sigma=TINY)
    bench.step.noise = Secret()
    before = copy.deepcopy(bench.network.state_dict())
    update = vector(bench.update())
    bench.network.load_state_dict(before)
    expected = bench.clipped_sum(one_at_a_time)
    assert 0 < (update - expected).abs().max() < 100 * TINY
