"""Probes for mixing: does an example's loss or gradient change with the other examples of its batch?

Each probe works a few made-up examples out again and changes one thing that must not matter to an example: the other
inputs, the other labels, the number of examples, its place among them. docs/clipping.md says what no probe can see.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

if TYPE_CHECKING:
    from dpvision.privacy.check import MadeUp

Gradient = tuple[Tensor | None, ...]  # of one loss, one tensor per parameter; None where the parameter was not used

FAR = 100.0  # by which other inputs are moved
FARTHER = 1000.0  # by which one input is moved away from small ones
TWICE = (2, 0, 1, 0, 1, 2)  # of three examples: twice as many, and none at the place that it has alone

DROPOUTS = (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout, torch.dropout)


class Tolerance(NamedTuple):
    """The difference that rounding may make."""

    of_gradients: float
    """As a share of a gradient's own length."""
    of_losses: float
    """As a share of the losses' size; in a parameter's gradient, of the length of the whole gradient."""


class MixingProbes:
    """All probes of one network and loss.

    Args:
        examples: The made-up examples.
        losses: Their losses, one per example, without a graph.
        gradients: Their gradients by PyTorch, one per example.
        tolerance: The difference that rounding may make.
        tosses_coins: Whether the network or the loss tosses coins. These fall by place, in one order.
    """

    def __init__(
        self, examples: "MadeUp", losses: Tensor, gradients: list[Gradient], tolerance: Tolerance, tosses_coins: bool
    ) -> None:
        self.examples, self.tolerance, self.tosses_coins = examples, tolerance, tosses_coins
        self.rows, self.labels = examples.rows.detach(), examples.labels
        self.losses, self.gradients = losses, gradients
        self.scale = losses.abs() + losses.abs().mean()

    def find(self) -> str | None:
        """Return what an example's loss or gradient depends on beside itself, or None."""
        with torch.no_grad():
            if self._loss_changes_with_inputs() or self._loss_changes_with_sizes():
                return "loss depends on the inputs of others"
            if self._loss_changes_with_labels():
                return "loss depends on the labels of others"
        if self._gradient_changes_with_inputs():
            return "gradient depends on the inputs of others"
        return self._what_changes_with_number_and_place()

    def _loss_changes_with_inputs(self) -> bool:
        """Move the other inputs far to either side."""
        for i in range(self.examples.count):
            for moved in self._moved_inputs():
                losses = self.examples.losses(torch.where(self._is_row_of(i), self.rows, moved), self.labels)
                if self._differ(losses[i], self.losses[i], self.scale[i]):
                    return True
        return False

    def _moved_inputs(self) -> list[Tensor]:
        """Return all inputs, moved far; within (0, 1) where the network takes positive ones alone."""
        if not self.examples.smooth:
            return [self.rows.flip(0), torch.zeros_like(self.rows)]
        if self.examples.draw is torch.rand:
            return [self.rows / 2, self.rows.square()]
        return [self.rows + FAR, self.rows - FAR]

    def _loss_changes_with_sizes(self) -> bool:
        """Put one large input beside small ones: a largest or least value then is not an example's own, but one of others."""
        small, high, low = self._small_and_large_inputs()
        among_small = self.examples.losses(small, self.labels)
        scale = among_small.abs() + among_small.abs().mean()
        last = self.examples.count - 1
        for place, large in ((0, high), (last, low)):
            losses = self.examples.losses(torch.where(self._is_row_of(place), large, small), self.labels)
            others = among_small.isfinite()
            others[place] = False
            if self._differ(losses[others], among_small[others], scale[others]):
                return True
        return False

    def _small_and_large_inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return small inputs, and large ones to either side where the network takes both."""
        if self.rows.is_complex():
            return torch.zeros_like(self.rows), self.rows, self.rows
        if not self.examples.smooth:  # 1 is small for bytes, and a token that most vocabularies have
            return torch.where(self.rows > 1, torch.ones_like(self.rows), self.rows), self.rows, self.rows
        if self.examples.draw is torch.rand:
            return self.rows / 100, self.rows, self.rows
        return self.rows.abs() / 10, self.rows + FARTHER, self.rows - FARTHER

    def _loss_changes_with_labels(self) -> bool:
        """Give the others other labels: such as occur in the batch, then invented ones if the loss takes them."""
        outputs = self.examples.outputs(self.rows)
        if self._differ_by_labels(outputs, self.labels, self._labels_of_batch):
            return True
        with suppress(Exception):  # 0 or 1 may be no label that this loss knows
            # on the CPU: a class that there is not would end the whole process on a graphics card
            return self._differ_by_labels(tree_map(_to_cpu, outputs), self.labels.cpu(), _invented_labels)
        return False

    def _differ_by_labels(self, outputs: Any, labels: Tensor, other_labels: Any) -> bool:
        """Tell whether the loss of an example changes where all others have one of these labels."""
        before = self.examples.losses_of_outputs(outputs, labels)
        for i in range(self.examples.count):
            for other in other_labels(labels, i):
                own = _is_at(i, labels, self.examples.count)
                losses = self.examples.losses_of_outputs(outputs, torch.where(own, labels, other))
                if self._differ(losses[i], before[i], self.scale[i].to(before.device)):
                    return True
        return False

    def _labels_of_batch(self, labels: Tensor, example: int) -> Iterator[Tensor]:
        """Yield an example's own label, and the first label of the batch that is another."""
        own, of_batch = labels[example], self.examples.labels_of_batch
        yield own
        is_other = (of_batch != own).view(len(of_batch), -1).any(1)
        if is_other.any():
            yield of_batch[is_other.nonzero()[0, 0]]

    def _gradient_changes_with_inputs(self) -> bool:
        """Work out one example's gradient beside other neighbours."""
        if not self.examples.smooth:
            neighbours = torch.zeros_like(self.rows)
        else:  # near enough that nothing overflows: what is not finite would reach every gradient
            neighbours = self.rows / 2 if self.examples.draw is torch.rand else 10 * self.rows
        losses = self.examples.losses(torch.where(self._is_row_of(0), self.rows, neighbours), self.labels)
        return self._gradients_differ(self.examples.gradient(losses[0]), self.gradients[0], self.tolerance.of_losses)

    def _what_changes_with_number_and_place(self) -> str | None:
        """Have twice as many examples, each at another place, without dropout: its coins fall by place.

        A network that still tosses coins is not probed, but its loss function is.
        """
        losses, gradient = self.losses, self.gradients[0]
        order = torch.tensor(TWICE)
        with NoDropout():
            if self.tosses_coins:
                losses = self.examples.losses(self.rows, self.labels)
                if self.examples.tossed_coins:
                    return self._what_changes_in_the_loss_alone()
                gradient, losses = self.examples.gradient(losses[0]), losses.detach()
            rows = _take(self.rows, order, self.examples.count)
            of_twice = self.examples.losses(rows, self.labels[order.to(self.labels.device)])
        where = order.to(losses.device)
        if self._differ(of_twice.detach(), losses[where], self.scale[where]):
            return "loss depends on the number of examples, or on its place among them"
        # tensors of another shape are rounded in another way: a parameter may lose a hundredth of the whole gradient
        if self._gradients_differ(self.examples.gradient(of_twice[TWICE.index(0)]), gradient, self.tolerance.of_gradients):
            return "gradient depends on the number of examples, or on its place among them"
        return None

    @torch.no_grad()
    def _what_changes_in_the_loss_alone(self) -> str | None:
        """Give the loss function twice as many outputs, each at another place."""
        outputs, order = self.examples.outputs(self.rows), torch.tensor(TWICE)
        if any(not isinstance(t, Tensor) or t.dim() == 0 or len(t) != len(self.rows) for t in tree_leaves(outputs)):
            return None
        losses = self.examples.losses_of_outputs(outputs, self.labels)
        if self.examples.tossed_coins:
            return None
        twice = tree_map(lambda t: _take(t, order, self.examples.count), outputs)
        of_twice = self.examples.losses_of_outputs(twice, self.labels[order.to(self.labels.device)])
        where = order.to(losses.device)
        if self._differ(of_twice, losses[where], self.scale[where]):
            return "loss depends on the number of examples, or on its place among them"
        return None

    def _is_row_of(self, example: int) -> Tensor:
        """Return a mask of the rows that are this example's views."""
        return _is_at(example, self.rows, self.examples.count)

    def _differ(self, losses: Tensor, expected: Tensor, scale: Tensor) -> bool:
        """Tell whether any loss is another, or is none any more, like NaN."""
        return not bool(((losses - expected).abs() <= self.tolerance.of_losses * scale).all())

    def _gradients_differ(self, gradient: Gradient, expected: Gradient, of_whole: float) -> bool:
        """Tell whether two gradients differ in any parameter. A part that is not finite tells nothing.

        Args:
            gradient: The one that was worked out again.
            expected: The one that it should be.
            of_whole: The difference that rounding may make in a parameter, as a share of the whole gradient.
        """
        length = torch.stack([g.double().norm() for g in expected if g is not None]).norm()
        for ours, theirs in zip(gradient, expected, strict=True):
            if ours is None or theirs is None:
                continue
            gap = (ours - theirs).double().norm()
            if gap.isfinite() and gap > self.tolerance.of_gradients * theirs.norm() + of_whole * length:
                return True
        return False


class NoDropout(TorchFunctionMode):
    """A mode without PyTorch's dropout, in networks that are in training mode all the same."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func in DROPOUTS:
            return args[0] if args else kwargs["input"]
        if func is Tensor.bernoulli_:  # stochastic depth: every layer is there
            return args[0].fill_(1)
        if func is F.multi_head_attention_forward:
            kwargs = {**kwargs, "training": False}
        if func is F.scaled_dot_product_attention and len(args) > 4:
            args = (*args[:4], 0.0, *args[5:])
        elif func is F.scaled_dot_product_attention:
            kwargs = {**kwargs, "dropout_p": 0.0}
        return func(*args, **kwargs)


def _invented_labels(labels: Tensor, example: int) -> Iterator[Tensor]:
    yield torch.zeros_like(labels)
    yield torch.ones_like(labels)
    if labels.is_floating_point():
        yield labels + FAR


def _is_at(example: int, t: Tensor, count: int) -> Tensor:
    """Return a mask of an example's part of a tensor, which has the same number of rows for each example."""
    is_own = torch.arange(count, device=t.device) == example
    return is_own.repeat_interleave(len(t) // count).view(-1, *[1] * (t.dim() - 1))


def _take(t: Tensor, order: Tensor, count: int) -> Tensor:
    """Return the rows of the examples in this order."""
    return t.unflatten(0, (count, -1))[order.to(t.device)].flatten(0, 1)


def _to_cpu(value: Any) -> Any:
    return value.cpu() if isinstance(value, Tensor) else value
