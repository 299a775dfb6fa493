"""The Hessian-vector product against the dense Hessian, and what it leaves behind: nothing."""

import gc
import math
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from dpvision.curvature import product as module
from dpvision.curvature.product import Hessian, flat_weights


def vectors(count: int, size: int) -> torch.Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def test_the_product_is_that_of_the_dense_hessian(net, cut, dense):
    batches = cut(7, 17)
    matrix, product = dense(net, batches), Hessian(net, batches)
    for vector in vectors(5, len(matrix)):
        assert torch.allclose(product(vector), matrix @ vector, rtol=0, atol=1e-10)
    assert matrix.abs().max() > 0.01  # or it would be no test


@pytest.mark.parametrize("sizes", [(24,), (12, 12), (1, 23), (5, 7, 11, 1)])
def test_the_cut_into_physical_batches_does_not_matter(net, cut, sizes):
    whole, pieces = Hessian(net, cut(24)), Hessian(net, cut(*sizes))
    for vector in vectors(3, len(flat_weights(net))):
        assert torch.allclose(whole(vector), pieces(vector), rtol=0, atol=1e-12)


def test_quadratic_forms_are_those_of_the_product(net, cut):
    batches = cut(7, 17)
    several, product = vectors(4, len(flat_weights(net))), Hessian(net, batches)
    expected = torch.stack([vector @ product(vector) for vector in several])
    assert torch.allclose(Hessian(net, batches).quadratic_forms(lambda: several), expected, rtol=0, atol=1e-12)


def test_frozen_parameters_have_no_place_in_the_vectors(net, cut, dense):
    batches, body = cut(24), len(flat_weights(net)) - 75
    corner = dense(net, batches)[body:, body:]
    for parameter in net[:-1].parameters():
        parameter.requires_grad = False
    vector = vectors(1, 75)[0]
    assert torch.allclose(Hessian(net, batches)(vector), corner @ vector, rtol=0, atol=1e-10)


@pytest.mark.parametrize("count", [1, 2, 6])
def test_memory_is_that_of_one_physical_batch_and_is_freed_without_the_garbage_collector(net, cut, live, count):
    batches = list(cut(4, 4, 4, 4, 4, 4)[:count])
    vector = vectors(1, len(flat_weights(net)))[0]
    peaks = []
    gc.collect()
    gc.disable()
    try:
        for some in (batches[:1], batches[:1], batches):  # the first warms up
            with live(vector, *net.parameters(), *(tensor for batch in batches for tensor in batch)) as memory:
                result = Hessian(net, some)(vector)
                Hessian(net, some).quadratic_forms(lambda: [vector] * 3)
            peaks.append(memory.peak)
            del result
            left = memory.now()
    finally:
        gc.enable()
    assert peaks[2] <= 1.02 * peaks[1]
    assert left == 0


@pytest.fixture
def forwards(net) -> list[int]:
    """Record every pass through the network from here on by the size of its batch."""
    passes: list[int] = []
    net.register_forward_hook(lambda module, inputs, outputs: passes.append(len(inputs[0])))
    return passes


def test_the_products_of_kept_graphs_are_the_same(net, cut, forwards):
    batches = cut(5, 7, 11, 1)
    kept, anew = Hessian(net, batches, math.inf), Hessian(net, batches)
    several = vectors(4, len(flat_weights(net)))
    for vector in several:
        assert torch.allclose(kept(vector), anew(vector), rtol=0, atol=1e-14)
    assert torch.allclose(kept.quadratic_forms(lambda: several), anew.quadratic_forms(lambda: several), rtol=0, atol=1e-12)
    assert forwards[:8] == [5, 7, 11, 1] * 2 and len(forwards) == 4 + 5 * 4


@pytest.mark.parametrize(("memory_mb", "kept"), [(0, 0), (124, 0), (125, 1), (144, 2), (145, 4), (math.inf, 4)])
def test_as_many_graphs_are_kept_as_leave_room_for_the_next_batch(memory_mb, kept, net, cut, forwards, monkeypatch):
    """100 MB are in use; a graph takes 10 MB, computing a batch 5 MB more. No batch follows the last one."""
    measured = iter([100, 115, 110, 110, 125, 120, 120, 135, 130, 130, 145, 140])

    @contextmanager
    def peak_mb(device):
        found = []
        yield found
        found.append(next(measured))

    monkeypatch.setattr(module, "peak_mb", peak_mb)
    vector = vectors(1, len(flat_weights(net)))[0]
    product = Hessian(net, cut(6, 6, 6, 6), memory_mb)
    expected = Hessian(net, cut(24))(vector)
    assert torch.allclose(product(vector), expected, rtol=0, atol=1e-12)
    forwards.clear()
    for _ in range(2):
        assert torch.allclose(product(vector), expected, rtol=0, atol=1e-12)
    assert len(forwards) == 2 * (4 - kept)


def test_kept_graphs_are_freed_with_their_hessian_without_the_garbage_collector(net, cut, live):
    batches, vector = cut(12, 12), vectors(1, len(flat_weights(net)))[0]
    gc.collect()
    gc.disable()
    try:
        with live(vector, *net.parameters(), *(tensor for batch in batches for tensor in batch)) as memory:
            kept = Hessian(net, batches, math.inf)
            kept(vector)
            held = memory.now()
            kept(vector)
            assert memory.now() == held > 0  # and a further product leaves no more
        del kept
        assert memory.now() == 0
    finally:
        gc.enable()


def test_the_model_is_left_as_it_was(net, cut):
    net.train()
    net[1].eval()
    first, *others = net.parameters()
    first.grad = kept = torch.ones_like(first)
    others[0].requires_grad = False
    Hessian(net, cut(24))(torch.ones(len(flat_weights(net)), dtype=torch.float64))
    assert first.grad is kept and torch.equal(kept, torch.ones_like(kept))
    assert all(parameter.grad is None for parameter in others)
    assert [parameter.requires_grad for parameter in others] == [False] + [True] * (len(others) - 1)
    assert [module.training for module in net.modules()] == [module is not net[1] for module in net.modules()]


def test_the_model_is_left_as_it_was_after_an_error_too(net, cut):
    net.train()
    with pytest.raises(RuntimeError):
        Hessian(net, cut(24))(torch.ones(3, dtype=torch.float64))
    assert all(module.training for module in net.modules())


def test_the_loss_is_that_of_evaluation(cut):
    """Dropout is random and running statistics change in training; evaluation has neither."""
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Linear(36, 3), nn.Dropout(0.5)).double()
    running = model[1].running_mean.clone()
    vector = vectors(1, len(flat_weights(model)))[0]
    training = Hessian(model.train(), cut(12, 12))(vector)
    evaluation = Hessian(model.eval(), cut(24))(vector)
    assert torch.allclose(training, evaluation, rtol=0, atol=1e-12)
    assert torch.equal(model[1].running_mean, running)


def test_the_product_works_where_gradients_are_off(net, cut):
    vector = vectors(1, len(flat_weights(net)))[0]
    with torch.no_grad():
        result = Hessian(net, cut(24))(vector)
    assert result.abs().max() > 0 and not result.requires_grad
