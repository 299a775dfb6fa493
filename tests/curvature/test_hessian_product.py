"""The Hessian-vector product against the dense Hessian, and what it leaves behind: nothing."""

import gc

import pytest
import torch
from torch import nn

from dpvision.curvature.product import flat_weights, hessian_product, quadratic_forms


def vectors(count: int, size: int) -> torch.Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def test_the_product_is_that_of_the_dense_hessian(net, cut, dense):
    batches = cut(7, 17)
    matrix, product = dense(net, batches), hessian_product(net, batches)
    for vector in vectors(5, len(matrix)):
        assert torch.allclose(product(vector), matrix @ vector, rtol=0, atol=1e-10)
    assert matrix.abs().max() > 0.01  # or it would be no test


@pytest.mark.parametrize("sizes", [(24,), (12, 12), (1, 23), (5, 7, 11, 1)])
def test_the_cut_into_physical_batches_does_not_matter(net, cut, sizes):
    whole, pieces = hessian_product(net, cut(24)), hessian_product(net, cut(*sizes))
    for vector in vectors(3, len(flat_weights(net))):
        assert torch.allclose(whole(vector), pieces(vector), rtol=0, atol=1e-12)


def test_quadratic_forms_are_those_of_the_product(net, cut):
    batches = cut(7, 17)
    several, product = vectors(4, len(flat_weights(net))), hessian_product(net, batches)
    expected = torch.stack([vector @ product(vector) for vector in several])
    assert torch.allclose(quadratic_forms(net, batches, lambda: several), expected, rtol=0, atol=1e-12)


def test_frozen_parameters_have_no_place_in_the_vectors(net, cut, dense):
    batches, body = cut(24), len(flat_weights(net)) - 75
    corner = dense(net, batches)[body:, body:]
    for parameter in net[:-1].parameters():
        parameter.requires_grad = False
    vector = vectors(1, 75)[0]
    assert torch.allclose(hessian_product(net, batches)(vector), corner @ vector, rtol=0, atol=1e-10)


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
                result = hessian_product(net, some)(vector)
                quadratic_forms(net, some, lambda: [vector] * 3)
            peaks.append(memory.peak)
            del result
            left = memory.now()
    finally:
        gc.enable()
    assert peaks[2] <= 1.02 * peaks[1]
    assert left == 0


def test_the_model_is_left_as_it_was(net, cut):
    net.train()
    net[1].eval()
    first, *others = net.parameters()
    first.grad = kept = torch.ones_like(first)
    others[0].requires_grad = False
    hessian_product(net, cut(24))(torch.ones(len(flat_weights(net)), dtype=torch.float64))
    assert first.grad is kept and torch.equal(kept, torch.ones_like(kept))
    assert all(parameter.grad is None for parameter in others)
    assert [parameter.requires_grad for parameter in others] == [False] + [True] * (len(others) - 1)
    assert [module.training for module in net.modules()] == [module is not net[1] for module in net.modules()]


def test_the_model_is_left_as_it_was_after_an_error_too(net, cut):
    net.train()
    with pytest.raises(RuntimeError):
        hessian_product(net, cut(24))(torch.ones(3, dtype=torch.float64))
    assert all(module.training for module in net.modules())


def test_the_loss_is_that_of_evaluation(cut):
    """Dropout and running statistics: random and changing in training, neither in evaluation."""
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Linear(36, 3), nn.Dropout(0.5)).double()
    running = model[1].running_mean.clone()
    vector = vectors(1, len(flat_weights(model)))[0]
    training = hessian_product(model.train(), cut(12, 12))(vector)
    evaluation = hessian_product(model.eval(), cut(24))(vector)
    assert torch.allclose(training, evaluation, rtol=0, atol=1e-12)
    assert torch.equal(model[1].running_mean, running)


def test_the_product_works_where_gradients_are_off(net, cut):
    vector = vectors(1, len(flat_weights(net)))[0]
    with torch.no_grad():
        result = hessian_product(net, cut(24))(vector)
    assert result.abs().max() > 0 and not result.requires_grad
