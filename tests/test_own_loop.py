"""The page about one's own loop: its training runs as it stands there, and what it says of other uses holds."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dpvision.dpsgd import ClippedSum, Refused
from dpvision.privacy.fast import UNTIMED

PAGE = Path(__file__).parents[1] / "docs" / "own_loop.md"


TRAINING, REPEATABLE = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
LENGTH = "steps, batch, clip, delta = 200,"
SETUP = "for step in range"  # up to here


def test_the_training_of_the_page_runs_from_an_empty_folder(tmp_path):
    (tmp_path / "my_loop.py").write_text(TRAINING)
    done = subprocess.run([sys.executable, "my_loop.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    epsilon, right = map(float, re.search(r"ε = ([\d.]+) .* ([\d.]+)% of", last).groups())
    assert epsilon <= 8
    assert right > 80


def weights_after_two_steps(*programs: str) -> torch.Tensor:
    """Run parts of the page with two steps, and return the weights of its network."""
    names: dict[str, Any] = {}
    with torch.random.fork_rng():
        for program in programs:
            exec(program.replace(LENGTH, LENGTH.replace("200", "2")), names)
    return torch.cat([p.detach().flatten() for p in names["network"].parameters()])


def test_coins_and_noise_of_the_page_come_from_the_system(monkeypatch):
    assert LENGTH in TRAINING
    one, other = weights_after_two_steps(TRAINING), weights_after_two_steps(TRAINING)
    assert (one - other).norm() > 1e-2 * one.norm()
    monkeypatch.setattr(os, "urandom", bytes)  # zeros: the same coins and noise for all
    one, other = weights_after_two_steps(TRAINING), weights_after_two_steps(TRAINING)
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_the_repeatable_training_of_the_page_is_repeatable():
    setup = TRAINING[: TRAINING.index(SETUP)]
    one, other = (weights_after_two_steps(setup, REPEATABLE) for _ in range(2))
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)  # as near as the ways that timing chose
    assert (one - weights_after_two_steps(setup)).norm() > 1e-2 * one.norm()


def clipped_by_hand(network, inputs, labels, loss, clip):
    total = [torch.zeros_like(p) for p in network.parameters()]
    for one, label in zip(inputs, labels, strict=True):
        gradient = torch.autograd.grad(loss(network(one[None]), label[None]).sum(), list(network.parameters()))
        norm = torch.cat([g.flatten() for g in gradient]).norm()
        total = [t + g * min(1.0, clip / norm.item()) for t, g in zip(total, gradient, strict=True)]
    return total


def test_a_loss_of_ones_own_is_clipped_example_by_example():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    inputs, targets = torch.randn(6, 7, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)
    loss = lambda outputs, labels: (outputs - labels).square().mean(1)  # noqa: E731
    found = ClippedSum(network, 0.3, loss=loss, choices=UNTIMED)(inputs, targets)
    for ours, theirs in zip(found.sums, clipped_by_hand(network, inputs, targets, loss, 0.3), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_token_ids_are_inputs_too():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Embedding(11, 4), nn.Flatten(), nn.Linear(12, 3)).double()
    tokens, labels = torch.randint(11, (5, 3)), torch.randint(3, (5,))
    loss = nn.CrossEntropyLoss(reduction="none")
    found = ClippedSum(network, 0.3, choices=UNTIMED)(tokens, labels)
    for ours, theirs in zip(found.sums, clipped_by_hand(network, tokens, labels, loss, 0.3), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_views_of_vectors_are_averaged_before_clipping():
    torch.manual_seed(0)
    network = nn.Linear(4, 3).double()
    inputs, labels = torch.randn(5, 2, 4, dtype=torch.float64), torch.randint(3, (5,))
    loss = lambda outputs, label: nn.functional.cross_entropy(outputs[0], label.repeat(2))[None]  # noqa: E731
    found = ClippedSum(network, 0.3, views=2, choices=UNTIMED)(inputs, labels)
    for ours, theirs in zip(found.sums, clipped_by_hand(network, inputs, labels, loss, 0.3), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_a_loss_that_is_one_number_for_the_batch_is_an_error_that_says_what_it_must_be():
    with pytest.raises(ValueError, match=r'one number per input, as with reduction="none".*made up, like your 6'):
        ClippedSum(nn.Linear(4, 3), 1.0, loss=nn.CrossEntropyLoss())(torch.randn(6, 4), torch.randint(3, (6,)))


@pytest.mark.parametrize(("inputs", "labels"), [(6, 3), (3, 6), (6, 0), (0, 6)])
@pytest.mark.parametrize("views", [None, 1, 2])
def test_inputs_and_labels_of_different_number_are_an_error_that_says_both(inputs, labels, views):
    clipped_sum = ClippedSum(nn.Linear(4, 3), 1.0, views=views)
    shape = (inputs, 2, 4) if views == 2 else (inputs, 4)
    with pytest.raises(ValueError, match=rf"{inputs} inputs and {labels} labels"):
        clipped_sum(torch.randn(shape), torch.randint(3, (labels,)))
    sums = clipped_sum(torch.randn(0, *shape[1:]), torch.randint(3, (0,))).sums
    assert not any(total.any() for total in sums)


def test_a_recurrent_layer_is_refused_by_name():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.head = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 3)

        def forward(self, x):
            return self.head(self.cells(x)[0][:, -1])

    with pytest.raises(Refused, match=r"lstm .*cells\.weight_ih_l0"):
        ClippedSum(Recurrent(), 1.0)(torch.randn(6, 3, 4), torch.randint(3, (6,)))
