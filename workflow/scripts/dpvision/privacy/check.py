"""The check before the first step: a few made-up examples, worked out under the tape and by PyTorch's own gradient of one
loss at a time. What the tape missed, or a network that mixes its examples, does not pass.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from dpvision.privacy.clipping import Gradients, flat, losses_of_outputs
from dpvision.privacy.mixing import DROPOUTS, Gradient, MixingProbes, Tolerance
from dpvision.privacy.rules import Refused
from dpvision.privacy.tape import Expansion

if TYPE_CHECKING:
    from dpvision.privacy.fast import ClippedSum, Worker

Draw = Callable[..., Tensor]

COUNT = 3  # examples that are compared
OTHER_COUNT = 5  # that come first: what is copied for five images, and for three, is copied for each
NOT_UNDERSTOOD = "the network uses it in a way that is not understood: gradients differ from PyTorch's, one example at a time"


class Checked(NamedTuple):
    """The check's findings about a network that passed."""

    in_turn: bool
    """It tosses coins, or keeps something between layers: workers side by side would mix them."""
    kinds: dict[str, str]
    """Of its layers."""
    expanding: set[Expansion]
    """The copies of weights that it makes for the images."""


class MadeUp:
    """Examples in the shape of a batch's, drawn by chance; inputs that are not smooth, words say, are taken from the batch."""

    def __init__(self, way: "ClippedSum", images: Tensor, labels: Tensor, count: int, draw: Draw) -> None:
        torch.manual_seed(0)
        self.way, self.count, self.draw, self.smooth = way, count, draw, images.is_floating_point()
        chosen = torch.arange(count, device=labels.device) % len(labels)
        made = draw(count, *images.shape[1:]).to(images) if self.smooth else images[chosen.to(images.device)]
        self.rows, self.views = flat(made, way.views)
        self.labels, self.labels_of_batch = labels[chosen], labels

    def outputs(self, rows: Tensor) -> Any:
        self._put_coins_back()
        return self.way.network(rows)

    def losses(self, rows: Tensor, labels: Tensor) -> Tensor:
        return losses_of_outputs(self.outputs(rows), labels, self.views, self.way.loss)

    def losses_of_outputs(self, outputs: Any, labels: Tensor) -> Tensor:
        """Return the losses of outputs, which stay as they are even if the loss writes over its own."""
        self._put_coins_back()
        copies = tree_map(lambda value: value.clone() if isinstance(value, Tensor) else value, outputs)
        return losses_of_outputs(copies, labels, self.views, self.way.loss)

    def gradient(self, loss: Tensor) -> Gradient:
        """Return one loss's gradient of the parameters by PyTorch."""
        return torch.autograd.grad(loss, self.way.parameters, retain_graph=True, allow_unused=True)

    def _put_coins_back(self) -> None:
        """Make all passes toss the same coins, should the network toss any."""
        torch.manual_seed(1)
        self._untossed = _coins(self.rows.device)

    @property
    def tossed_coins(self) -> bool:
        """Whether the last pass tossed any."""
        return not torch.equal(_coins(self.rows.device), self._untossed)


def check(way: "ClippedSum", images: Tensor, labels: Tensor) -> Checked:
    """Compare three made-up examples with PyTorch's own gradient of one loss at a time, of the network as it is."""
    if not way.parameters:
        raise Refused("no parameter of the network is trainable")
    if {p.dtype for p in way.parameters} not in ({torch.float32}, {torch.float64}):
        raise Refused("parameters must be float32, or all of them float64; for less use torch.autocast")
    with torch.random.fork_rng([images.device] if images.is_cuda else []), torch.enable_grad(), InOneOrder():
        draw, found, worker = _under_the_tape(way, images, labels)
        made = MadeUp(way, images, labels, COUNT, draw)
        losses, tosses_coins, in_turn = _by_pytorch(made)
        each, of_others = _gradients(made, losses)
        tolerance = Tolerance(0.1, 0.05) if worker.rough else Tolerance(1e-2, 1e-4)
        mixing = MixingProbes(made, losses.detach(), each, tolerance, tosses_coins).find()
    if of_others or mixing:
        reason = mixing or "loss depends on the inputs of others"
        raise Refused(f"network or loss mixes the examples of a batch: one's {reason}")
    _compare(way, each, found, worker, tolerance)
    return Checked(in_turn, worker.kinds, worker.expanded)


def _under_the_tape(way: "ClippedSum", images: Tensor, labels: Tensor) -> "tuple[Draw, Gradients, Worker]":
    """Return how examples are drawn so that losses are finite, and what the tape makes of three of them."""

    def run(count: int, draw: Draw, expanding: set[Expansion] | None) -> "tuple[Gradients, Worker]":
        made = MadeUp(way, images, labels, count, draw)
        torch.manual_seed(1)
        return way.unclipped(made.rows, made.labels, expanding)

    buffers = {name: (b, b._version) for name, b in way.network.named_buffers()}
    draw: Draw = torch.randn
    found, worker = run(OTHER_COUNT, draw, None)
    for name, b in way.network.named_buffers():
        was, version = buffers.get(name, (None, 0))
        if getattr(b, "of_data", False) and (b is not was or b._version != version):
            raise Refused(f"{name}: this buffer is made of the data and would be published without noise")
    if images.is_floating_point() and not found.losses.isfinite().all():  # a logarithm, a square root?
        draw = torch.rand
        found, worker = run(OTHER_COUNT, draw, None)
    found, worker = run(COUNT, draw, worker.expanded)  # with what was copied for five images, and is for three
    if not found.losses.isfinite().all():
        raise Refused("its losses are not finite for made-up examples: nothing can be compared")
    return draw, found, worker


def _by_pytorch(made: MadeUp) -> tuple[Tensor, bool, bool]:
    """Return the losses, whether the network tosses coins, and whether workers have to take turns with it."""
    network, before = made.way.network, kept_in(made.way.network)
    losses = made.losses(made.rows.requires_grad_() if made.smooth else made.rows, made.labels)
    tosses_coins = made.tossed_coins
    return losses, tosses_coins, tosses_coins or kept_in(network) != before


def _gradients(made: MadeUp, losses: Tensor) -> tuple[list[Gradient], bool]:
    """Return each loss's gradients of the parameters, and whether any depends on another's inputs."""
    parameters, views, mixed = made.way.parameters, made.views, False
    each: list[Gradient] = []
    sources = [*parameters, made.rows] if made.smooth else parameters
    for i, loss in enumerate(losses):
        own = torch.autograd.grad(loss, sources, retain_graph=True, allow_unused=True)
        if made.smooth and (of_rows := own[-1]) is not None:
            mixed |= any(bool(of_rows[j * views : (j + 1) * views].any()) for j in range(made.count) if j != i)
        each.append(own[: len(parameters)])
    return each, mixed


def _compare(way: "ClippedSum", each: list[Gradient], found: Gradients, worker: "Worker", tolerance: Tolerance) -> None:
    """Refuse a network of which sums or norms under the tape are not PyTorch's."""
    names = {id(p): name for name, p in way.network.named_parameters()}
    sums = [sum((g.double() for g in of_p if g is not None), torch.zeros(())) for of_p in zip(*each, strict=True)]
    norms = torch.stack([torch.stack([g.double().norm() for g in own if g is not None]).norm() for own in each])
    for p, total, ours, first in zip(way.parameters, sums, found.sums, each[0], strict=True):
        lost = first is not None and id(p) not in worker.used
        allowed = tolerance.of_gradients * total.norm() + tolerance.of_losses * norms.sum()
        if lost or (total - ours).norm() > allowed:
            raise Refused(f"{names[id(p)]}: {NOT_UNDERSTOOD}")
    assert found.norms is not None
    if ((norms - found.norms).abs() > sum(tolerance) * norms).any():
        raise Refused(f"some weight: {NOT_UNDERSTOOD}")


def kept_in(network: nn.Module) -> list[Any]:
    """All that its modules hold: what a forward pass changes here, another pass at the same time would find."""

    def held(value: Any) -> Any:
        if isinstance(value, dict):
            return [(key, held(each)) for key, each in value.items()]
        if isinstance(value, list | tuple):
            return [held(each) for each in value]
        return Same(value, value._version if isinstance(value, Tensor) else 0)

    return [held(vars(module)) for module in network.modules()]


class Same:
    """Equal to what is the very same thing, not written over since."""

    def __init__(self, value: Any, version: int) -> None:
        self.value, self.version = value, version

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value and self.version == other.version


class InOneOrder(TorchFunctionMode):
    """Coins fall in the order of memory, which a rule may change: here they are tossed for contiguous data."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func in DROPOUTS and args and isinstance(args[0], Tensor):
            args = (args[0].contiguous(), *args[1:])
        return func(*args, **(kwargs or {}))


def _coins(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
