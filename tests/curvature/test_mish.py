"""Mish's own derivatives are PyTorch's."""

import pytest
import torch
from torch import nn
from torch.autograd import grad, gradcheck, gradgradcheck
from torch.nn import functional

from dpvision.curvature.mish import ClosedMish
from dpvision.curvature.product import Hessian, flat, flat_weights


def closed(x):
    with ClosedMish():
        return functional.mish(x)


def test_its_derivatives_are_pytorchs_however_large_the_input():
    x = torch.cat([torch.linspace(-60, 60, 4001, dtype=torch.float64), torch.tensor([-1e3, 0], dtype=torch.float64)])
    x.requires_grad_()
    found = []
    for mish in (functional.mish, closed):
        (first,) = grad((mish(x) * x.cos()).sum(), x, create_graph=True)
        found.append((mish(x), first, *grad((first * x.sin()).sum(), x)))
    for theirs, ours in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_its_derivatives_stay_finite_where_pytorchs_do_not():
    x = torch.tensor([1e3], dtype=torch.float64, requires_grad=True)
    (first,) = grad(closed(x).square(), x, create_graph=True)
    assert first.item() == 2e3 and grad(first, x)[0].item() == 2


def test_its_derivatives_are_those_of_finite_differences():
    x = torch.linspace(-4, 4, 9, dtype=torch.float64, requires_grad=True)
    assert gradcheck(closed, x) and gradgradcheck(closed, x)


@pytest.mark.parametrize("memory_mb", [0, float("inf")])
def test_the_product_of_a_network_is_that_of_pytorchs_own_derivatives(net, cut, memory_mb):
    (images, labels), parameters = cut(24)[0], list(net.parameters())
    vector = torch.randn(len(flat_weights(net)), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    gradient = flat(grad(functional.cross_entropy(net(images), labels), parameters, create_graph=True))
    expected = flat(grad(gradient, parameters, vector))
    assert torch.allclose(Hessian(net, cut(7, 17), memory_mb)(vector), expected, rtol=0, atol=1e-10)
    assert expected.abs().max() > 0.01  # or it would be no test


def test_it_writes_over_its_input_where_it_is_told_to():
    x = torch.randn(5, generator=torch.Generator().manual_seed(0))
    expected = functional.mish(x)
    with ClosedMish():
        assert nn.Mish(inplace=True)(x) is x
    assert torch.equal(x, expected)
