"""A forward pass that notes where data meets weights; its backward pass asks each meeting for its contribution.

Under a tape every operation of the network passes by `__torch_function__`. One that takes data and weights is carried
out by its rule; without a rule, by vmap over the examples; what takes only data is PyTorch's own. Gradients of the
data flow as ever. Gradients of weights are never summed over the examples: each use leaves its contribution on the
tape, made of its input and its output gradient while both are at hand.

What a network may not do is refused: mix the examples of a batch, write over an activation with a parameter in hand,
turn the batch into another dimension.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from dpvision.privacy.contributions import Contribution, Derived, Rooms, Standardized, Ways, Weight, keep
from dpvision.privacy.mish import Mish, replaceable
from dpvision.privacy.rules import ALWAYS, EXPANDING, RULES, expanded, generic, refuse, shared_rows
from dpvision.standardized import standardized

Expansion = tuple[tuple[int, ...], int]  # the ids of the parameters, and how many expansions of theirs came before


class Tape(TorchFunctionMode):
    def __init__(
        self,
        names: dict[int, str],  # of the parameters, by the id of each
        weights: dict[int, Weight],  # the parameters; what is made of them serves all tapes that take them
        examples: int,
        choose: Callable[[str, Ways, Callable[[], str], Callable[[Ways], Ways]], Contribution],
        rooms: Rooms,
        quick_mish: bool,
        channels_last: bool,
        expanding: set[Expansion] | None,  # those that are copies for the images, once known
    ) -> None:
        super().__init__()
        self.examples, self.choose, self.rooms, self.quick_mish = examples, choose, rooms, quick_mish
        self.channels_last = channels_last
        self.expanding, self.expanded = expanding, set[Expansion]()
        self.expansions: Counter[tuple[int, ...]] = Counter()  # of the same parameters, so far
        self.names = names
        self.weights = dict(weights)  # by the id of their tensor, which they hold
        self.uses: Counter[int] = Counter()  # of each parameter
        self.contributions: list[Contribution] = []
        self.vectors: list[tuple[Weight, Tensor]] = []  # contributions of vectors that are used once: [examples, numbers]
        self.replaced = False  # a Mish, by the one in pieces
        self.rough = False  # computed in less than the weights' precision
        self.start = torch.zeros((), requires_grad=True)  # where the backward pass ends: data and weights need no gradient

    def watch(self, images: Tensor) -> Tensor:
        images.of_data = True  # type: ignore[attr-defined]
        self.images = len(images)  # examples * views
        return images

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        tensors = list(tensors_in((args, kwargs)))
        weights = [t for t in tensors if id(t) in self.weights]
        of_data = any(getattr(t, "of_data", False) for t in tensors)
        if of_data and (weights or func in ALWAYS):
            out = RULES.get(func, generic)(self, func, *args, **kwargs)
        elif self.quick_mish and replaceable(func, args, kwargs):
            out = Mish.apply(args[0])
            self.replaced = True
        elif func is standardized and [type(self.weights[id(w)]) for w in weights] == [Weight, Weight]:
            out = self._standardized(*args)
        else:
            out = func(*args, **kwargs)
            copies = None if of_data or not weights else self._copies(func, args, kwargs, weights[0], out)
            if copies is not None:
                out, of_data = copies, True
        for t in tensors_in(out):
            if of_data:
                t.of_data = True  # type: ignore[attr-defined]
            elif weights and t.requires_grad and id(t) not in self.weights:
                self.derive(t, *weights)
        return out

    def _copies(self, func: Any, args: tuple, kwargs: dict, weight: Tensor, out: Any) -> Tensor | None:
        """Return the copies of a weight for the images as data, if an operation on weights alone makes such."""
        if func in EXPANDING:
            return expanded(self, weight, out)
        if func is F.embedding:
            return shared_rows(self, *args, **kwargs)
        return None

    def derive(self, made: Tensor, *weights: Tensor) -> Tensor:
        """Note that a tensor is made of these weights alone, and return it."""
        parameters = dict.fromkeys(p for w in weights for p in self.weights[id(w)].parameters)
        self.weights[id(made)] = Derived(made, list(parameters))
        return made

    def _standardized(self, weight: Tensor, gain: Tensor, floor: float) -> Tensor:
        """Standardise a weight, once for all that take the same weights."""
        made = self.weights[id(weight)].standardized
        if (id(gain), floor) not in made:
            made[id(gain), floor] = Standardized(weight, gain, floor)
        found = made[id(gain), floor]
        self.weights[id(found.graph)] = found
        return found.graph

    def use(self, tensor: Tensor) -> Weight:
        """Return the weight that an operation takes, and count the use."""
        weight = self.weights[id(tensor)]
        self.uses.update(id(p) for p in weight.parameters)
        return weight

    def use_any(self, tensor: Tensor | None) -> Weight | None:
        return self.use(tensor) if tensor is not None and id(tensor) in self.weights else None

    def may_expand(self, tensor: Tensor, copies: bool) -> bool:
        """Say whether an expansion is copies for the images: if there are as many, and were for another number of images.

        `copies`: whether there are as many. Else some other copies of a weight would be taken for the images' as soon as
        a batch happens to be as large.
        """
        parameters = tuple(id(p) for p in self.weights[id(tensor)].parameters)
        expansion = parameters, self.expansions[parameters]
        self.expansions[parameters] += 1
        if not copies or (self.expanding is not None and expansion not in self.expanding):
            return False
        self.expanded.add(expansion)
        return True

    def check(self, func: Any, weight: Tensor | None, data: Tensor) -> None:
        if data.dim() == 0 or len(data) != self.images:
            raise refuse(self, func, weight, f"the examples are not along the first dimension of its input {tuple(data.shape)}")

    def name(self, weight: Weight) -> str:
        return self.names[id(weight.parameters[0])]

    def alone(self, weight: Weight) -> bool:
        """Tell whether the gradients of this use are all of its parameters' gradients, and norms can be taken of them."""
        return type(weight) is not Derived and all(self.uses[id(p)] == 1 for p in weight.parameters)

    def add(self, weight: Weight | None, samples: Callable[[], Tensor]) -> None:
        """Add every example's gradient, made if it is asked for."""
        if not weight:
            return
        if weight.value.dim() == 1 and self.alone(weight):
            self.vectors.append((weight, samples()))
        else:
            self.contributions.append(keep(weight, samples()))

    def add_quickest(self, weight: Weight, ways: Ways, kind: Callable[[], str], worth: Callable[[Ways], Ways]) -> None:
        """Add what the way that was chosen gives. `kind`: all that timing depends on; `worth`: leaves out what never pays."""
        if not (alone := self.alone(weight)):
            ways = {name: way for name, way in ways.items() if name != "gram"}
        whole_kind = lambda: f"{kind()} {type(weight).__name__}{'' if alone else ' shared'}"  # noqa: E731
        self.contributions.append(self.choose(self.name(weight), ways, whole_kind, worth))

    def lowered(self, t: Tensor) -> Tensor:
        """Return a tensor in the precision that autocast asks for."""
        if not torch.is_autocast_enabled(t.device.type):
            return t
        self.rough = True
        return t.to(torch.get_autocast_dtype(t.device.type))

    def apply(self, operation: Any, *data: Tensor) -> Tensor:
        return _Operation.apply(self.start, operation, *data)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Find the tensors in a value, or in the lists, tuples and dictionaries that it is made of."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


class _Operation(torch.autograd.Function):
    """The operation of any rule: `forward(*data)` gives its output and what `backward(g, kept, wanted)` wants to see again."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, operation: Any, *data: Tensor) -> Tensor:
        out, *kept = operation.forward(*data)
        ctx.save_for_backward(*kept)
        ctx.operation = operation
        return out if out._base is None else out.clone()  # a view could be written over

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        # detached: what contributions hold of them must not hold the graph, which holds the contributions
        kept = tuple(t.detach() for t in ctx.saved_tensors)
        return None, None, *ctx.operation.backward(g, kept, ctx.needs_input_grad[2:])
