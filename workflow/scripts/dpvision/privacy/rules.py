"""Rules for operations where data meets weights: one rule an operation, and vmap for operations that have none.

A rule makes an operation object and hands it to the tape: `forward(*data)` gives the output and what `backward` wants to
see again; `backward(g, kept, wanted)` adds the contributions of its weights to the tape and gives the gradients of the
data that are wanted. Data come as [examples * views, ...].
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from dpvision.privacy.candidates import takes_mixed_precision
from dpvision.privacy.contributions import SLACK, Deferred, Derived, Ways, Weight, keep
from dpvision.privacy.convolution import Convolution
from dpvision.privacy.mish import as_dense

if TYPE_CHECKING:
    from dpvision.privacy.tape import Tape


class Refused(NotImplementedError):
    """An error: no example's gradient is known here, or there is none of its own."""


def refuse(tape: "Tape", func: Any, weight: Tensor | None, why: str) -> Refused:
    at = f" ({tape.names[id(weight)]})" if weight is not None and id(weight) in tape.names else ""
    return Refused(f"{getattr(func, '__name__', func)}{at}: {why}")


def match_layout(g: Tensor, x: Tensor) -> Tensor:
    """Return the gradient in the order of its input's memory: kernels that take both expect one order."""
    if x.shape[1] == 1 < g.shape[1]:  # an image of one channel is in both orders at once
        return as_dense(g)
    return as_dense(g.contiguous() if x.is_contiguous() else g.contiguous(memory_format=torch.channels_last))


class Convolve:
    def __init__(self, tape: "Tape", convolution: Convolution, bias: Weight | None, constant: Tensor | None) -> None:
        self.tape, self.convolution, self.bias, self.constant = tape, convolution, bias, constant

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = self.tape.lowered(as_dense(x))
        if self.tape.channels_last and x.shape[1] == 1:  # the same memory; the output follows these strides
            x = x.as_strided(x.shape, (x.stride(0), 1, x.stride(2), 1))
        weight = self.convolution.weight.like(x)
        bias = self.bias.value if self.bias else self.constant
        y = self.convolution.forward(x, weight, None if bias is None else self.tape.lowered(bias))
        self.convolution.note(y, bias)
        return y, x, weight

    def backward(self, g: Tensor, kept: tuple[Tensor, ...], wanted: list[bool]) -> tuple[Tensor | None]:
        (x, weight), tape = kept, self.tape
        g = match_layout(g, x)
        key = tape.name(self.convolution.weight)
        ways = self.convolution.ways(x, g, tape.examples, key, tape.rooms)
        worth = partial(self.convolution.worth, x, g, tape.examples)
        tape.add_quickest(self.convolution.weight, ways, lambda: self.convolution.kind(x, g, tape.examples), worth)
        self.convolution.made = None  # nothing holds the output longer than the input
        tape.add(self.bias, lambda: per_example(g, tape.examples, self.convolution.weight.value.dtype))
        return (self.convolution.of_input(g, x, weight) if wanted[0] else None,)


def per_example(t: Tensor, examples: int, dtype: torch.dtype) -> Tensor:
    """Sum [examples * views, channels, ...] over views and positions to [examples, channels]."""
    t = t.sum(tuple(range(2, t.dim())), dtype=dtype) if t.dim() > 2 else t.to(dtype)
    return t if len(t) == examples else t.view(examples, -1, t.shape[1]).sum(1)


def conv2d(
    tape: "Tape",
    func: Any,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    if id(weight) not in tape.weights or isinstance(padding, str) or input.dim() != 4:
        return generic(tape, func, input, weight, bias, stride, padding, dilation, groups)
    tape.check(func, weight, input)
    convolution = Convolution(tape.use(weight), _pair(stride), _pair(padding), _pair(dilation), groups)
    return tape.apply(Convolve(tape, convolution, tape.use_any(bias), bias), input)


def _pair(value: Any) -> tuple[int, int]:
    first, *second = (value,) if isinstance(value, int) else value
    return (first, second[0] if second else first)


class Linear:
    def __init__(self, tape: "Tape", weight: Weight, bias: Weight | None, constant: Tensor | None) -> None:
        self.tape, self.weight, self.bias, self.constant = tape, weight, bias, constant

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = self.tape.lowered(x)
        weight = self.weight.like(x)
        bias = self.bias.value if self.bias else self.constant
        return F.linear(x, weight, None if bias is None else self.tape.lowered(bias)), x, weight

    def backward(self, g: Tensor, kept: tuple[Tensor, ...], wanted: list[bool]) -> tuple[Tensor | None]:
        (x, weight), examples = kept, self.tape.examples
        wide = self.weight.value.dtype
        outputs, inputs = (t.reshape(examples, -1, t.shape[-1]).to(wide) for t in (g, x))
        kind = lambda: f"linear {tuple(weight.shape)} rows {inputs.shape[1]}"  # noqa: E731
        self.tape.add_quickest(self.weight, self._ways(inputs, outputs), kind, partial(self._worth, inputs))
        self.tape.add(self.bias, lambda: outputs.sum(1))
        return (g @ weight if wanted[0] else None,)

    def _ways(self, x: Tensor, g: Tensor) -> Ways:
        """Return the ways: each gradient is a product; of products with few rows the norm is cheaper."""
        product = lambda: keep(self.weight, torch.bmm(g.transpose(1, 2), x))  # noqa: E731
        return {"product": product, "gram": lambda: self._gram(x, g)}

    def _worth(self, x: Tensor, ways: Ways) -> Ways:
        """Leave out the norm where its products outgrow the gradients, the gradients where it costs next to nothing."""
        pairs, numbers = x.shape[1] ** 2, self.weight.value.numel()
        out = "gram" if pairs > 4 * numbers else "product" if pairs * sum(self.weight.value.shape) < numbers else ""
        return {name: way for name, way in ways.items() if name != out} or ways

    def _gram(self, x: Tensor, g: Tensor) -> Deferred:
        if x.shape[1] == 1 and self.weight.unit is None:  # one product: its norm is the product of two
            norms = torch.linalg.vector_norm(x[:, 0], dim=1).double() * torch.linalg.vector_norm(g[:, 0], dim=1).double()
            squares = norms.square() * (1 + SLACK * torch.finfo(x.dtype).eps)
            return Deferred(self.weight, squares, lambda factors: (g[:, 0] * factors.unsqueeze(1)).t() @ x[:, 0])
        both = torch.bmm(x, x.transpose(1, 2))
        rows = (g * torch.bmm(both, g)).sum(1).double()
        lengths = both.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt().unsqueeze(2)
        rows = rows + SLACK * torch.finfo(x.dtype).eps * (lengths * g.abs()).sum(1).double().square()
        made = [] if self.weight.unit is None else [x.sum(2, keepdim=True), F.linear(x, self.weight.unit)]
        squares = self.weight.squares(rows.clamp(min=0), [(g * m).sum(1) for m in made])
        return Deferred(self.weight, squares, lambda factors: (g * factors.view(-1, 1, 1)).flatten(0, 1).t() @ x.flatten(0, 1))


def linear(tape: "Tape", func: Any, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if id(weight) not in tape.weights:
        return generic(tape, func, input, weight, bias)
    tape.check(func, weight, input)
    return tape.apply(Linear(tape, tape.use(weight), tape.use_any(bias), bias), input)


class GroupNorm:
    def __init__(self, tape: "Tape", groups: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> None:
        self.tape, self.groups, self.eps = tape, groups, eps
        self.weight, self.bias = tape.use_any(weight), tape.use_any(bias)
        self.values = [t if t is None else t.detach() for t in (weight, bias)]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = as_dense(x)
        weight, bias = self.values
        whole = x if takes_mixed_precision(x) else _wide(x)
        y, mean, scale = torch.native_group_norm(whole, weight, bias, *self._shape(x), self.eps)
        return y.to(x.dtype), x, mean, scale

    def backward(self, g: Tensor, kept: tuple[Tensor, ...], wanted: list[bool]) -> tuple[Tensor | None]:
        x, mean, scale = kept
        of_x, g = x.dtype, match_layout(g, x)
        wide = _wide(g)
        whole, along = (t.sum(tuple(range(2, t.dim()))) if t.dim() > 2 else t for t in (wide, wide * x))

        def of_weight() -> Tensor:
            by_group = (t.view(len(x), self.groups, -1) for t in (along, whole, mean, scale))
            products, sums, means, scales = by_group
            found = (products - sums * means) * scales
            return per_example(found.view_as(along), self.tape.examples, whole.dtype)

        self.tape.add(self.weight, of_weight)
        self.tape.add(self.bias, lambda: per_example(whole, self.tape.examples, whole.dtype))
        if not wanted[0]:
            return (None,)
        backward = torch.ops.aten.native_group_norm_backward
        if not takes_mixed_precision(x):
            x, g = _wide(x), wide
        return (backward(g, x, mean, scale, self.values[0], *self._shape(x), [True, False, False])[0].to(of_x),)

    def _shape(self, x: Tensor) -> tuple[int, int, int, int]:
        return len(x), x.shape[1], x[0, 0].numel(), self.groups


def _wide(t: Tensor) -> Tensor:
    return t.to(torch.promote_types(t.dtype, torch.float32))


def group_norm(
    tape: "Tape",
    func: Any,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    tape.check(func, weight, input)
    return tape.apply(GroupNorm(tape, num_groups, weight, bias, eps), input)


class LayerNorm:
    def __init__(self, tape: "Tape", shape: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float) -> None:
        self.tape, self.shape, self.eps = tape, shape, eps
        self.weight, self.bias = tape.use_any(weight), tape.use_any(bias)
        self.value = None if weight is None else weight.detach()
        self.offset = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y, mean, scale = torch.native_layer_norm(_wide(x), self.shape, self.value, self.offset, self.eps)
        return y.to(x.dtype), x, mean, scale

    def backward(self, g: Tensor, kept: tuple[Tensor, ...], wanted: list[bool]) -> tuple[Tensor | None]:
        x, mean, scale = kept
        of_x, examples = x.dtype, self.tape.examples
        x, g = _wide(x).contiguous(), _wide(g).contiguous()

        def each(t: Tensor) -> Tensor:
            return t.reshape(examples, -1, *self.shape).sum(1)

        self.tape.add(self.weight, lambda: each(g * ((x - mean) * scale)))
        self.tape.add(self.bias, lambda: each(g))
        if not wanted[0]:
            return (None,)
        backward = torch.ops.aten.native_layer_norm_backward
        return (backward(g, x, self.shape, mean, scale, self.value, self.offset, [True, False, False])[0].to(of_x),)


def layer_norm(
    tape: "Tape",
    func: Any,
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    tape.check(func, weight, input)
    return tape.apply(LayerNorm(tape, tuple(normalized_shape), weight, bias, eps), input)


def instance_norm(
    tape: "Tape",
    func: Any,
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if running_mean is not None:
        raise refuse(tape, func, weight, "its running statistics are made of the data and would be published without noise")
    return _by_channel(tape, F.instance_norm(input, eps=eps), weight, bias)


def batch_norm(
    tape: "Tape",
    func: Any,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if training:
        why = "every example's output depends on the others of its batch: no gradient is its own. Take nn.GroupNorm instead"
        raise refuse(tape, func, weight, why)
    return _by_channel(tape, F.batch_norm(input, running_mean, running_var, eps=eps), weight, bias)


def _by_channel(tape: "Tape", x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    shape = (-1, *[1] * (x.dim() - 2))
    return affine(tape, x, *(t if t is None else _reshaped(tape, t, shape) for t in (weight, bias)))


def _reshaped(tape: "Tape", weight: Tensor, shape: tuple[int, ...]) -> Tensor:
    with tape:  # noted as made of the weight
        return weight.view(shape)


def affine(tape: "Tape", x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else multiply(tape, torch.mul, x, weight)
    return x if bias is None else add(tape, torch.add, x, bias)


class Elementwise:
    """A weight that multiplies data, or is added to it: a scalar, one a channel, one a place."""

    def __init__(self, tape: "Tape", weight: Weight, multiplies: bool) -> None:
        self.tape, self.weight, self.multiplies = tape, weight, multiplies

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return (x * self.weight.value, x) if self.multiplies else (x + self.weight.value,)

    def backward(self, g: Tensor, kept: tuple[Tensor, ...], wanted: list[bool]) -> tuple[Tensor | None]:
        g_of_w, value = (g * kept[0] if self.multiplies else g), self.weight.value
        shape = (1,) * (g.dim() - 1 - value.dim()) + tuple(value.shape[1:] if value.dim() == g.dim() else value.shape)
        over = [i + 1 for i, size in enumerate(shape) if size == 1]
        samples = _wide(g_of_w).sum(over, keepdim=True) if over else _wide(g_of_w)
        examples = self.tape.examples
        self.tape.add(
            self.weight, lambda: samples.view(examples, -1, *shape).sum(1).view(examples, *value.shape).to(value.dtype)
        )
        return ((g * value.to(g.dtype) if self.multiplies else g) if wanted[0] else None,)


def _elementwise(multiplies: bool) -> Callable[..., Tensor]:
    def rule(tape: "Tape", func: Any, *args: Any, **kwargs: Any) -> Tensor:
        if kwargs or len(args) != 2:
            return generic(tape, func, *args, **kwargs)
        x, weight = args[::-1] if id(args[0]) in tape.weights else args
        one = isinstance(x, Tensor) and id(x) not in tape.weights and id(weight) in tape.weights
        fits = one and x.is_floating_point() and torch.broadcast_shapes(x.shape, weight.shape) == x.shape
        if not fits or (weight.dim() == x.dim() and len(weight) > 1):
            return generic(tape, func, *args)
        tape.check(func, weight, x)
        return tape.apply(Elementwise(tape, tape.use(weight), multiplies), x)

    return rule


multiply, add = _elementwise(True), _elementwise(False)


class Expand:
    """A weight that every image gets a copy of, like the class token of a transformer: from here on it is data."""

    def __init__(self, tape: "Tape", weight: Weight, shape: tuple[int, ...]) -> None:
        self.tape, self.weight, self.shape = tape, weight, shape

    def forward(self) -> tuple[Tensor, ...]:
        return (self.weight.value.expand(self.shape).clone(),)

    def backward(self, g: Tensor, kept: tuple[Tensor, ...], wanted: list[bool]) -> tuple[()]:
        examples, value = self.tape.examples, self.weight.value
        self.tape.add(
            self.weight, lambda: torch.stack([row.sum_to_size(value.shape) for row in g.unflatten(0, (examples, -1))])
        )
        return ()


def expanded(tape: "Tape", weight: Tensor, made: Any) -> Tensor | None:
    """Return the copies of a weight as data, if `made` is one copy an image."""
    if not isinstance(made, Tensor):
        return None
    fits = made.dim() > 0 and (weight.dim() < made.dim() or (weight.dim() == made.dim() and len(weight) == 1))
    copies = fits and len(made) == tape.images and torch.broadcast_shapes(weight.shape, made.shape) == made.shape
    if not tape.may_expand(weight, copies):
        return None
    return tape.apply(Expand(tape, tape.use(weight), made.shape))


EXPANDING = {Tensor.expand, Tensor.repeat, torch.broadcast_to, Tensor.broadcast_to}


def shared_rows(tape: "Tape", indices: Tensor, table: Tensor, *options: Any, **named_options: Any) -> Tensor | None:
    """Return the rows of an embedding as data, if the same indices stand there for each image, like those of positions.

    Args:
        tape: The tape of this pass.
        indices: The indices, which are not made of data: [images, ...] with equal rows, or anything else.
        table: The weight.
        options: Those of `F.embedding`.
        named_options: The same by keyword.

    Returns:
        A copy of the rows per image, or None if the indices are of another kind.
    """
    copies = indices.dim() > 1 and len(indices) == tape.images and bool((indices == indices[:1]).all())
    if not tape.may_expand(table, copies):
        return None
    rows = tape.derive(F.embedding(indices[0], table, *options, **named_options), table)
    return tape.apply(Expand(tape, tape.use(rows), (len(indices), *rows.shape)))


def attention(
    tape: "Tape",
    func: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    is_causal: bool = False,
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """Carry out PyTorch's module of attention with linear layers, the examples first; the module has them second."""
    rare = [bias_k, bias_v, key_padding_mask, add_zero_attn or None, use_separate_proj_weight or None]
    if any(option is not None for option in rare) or need_weights or query.dim() != 3:
        why = "only plain attention is known here; call it with need_weights=False, or write it out with linear layers"
        raise refuse(tape, func, in_proj_weight, why)
    assert in_proj_weight is not None
    if is_causal:  # as PyTorch has it: the mask says no more than that
        attn_mask = None
    elif attn_mask is not None:
        attn_mask = attn_mask.logical_not() if attn_mask.dtype == torch.bool else attn_mask
        attn_mask = attn_mask.unflatten(0, (-1, num_heads)) if attn_mask.dim() == 3 else attn_mask
    with tape:
        if query is key is value:
            packed = F.linear(query.transpose(0, 1), in_proj_weight, in_proj_bias).chunk(3, -1)
        else:
            biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
            parts = zip((query, key, value), in_proj_weight.chunk(3), biases, strict=True)
            packed = tuple(F.linear(t.transpose(0, 1), weight, bias) for t, weight, bias in parts)
        q, k, v = (t.unflatten(-1, (num_heads, -1)).transpose(1, 2) for t in packed)
        mixed = F.scaled_dot_product_attention(
            q, k, v, attn_mask=attn_mask, dropout_p=dropout_p if training else 0.0, is_causal=is_causal
        )
        return F.linear(mixed.transpose(1, 2).flatten(2), out_proj_weight, out_proj_bias).transpose(0, 1), None


class Generic:
    """An operation of any kind: its derivative for the weights and the data of each example, by vmap over the examples."""

    def __init__(self, tape: "Tape", func: Any, args: tuple, kwargs: dict) -> None:
        self.tape, self.func = tape, func
        leaves, self.spec = tree_flatten((args, kwargs))
        self.leaves = [x.detach() if isinstance(x, Tensor) else x for x in leaves]
        tensors = [(i, x) for i, x in enumerate(leaves) if isinstance(x, Tensor)]
        self.at_weights = [i for i, x in tensors if id(x) in tape.weights]
        self.weights = [tape.use(leaves[i]) for i in self.at_weights]
        self.at_data = [i for i, x in tensors if getattr(x, "of_data", False)]
        self.data = [leaves[i] for i in self.at_data]
        kind = self.data[0].device.type if self.data else "cpu"
        self.precision = (kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind))

    def call(self, weights: list[Tensor], data: list[Tensor]) -> Tensor:
        leaves = list(self.leaves)
        for i, value in zip([*self.at_weights, *self.at_data], [*weights, *data], strict=True):
            leaves[i] = value
        args, kwargs = tree_unflatten(leaves, self.spec)
        with torch.autocast(*self.precision):  # the backward pass has the forward pass's precision
            return self.func(*args, **kwargs)

    def forward(self, *data: Tensor) -> tuple[Tensor, ...]:
        self.leaves = [None if isinstance(x, Tensor) and i in self.at_data else x for i, x in enumerate(self.leaves)]
        out = self.call([w.value for w in self.weights], list(data))
        if not isinstance(out, Tensor) or out.dim() == 0 or len(out) != self.tape.images:
            why = "there is no rule for it, and its output is not one tensor with the examples first"
            raise refuse(self.tape, self.func, self.weights[0].parameters[0], why)
        return out, *data

    def backward(self, g: Tensor, kept: tuple[Tensor, ...], wanted: list[bool]) -> tuple[Tensor | None, ...]:
        smooth = [i for i, d in enumerate(kept) if d.is_floating_point()]
        values = [w.value for w in self.weights]

        def of_example(g: Tensor, *data: Tensor) -> tuple[list[Tensor], list[Tensor]]:
            def run(weights: list[Tensor], moving: list[Tensor]) -> Tensor:
                here = list(data)
                for i, value in zip(smooth, moving, strict=True):
                    here[i] = value
                return self.call(weights, here)

            return torch.func.vjp(run, values, [data[i] for i in smooth])[1](g)

        examples = self.tape.examples
        cut = [t.unflatten(0, (examples, -1)) for t in (g, *kept)]
        try:
            samples, moved = torch.func.vmap(of_example)(*cut)
        except RuntimeError as error:
            first, why = self.weights[0].parameters[0], f"there is no rule for it, and vmap cannot do it: {error}"
            made = [w.value for w in self.weights if isinstance(w, Derived)]
            if any(value.dim() > 0 and len(value) == self.tape.images for value in made):
                why = (
                    "a tensor made of parameters alone has one row per example: its rows are shared by all examples. "
                    "Make it without that dimension, or last with .expand(len(x), ...)"
                )
            raise refuse(self.tape, self.func, first, why) from error
        for weight, sample in zip(self.weights, samples, strict=True):
            self.tape.add(weight, lambda sample=sample: sample)  # type: ignore[misc]
        back: list[Tensor | None] = [None] * len(kept)
        for i, moves in zip(smooth, moved, strict=True):
            back[i] = moves.flatten(0, 1)
        return tuple(back)


def generic(tape: "Tape", func: Any, *args: Any, **kwargs: Any) -> Tensor:
    operation = Generic(tape, func, args, kwargs)
    if not operation.weights:  # all of them frozen
        return func(*args, **kwargs)
    first = operation.weights[0].parameters[0]
    name = getattr(func, "__name__", "")
    if (name.endswith("_") and not name.endswith("__")) or name.startswith("__i") or kwargs.get("out") is not None:
        raise refuse(tape, func, first, "it writes a weight's doing over an activation; write it out of place")
    for data in operation.data:
        tape.check(func, first, data)
    return tape.apply(operation, *operation.data)


RULES: dict[Any, Callable[..., Any]] = {
    torch.conv2d: conv2d,
    F.linear: linear,
    F.group_norm: group_norm,
    F.layer_norm: layer_norm,
    F.instance_norm: instance_norm,
    F.batch_norm: batch_norm,
    F.multi_head_attention_forward: attention,
    **dict.fromkeys((torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__), multiply),
    **dict.fromkeys((torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__), add),
}
ALWAYS = {F.batch_norm, F.instance_norm}  # with or without weights
