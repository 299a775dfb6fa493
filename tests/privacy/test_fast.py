"""The fast engine gives what one example at a time gives, however it goes about it, and refuses what it cannot know."""

import copy
import gc
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm

from dpvision.models import build
from dpvision.models.layers import StandardizedConv2d
from dpvision.privacy import fast, rules
from dpvision.privacy.clipping import Gradients
from dpvision.privacy.contributions import Standardized, Weight
from dpvision.privacy.convolution import Convolution
from dpvision.privacy.fast import UNTIMED, ClippedSum
from dpvision.privacy.mish import Mish
from dpvision.privacy.rules import Refused
from dpvision.privacy.tape import Tape
from dpvision.standardized import standardized
from dpvision.training.precision import in_precision

CLIP = 1.0
SHAPE = (2, 6, 5)
WAYS = ["one", "grouped", "unfold", "gram"]
Shape = tuple[int, ...]


def vector(tensors: Any) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors]).double()


def rows_of(network: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Compute PyTorch's gradient of one example at a time: examples x parameters, zeros where one is not used."""
    plain, rows = copy.deepcopy(network), []
    parameters = [p for p in plain.parameters() if p.requires_grad]
    for example, label in zip(images, labels, strict=True):
        views = example if images.dim() == 5 else example[None]
        loss = torch.stack([F.cross_entropy(plain(view[None]), label[None]) for view in views]).mean()
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        rows.append(vector(torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)))
    return torch.stack(rows)


def examples_of(
    count: int, shape: Shape = SHAPE, views: int | None = None, dtype: Any = torch.float64
) -> tuple[Tensor, Tensor]:
    return torch.randn(count, *[views] * (views is not None), *shape, dtype=dtype), torch.randint(3, (count,))


def is_the_clipped_sum(way: ClippedSum, rows: Tensor, images: Tensor, labels: Tensor, rtol: float = 0) -> None:
    norms = (rows**2).sum(1).sqrt()
    found = way(images, labels)
    torch.testing.assert_close(found.norms, norms, rtol=rtol, atol=1e-10)
    expected = (rows * (way.clip / norms).clamp(max=1)[:, None]).sum(0)
    torch.testing.assert_close(vector(found.sums), expected, rtol=rtol, atol=1e-10)


def agrees(network: nn.Module, images: Tensor, labels: Tensor, /, rtol: float = 0, **choices: Any) -> None:
    """Check the engine against one example at a time. Half of the examples' gradients are longer than C."""
    rows = rows_of(network, images, labels)
    assert (rows != 0).any()
    way = ClippedSum(network, 0.9 * rows.norm(dim=1).median().item(), choices=UNTIMED | choices)
    is_the_clipped_sum(way, rows, images, labels, rtol)


def net(*layers: nn.Module, shape: Shape = SHAPE) -> nn.Module:
    """Return the layers with a classifier of whatever they give."""
    size = nn.Sequential(*layers)(torch.zeros(2, *shape)).flatten(1).shape[1]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(size, 3)).double()


class Net(nn.Module):
    """A network of named parameters and layers and its work with them; the last layer classifies all that comes out."""

    def __init__(self, work: Callable[[Any, Tensor], Tensor], shape: Shape = SHAPE, **parts: Any) -> None:
        super().__init__()
        self.work = work
        for name, part in parts.items():
            setattr(self, name, nn.Parameter(part) if isinstance(part, Tensor) else part)
        size = work(self, torch.randn(2, *shape)).flatten(1).shape[1]
        self.head = nn.Linear(size, 3)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.work(self, x).flatten(1))


def conv(inputs: int = 2, outputs: int = 4, kernel: Any = 3, **options: Any) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, **options)


def frozen(layer: nn.Module, *names: str) -> nn.Module:
    for name in names:
        layer.get_parameter(name).requires_grad_(False)
    return layer


def gained(layer: StandardizedConv2d) -> StandardizedConv2d:
    """Set gains from -1 to 2 and 0 among them; make the last filter constant, the one before almost."""
    with torch.no_grad():
        layer.gain.copy_(torch.linspace(-1, 2, len(layer.gain)))
        layer.gain[1] = 0
        layer.weight[-1] = 0.3
        layer.weight[-2].mul_(1e-3)
    return layer


def tilted(layer: StandardizedConv2d) -> StandardizedConv2d:
    """Set gains of both signs and away from 0, and smaller biases: the output then tells what the filters make."""
    with torch.no_grad():
        layer.gain.copy_(torch.linspace(0.5, 2, len(layer.gain)))
        layer.gain[::2] *= -1
        if layer.bias is not None:
            layer.bias.copy_(torch.linspace(0.4, -0.3, len(layer.gain)))
    return layer


def drowned(layer: StandardizedConv2d) -> StandardizedConv2d:
    """Set biases so large that the output says little of what the filters made."""
    with torch.no_grad():
        layer.bias.copy_(torch.linspace(1e5, 1e6, len(layer.bias)))
        layer.gain.mul_(1e-2)
    return layer


# --- convolutions: every way, geometry, order in memory, number of views and cut ---


GEOMETRIES: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: conv(4, 6),
    "without a bias": lambda: conv(4, 6, bias=False),
    "stride": lambda: conv(4, 6, stride=2, padding=1),
    "a stride and a padding a side": lambda: conv(4, 6, stride=(2, 1), padding=(0, 2)),
    "a stride that leaves pixels out": lambda: conv(4, 6, 2, stride=3),
    "dilation": lambda: conv(4, 6, (3, 2), dilation=(2, 3), padding=2),
    "two groups": lambda: conv(4, 6, groups=2, padding=1),
    "depthwise": lambda: conv(4, 8, groups=4, padding=1, stride=2),
    "1x1": lambda: conv(4, 6, 1),
    "1x1 with a stride": lambda: conv(4, 6, 1, stride=2),
    "a wide kernel": lambda: conv(4, 6, (1, 4), padding=(0, 2)),
    "a kernel as large as the image": lambda: conv(4, 6, (6, 5)),
    "reflected": lambda: conv(4, 6, padding=2, padding_mode="reflect", stride=2),
    "standardised": lambda: gained(StandardizedConv2d(4, 6, 3, padding=1)),
    "standardised, stride": lambda: gained(StandardizedConv2d(4, 6, 3, stride=2, bias=False)),
    "standardised, groups": lambda: gained(StandardizedConv2d(4, 6, 3, groups=2, padding=1)),
    "standardised, depthwise": lambda: gained(StandardizedConv2d(4, 8, (3, 2), groups=4)),
}
SMALL: dict[str, Callable[[], nn.Module]] = {  # on maps of 3 x 4, where the gradients' products fit
    "plain": lambda: conv(16, 16),
    "padding": lambda: conv(16, 16, padding=1, bias=False),
    "stride": lambda: conv(16, 16, stride=(2, 3), padding=(0, 1)),
    "dilation": lambda: conv(16, 16, (3, 2), dilation=(1, 2)),
    "a wide kernel": lambda: conv(16, 16, (1, 4), padding=(0, 1)),
    "reflected": lambda: conv(16, 16, padding=1, padding_mode="reflect"),
    "standardised": lambda: gained(StandardizedConv2d(16, 16, 3, padding=1)),
    "standardised, stride": lambda: gained(StandardizedConv2d(16, 16, 3, stride=2, padding=1, bias=False)),
    "standardised, tilted": lambda: tilted(StandardizedConv2d(16, 16, 3, padding=1)),
    "standardised, tilted, stride": lambda: tilted(StandardizedConv2d(16, 16, 3, stride=2, padding=1)),
    "standardised, tilted, without a bias": lambda: tilted(StandardizedConv2d(16, 16, 3, bias=False)),
    "standardised, drowned": lambda: drowned(StandardizedConv2d(16, 16, 3, padding=1)),
}
CASES = [pytest.param(make, (4, 6, 5), way, id=f"{name}-{way}") for name, make in GEOMETRIES.items() for way in WAYS[:3]]
CASES += [pytest.param(make, (16, 3, 4), way, id=f"small, {name}-{way}") for name, make in SMALL.items() for way in WAYS]
CASES += [
    pytest.param(lambda groups=groups: tilted(StandardizedConv2d(16, 16, 3, groups=groups)), (16, 3, 4), "one", id=f"{groups}")
    for groups in (2, 16)
]


@pytest.mark.parametrize(("make", "shape", "way"), CASES)
def test_every_way_agrees_with_one_example_at_a_time(make, shape, way):
    network = net(conv(shape[0], shape[0], 1, bias=False), nn.Tanh(), make(), nn.Tanh(), shape=shape)
    for views, count in product((None, 1, 3), (1, 5)):
        images, labels = examples_of(count, shape, views)
        rows = rows_of(network, images, labels)
        fastest = ClippedSum(network, 0.9 * rows.norm(dim=1).median().item())
        for workers, size, memory_format in product((1, 2), (1, 2, 64), ("contiguous", "channels last")):
            cut = {"workers": workers, "images": size, "memory_format": memory_format}
            fastest.choices = UNTIMED | cut | {"layers": {"2.weight": way}}
            is_the_clipped_sum(fastest, rows, images, labels)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("views", [None, 3])
def test_a_first_layer_whose_input_needs_no_gradient_agrees(way, views):
    network = net(conv(16, 16, padding=1), nn.Tanh(), shape=(16, 3, 4))
    agrees(network, *examples_of(4, (16, 3, 4), views), layers={"0.weight": way})


@pytest.mark.parametrize("kernel", [1, 2, 3, (2, 3), (4, 1)])
@pytest.mark.parametrize("options", [{}, {"dilation": 2}, {"groups": 2, "bias": False}, {"padding_mode": "reflect"}], ids=str)
@pytest.mark.parametrize("views", [None, 3])
def test_padding_that_keeps_the_size_agrees(kernel, options, views):
    network = net(conv(2, 2, 1), nn.Tanh(), conv(2, 4, kernel, padding="same", **options), nn.Tanh())
    for memory_format in ("contiguous", "channels last"):
        agrees(network, *examples_of(4, views=views), memory_format=memory_format)


def test_a_standardised_convolution_that_keeps_the_size_agrees():
    agrees(net(gained(StandardizedConv2d(2, 4, 2, padding="same")), nn.Tanh()), *examples_of(4))


@pytest.mark.parametrize("way", ["product", "gram"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("views", [None, 1, 3])
@pytest.mark.parametrize("sequence", [True, False])
def test_every_way_of_a_linear_layer_agrees(way, bias, views, sequence):
    first = nn.Sequential(nn.Flatten(2 if sequence else 1), nn.Linear(30 if sequence else 60, 8, bias=bias))
    network = net(first, nn.Tanh(), nn.Linear(8, 7, bias=bias), nn.Tanh())
    layers = {"0.1.weight": way, "2.weight": way, "4.weight": way}
    for count in (1, 5):
        agrees(network, *examples_of(count, views=views), layers=layers)


# --- layers and operations ---


class Divided(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight / weight.norm()


class MaskedAttention(nn.Module):
    """PyTorch's attention, with a mask for every head of every example."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads, self.module = heads, nn.MultiheadAttention(6, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).triu(1).expand(len(x) * self.heads, length, length)
        return self.module(x, x, x, need_weights=False, attn_mask=mask)[0]


class Attention(nn.Module):
    """PyTorch's attention, of a sequence with itself or with its first half."""

    def __init__(self, half: bool = False, **options: Any) -> None:
        super().__init__()
        self.half, self.module = half, nn.MultiheadAttention(6, 2, batch_first=True, **options)

    def forward(self, x: Tensor) -> Tensor:
        other = x[:, :3] if self.half else x
        return self.module(x, other, other, need_weights=False)[0]


class Masked(nn.Module):
    def __init__(self, like: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", (torch.arange(like.numel()).view_as(like) % 3 > 0).to(like))

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.mask


def parametrized(layer: nn.Module, by: nn.Module) -> nn.Module:
    parametrize.register_parametrization(layer, "weight", by)
    return layer


def in_place_residual(n: Any, x: Tensor) -> Tensor:
    out = n.conv(x)
    out += x
    return torch.tanh(out)


def through_a_module_twice(n: Any, x: Tensor) -> Tensor:
    return torch.tanh(n.norm(n.conv(torch.tanh(n.norm(n.conv(x))))))


def standardised_twice(n: Any, x: Tensor) -> Tensor:
    return n.layer(torch.tanh(n.layer(x))) + F.conv2d(x, n.layer.weight, padding=1)


def one_gain_in_two_layers(n: Any, x: Tensor) -> Tensor:
    x = F.conv2d(x, standardized(n.first, n.gain), padding=1)
    return F.conv2d(torch.tanh(x), standardized(n.second, n.gain, 1e-2))


def tied(n: Any, x: Tensor) -> Tensor:
    return F.linear(torch.tanh(F.linear(x.flatten(2), n.w)), n.w.t())


def parts_of_a_weight(n: Any, x: Tensor) -> Tensor:
    return torch.cat([F.conv2d(x[:, :1], n.w[:2]), F.conv2d(x[:, 1:], n.w[2:])], 1)


def embedded(n: Any, x: Tensor) -> Tensor:
    return F.embedding((x.flatten(1) > 0).long() + 1, n.table)


def maxima(n: Any, x: Tensor) -> Tensor:
    values, where = n.conv(x).flatten(2).max(2)
    return values * n.p + where.to(x) / 100


def of_lengths(*shape: int) -> Tensor:
    return torch.randn(*shape) + 0.5


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "group norm": lambda: net(conv(), nn.GroupNorm(2, 4), nn.Tanh()),
    "group norm of single channels": lambda: net(conv(), nn.GroupNorm(4, 4), nn.Mish()),
    "group norm of vectors": lambda: net(nn.Flatten(), nn.Linear(60, 8), nn.GroupNorm(2, 8), nn.Tanh()),
    "group norm of sequences": lambda: net(nn.Flatten(2), nn.GroupNorm(2, 2), nn.Tanh()),
    "group norm without weights": lambda: net(conv(), nn.GroupNorm(2, 4, affine=False), nn.Tanh()),
    "layer norm": lambda: net(conv(), nn.LayerNorm((4, 4, 3)), nn.Tanh()),
    "layer norm of the last dimension": lambda: net(nn.LayerNorm(5, bias=False), nn.Tanh()),
    "layer norm of vectors": lambda: net(nn.Flatten(), nn.LayerNorm(60), nn.Tanh()),
    "rms norm": lambda: net(nn.RMSNorm(5), nn.Tanh()),
    "instance norm": lambda: net(conv(), nn.InstanceNorm2d(4, affine=True), nn.Tanh()),
    "batch norm in evaluation": lambda: net(conv(), nn.BatchNorm2d(4), nn.Tanh()).eval(),
    "batch norm of vectors in evaluation": lambda: net(nn.Flatten(), nn.Linear(60, 8), nn.BatchNorm1d(8)).eval(),
    "linear on sequences": lambda: net(nn.Flatten(2), nn.Linear(30, 4), nn.Tanh()),
    "linear on images": lambda: net(nn.Linear(5, 4), nn.Tanh()),
    "dropout in evaluation": lambda: net(conv(), nn.Dropout(0.5), nn.Tanh()).eval(),
    "prelu": lambda: net(conv(), nn.PReLU()),
    "prelu of channels": lambda: net(conv(), nn.PReLU(4)),
    "transposed convolution": lambda: net(nn.ConvTranspose2d(2, 3, 3, stride=2), nn.Tanh()),
    "convolution of sequences": lambda: net(nn.Flatten(2), nn.Conv1d(2, 4, 3, padding=1), nn.Tanh()),
    "attention": lambda: net(nn.Flatten(2), nn.Linear(30, 6), Attention()),
    "attention to a part, without biases": lambda: net(nn.Flatten(1, 2), nn.Linear(5, 6), Attention(True, bias=False)),
    "attention with a mask an example": lambda: net(nn.Flatten(1, 2), nn.Linear(5, 6), MaskedAttention(1)),
    "attention with a mask a head of an example": lambda: net(nn.Flatten(1, 2), nn.Linear(5, 6), MaskedAttention(2)),
    "a layer of a transformer": lambda: net(
        nn.Flatten(1, 2), nn.Linear(5, 6), nn.TransformerEncoderLayer(6, 2, 7, 0.0, batch_first=True)
    ),
    "pooling and upsampling": lambda: net(conv(padding=1), nn.MaxPool2d(2), nn.Upsample(scale_factor=2), nn.AvgPool2d(2)),
}
OPERATIONS: dict[str, Callable[[], nn.Module]] = {
    "a scalar before a residual": lambda: Net(
        lambda n, x: torch.tanh(x + n.scale * n.conv(x)), scale=torch.tensor(0.3), conv=conv(2, 2, padding=1)
    ),
    "a scale a channel": lambda: Net(lambda n, x: n.p * n.conv(x), p=of_lengths(4, 1, 1), conv=conv()),
    "x + p": lambda: Net(lambda n, x: torch.tanh(x + n.p), p=of_lengths(6, 5)),
    "p + x": lambda: Net(lambda n, x: torch.tanh(n.p + x), p=of_lengths(1, 2, 1, 5)),
    "x * p": lambda: Net(lambda n, x: torch.tanh(x * n.p), p=of_lengths(1)),
    "p * x": lambda: Net(lambda n, x: torch.tanh(n.p * x), p=of_lengths(2, 6, 1)),
    "x - p": lambda: Net(lambda n, x: torch.tanh(x - n.p), p=of_lengths(6, 5)),
    "p - x": lambda: Net(lambda n, x: torch.tanh(n.p - x), p=of_lengths(2, 1, 1)),
    "x / p": lambda: Net(lambda n, x: torch.tanh(x / n.p), p=torch.rand(2, 1, 1) + 1),
    "p ** x": lambda: Net(lambda n, x: torch.tanh(n.p**x), p=torch.rand(5) + 1),
    "x.mul(p)": lambda: Net(lambda n, x: torch.tanh(x.mul(n.p)), p=of_lengths(5)),
    "p.add(x)": lambda: Net(lambda n, x: torch.tanh(n.p.add(x, alpha=2)), p=of_lengths(5)),
    "torch.mul by keyword": lambda: Net(lambda n, x: torch.tanh(torch.mul(x, other=n.p)), p=of_lengths(5)),
    "torch.add by keywords": lambda: Net(lambda n, x: torch.tanh(torch.add(input=x, other=n.p)), p=of_lengths(5)),
    "a scalar a vector": lambda: Net(lambda n, x: torch.tanh(n.p * x.mean((1, 2, 3)))[:, None], p=torch.tensor(0.7)),
    "broadcast by the weight": lambda: Net(lambda n, x: torch.tanh(x[:, :, :, :1] * n.p), p=of_lengths(7)),
    "a dimension more by the weight": lambda: Net(lambda n, x: torch.tanh(x.flatten(1)[:, None] * n.p), p=of_lengths(4, 60)),
    "matmul": lambda: Net(lambda n, x: torch.tanh(torch.matmul(x, n.p)), p=of_lengths(5, 4)),
    "matmul from the left": lambda: Net(lambda n, x: torch.tanh(n.p @ x), p=of_lengths(4, 6)),
    "addmm": lambda: Net(lambda n, x: torch.addmm(n.b, x.flatten(1), n.w).tanh(), b=of_lengths(4), w=of_lengths(60, 4)),
    "einsum": lambda: Net(lambda n, x: torch.tanh(torch.einsum("bchw,cwo->bho", x, n.p)), p=of_lengths(2, 5, 4)),
    "einsum of data with themselves": lambda: Net(
        lambda n, x: torch.einsum("bchw,bchv,wvo->bco", x, x, n.p).tanh(), p=of_lengths(5, 5, 4)
    ),
    "p + x * p": lambda: Net(lambda n, x: torch.addcmul(n.p, x, n.p).tanh(), p=of_lengths(5)),
    "p expanded like x": lambda: Net(lambda n, x: n.p.expand_as(x) * x.tanh(), p=of_lengths(2, 1, 5)),
    "a class token": lambda: Net(
        lambda n, x: torch.cat([n.token.expand(len(x), -1, -1), x.flatten(1, 2)], 1).tanh() + n.place,
        token=of_lengths(1, 1, 5),
        place=of_lengths(1, 13, 5),
    ),
    "a class token, repeated": lambda: Net(
        lambda n, x: torch.cat([n.token.repeat(len(x), 1, 1), x[:, 0]], 1).tanh(), token=of_lengths(1, 2, 5)
    ),
    "a class token that has as many copies elsewhere as there are images": lambda: Net(
        lambda n, x: torch.cat([n.token.expand(len(x), 1, 5), x[:, 0]], 1).tanh() * n.token[0].expand(4, 5).mean(0),
        token=of_lengths(1, 1, 5),
    ),
    "a class token made of another": lambda: Net(
        lambda n, x: torch.cat([(2 * n.token).broadcast_to(len(x), 3, 5), x[:, 0]], 1).tanh() * n.token.sum(),
        token=of_lengths(3, 1),
    ),
    "embedded positions": lambda: Net(lambda n, x: torch.tanh(x + n.table(torch.arange(6))), table=nn.Embedding(6, 5)),
    "embedded positions, expanded for each example": lambda: Net(
        lambda n, x: torch.tanh(x[:, 0] + n.table(torch.arange(6).expand(len(x), -1)) + n.table(torch.arange(6))),
        table=nn.Embedding(6, 5),
    ),
    "embedded positions, repeated for each example": lambda: Net(
        lambda n, x: torch.cat([n.table(torch.arange(3).repeat(len(x), 1)), x[:, 0]], 1).tanh(), table=nn.Embedding(6, 5)
    ),
    "embedding": lambda: Net(embedded, table=of_lengths(3, 2)),
    "a shape taken from a weight": lambda: Net(
        lambda n, x: F.linear(x, n.a.expand_as(n.b)) * n.b.sum(), a=of_lengths(5), b=of_lengths(4, 5)
    ),
    "bilinear": lambda: Net(lambda n, x: n.both(x[:, 0], x[:, 1]), both=nn.Bilinear(5, 5, 3)),
    "where": lambda: Net(lambda n, x: torch.where(x > 0, x, n.p).tanh(), p=of_lengths(5)),
    "linear by keywords": lambda: Net(
        lambda n, x: F.linear(input=x, weight=n.w, bias=n.b), w=of_lengths(4, 5), b=of_lengths(4)
    ),
    "conv1d": lambda: Net(lambda n, x: F.conv1d(x.flatten(2), n.w, n.b, 2).tanh(), w=of_lengths(4, 2, 3), b=of_lengths(4)),
    "dense concatenation": lambda: Net(
        lambda n, x: n.second(torch.cat([x, torch.tanh(n.first(x))], 1)), first=conv(padding=1), second=conv(6)
    ),
    "what comes with positions": lambda: Net(maxima, conv=conv(), p=of_lengths(4)),
    "strange strides inside": lambda: Net(
        lambda n, x: n.second(n.first(x.permute(0, 1, 3, 2)).permute(0, 1, 3, 2)[:, :, ::2].tanh()),
        first=conv(padding=1),
        second=conv(4, 4, 2),
    ),
    "gradients with strange strides": lambda: Net(
        lambda n, x: n.norm(n.conv(x)).transpose(2, 3).sum(2).expand(3, -1, -1, -1).permute(1, 0, 2, 3).tanh(),
        conv=conv(),
        norm=nn.GroupNorm(2, 4),
    ),
}
WEIGHTS: dict[str, Callable[[], nn.Module]] = {
    "divided by its norm": lambda: net(parametrized(conv(), Divided()), nn.Tanh()),
    "masked": lambda: net(parametrized(conv(), Masked(torch.zeros(4, 2, 3, 3))), nn.Tanh()),
    "masked in a linear layer": lambda: net(nn.Flatten(2), parametrized(nn.Linear(30, 4), Masked(torch.zeros(4, 30)))),
    "weight normalisation": lambda: net(weight_norm(conv()), nn.Tanh()),
    "masked, then standardised": lambda: net(parametrized(StandardizedConv2d(2, 4, 3), Masked(torch.zeros(4, 2, 3, 3)))),
    "a product of two": lambda: Net(lambda n, x: F.linear(x, n.a @ n.b).tanh(), a=of_lengths(4, 2), b=of_lengths(2, 5)),
    "a sum with itself": lambda: Net(lambda n, x: F.linear(x, n.a + 2 * n.a[:1]).tanh(), a=of_lengths(4, 5)),
    "parts of one": lambda: Net(parts_of_a_weight, w=of_lengths(4, 1, 3, 3)),
    "stacked": lambda: Net(lambda n, x: F.linear(x, torch.stack([n.a, n.b, n.a])).tanh(), a=of_lengths(5), b=of_lengths(5)),
    "tied to its transpose": lambda: Net(tied, w=of_lengths(8, 30)),
    "the same module twice": lambda: Net(through_a_module_twice, conv=conv(2, 2, padding=1), norm=nn.GroupNorm(2, 2)),
    "a standardised module twice": lambda: Net(standardised_twice, layer=gained(StandardizedConv2d(2, 2, 3, padding=1))),
    "one gain in two layers": lambda: Net(
        one_gain_in_two_layers, first=of_lengths(2, 2, 3, 3), second=of_lengths(2, 2, 3, 2), gain=of_lengths(2)
    ),
    "one weight in a convolution and in a sum": lambda: Net(
        lambda n, x: n.conv(x) * n.conv.weight.sum((1, 2, 3), keepdim=True)[None, :, 0], conv=conv()
    ),
    "a weight's square in the head's input": lambda: Net(lambda n, x: x * n.p * n.p + n.p, p=of_lengths(5)),
    "one that no one uses": lambda: Net(lambda n, x: n.conv(x), conv=conv(), p=of_lengths(5), idle=nn.Linear(2, 2)),
}
FREEZABLE: dict[str, Callable[[], nn.Module]] = {
    "convolution": lambda: conv(4, 4, padding=1),
    "standardised": lambda: gained(StandardizedConv2d(4, 4, 3)),
    "group norm": lambda: nn.GroupNorm(2, 4),
    "layer norm": lambda: nn.LayerNorm(3),
    "instance norm": lambda: nn.InstanceNorm2d(4, affine=True),
    "batch norm": lambda: nn.BatchNorm2d(4),
    "linear": lambda: nn.Linear(3, 4),
}


def partly_frozen(kind: str, names: tuple[str, ...]) -> nn.Module:
    return net(conv(), frozen(FREEZABLE[kind](), *names), nn.Tanh()).train(kind != "batch norm")


FROZEN: dict[str, Callable[[], nn.Module]] = {
    f"{kind} without {' and '.join(names)}": partial(partly_frozen, kind, names)
    for kind in FREEZABLE
    for names in [("weight",), ("bias",), ("weight", "bias"), *[("gain",), ("weight", "gain")] * (kind == "standardised")]
}
IN_PLACE: dict[str, Callable[[], nn.Module]] = {
    "relu behind a convolution": lambda: net(conv(), nn.ReLU(inplace=True), conv(4), nn.ReLU(inplace=True)),
    "relu behind a norm": lambda: net(conv(), nn.GroupNorm(2, 4), nn.ReLU(inplace=True)),
    "relu behind a linear layer": lambda: net(nn.Flatten(2), nn.Linear(30, 4), nn.ReLU(inplace=True)),
    "relu behind a product": lambda: Net(lambda n, x: (x * n.p).relu_(), p=of_lengths(5)),
    "relu behind an operation without a rule": lambda: Net(lambda n, x: (x - n.p).relu_(), p=of_lengths(5)),
    "residual": lambda: Net(in_place_residual, conv=conv(2, 2, padding=1)),
    "mish": lambda: net(conv(), nn.Mish(inplace=True)),
}
NETWORKS = {
    f"{part}: {name}": make
    for part, networks in [
        ("layer", LAYERS),
        ("operation", OPERATIONS),
        ("weight", WEIGHTS),
        ("frozen", FROZEN),
        ("in place", IN_PLACE),
    ]
    for name, make in networks.items()
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("views", [None, 3])
def test_every_layer_and_operation_agrees_with_one_example_at_a_time(name, views):
    network = NETWORKS[name]()
    examples = examples_of(4, views=views)
    agrees(network, *examples)
    agrees(network, *examples, workers=2, images=3, memory_format="channels last", mish="pieces")


def test_mish_in_place_is_seen_through_every_name():
    def work(n: Any, x: Tensor) -> Tensor:
        y = n.conv(x)
        F.mish(y, inplace=True)
        return F.mish(input=y)

    agrees(Net(work, conv=conv()), *examples_of(4), mish="pieces")


def test_a_resnet18_with_group_normalisation_agrees():
    from dpvision.vision import torchvision

    network = torchvision.models.resnet18(num_classes=3, norm_layer=lambda channels: nn.GroupNorm(2, channels)).double()
    agrees(network, *examples_of(2, (3, 32, 32)), memory_format="channels last")


@pytest.mark.parametrize("scale_norm", [False, True])
@pytest.mark.parametrize("views", [None, 2])
def test_resnet50_agrees_with_one_example_at_a_time(scale_norm, views):
    model = {"family": "resnet50", "scale_norm": scale_norm, "groups": 4, "activation": "mish", "width": 1 / 16}
    network = build(model, 3, 3).double()
    for norm in (layer for layer in network.modules() if isinstance(layer, nn.GroupNorm)):
        nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    agrees(network, *examples_of(3, (3, 40, 40), views), memory_format="channels last", mish="pieces")


@pytest.mark.parametrize("way", WAYS[:3])
def test_the_projects_own_networks_agree_whichever_way_is_pinned(way, narrow):
    network = narrow()
    layers = {name: way for name, p in network.named_parameters() if p.dim() == 4}
    agrees(network, *examples_of(3, (1, 16, 16)), layers=layers, mish="pieces")


@pytest.mark.parametrize(
    "strange",
    [
        lambda x: x.to(memory_format=torch.channels_last),
        lambda x: x.permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2),
        lambda x: x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2),
        lambda x: x[:, :1].expand(-1, 2, -1, -1),
        lambda x: x[:1].expand(4, -1, -1, -1),
        lambda x: torch.cat([x, x], 3)[:, :, :, ::2],
        lambda x: torch.cat([x, x])[1::2],
        lambda x: x.flip(0),
    ],
)
@pytest.mark.parametrize("memory_format", ["contiguous", "channels last"])
@pytest.mark.parametrize("way", WAYS[:3])
def test_images_may_lie_in_memory_in_any_way(strange, memory_format, way):
    network = net(conv(padding=1), nn.GroupNorm(2, 4), nn.Mish(), conv(4, groups=2), nn.Tanh())
    images, labels = examples_of(4)
    agrees(network, strange(images), labels, memory_format=memory_format, layers={"0.weight": way, "3.weight": way})


@pytest.mark.parametrize("memory_format", ["contiguous", "channels last"])
@pytest.mark.parametrize("way", WAYS)
def test_an_activation_of_one_channel_may_have_gaps_in_memory(memory_format, way):
    """Take a slice of one channel: whole, it would lie in both orders at once."""
    network = Net(lambda n, x: n.conv(x[..., ::2]), (1, 5, 8), conv=conv(1))
    agrees(network, *examples_of(4, (1, 5, 8)), memory_format=memory_format, layers={"conv.weight": way})


def test_images_that_are_views_of_memory_in_any_way_agree_too():
    images, labels = examples_of(4, views=3)
    network = net(conv(padding=1), nn.GroupNorm(2, 4), nn.Mish())
    for strange in (
        images.transpose(0, 1).contiguous().transpose(0, 1),
        images[:, :1].expand(-1, 3, -1, -1, -1),
        images[:, ::2],
    ):
        agrees(network, strange, labels, memory_format="channels last")


@pytest.mark.parametrize("shape", [(4, 1, 5), (4, 5, 1), (2, 1, 2), (1, 4, 3), (1, 1, 2)], ids=str)
@pytest.mark.parametrize("memory_format", ["contiguous", "channels last"])
@pytest.mark.parametrize("first", [lambda c: nn.GroupNorm(1, c), lambda c: conv(c, 2, 1), lambda c: nn.Mish()])
def test_images_with_a_side_or_a_channel_of_one_agree(shape, memory_format, first):
    """Such images agree in either order in memory."""
    network = net(first(shape[0]), nn.GroupNorm(1, 2 if isinstance(first(1), nn.Conv2d) else shape[0]), shape=shape)
    for count, views in product((1, 3), (None, 1, 2)):
        agrees(network, *examples_of(count, shape, views), memory_format=memory_format, mish="pieces")


def test_an_empty_batch_is_nothing():
    for views in (None, 3):
        network = net(conv())
        found = ClippedSum(network, CLIP)(*examples_of(0, views=views))
        assert [total.shape for total in found.sums] == [p.shape for p in network.parameters()]
        assert not vector(found.sums).any()
        assert (len(found.losses), len(found.norms)) == (0, 0)


def test_nothing_is_left_behind():
    network, (images, labels) = net(conv(), nn.GroupNorm(2, 4)), examples_of(3)
    before = copy.deepcopy(network.state_dict())
    ClippedSum(network, CLIP, choices=UNTIMED)(images.requires_grad_(), labels)
    assert all(p.grad is None for p in network.parameters())
    assert images.grad is None
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


@st.composite
def networks(draw: Any) -> tuple[nn.Module, Shape, dict[str, str]]:
    """Draw layers of random geometry one behind the other, and random ways for them."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9)))
    layers: list[nn.Module] = []
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    for _ in range(draw(st.integers(1, 5))):
        x = nn.Sequential(*layers)(torch.zeros(1, *shape))
        channels = x.shape[1]
        groups = draw(st.sampled_from([d for d in range(1, channels + 1) if channels % d == 0]))
        kind = draw(st.sampled_from(["convolution", "convolution", "standardised", "norm", "activation", "pool", "linear"]))
        if kind in ("convolution", "standardised"):
            options = {"stride": draw(pair), "padding": draw(pair), "dilation": draw(pair), "bias": draw(st.booleans())}
            outputs = groups * draw(st.integers(1, 3))
            layer = {"convolution": nn.Conv2d, "standardised": StandardizedConv2d}[kind]
            made: nn.Module = layer(channels, outputs, draw(pair), groups=groups, **options)
        elif kind == "norm":
            norms = [nn.GroupNorm(groups, channels), nn.LayerNorm(x.shape[1:]), nn.InstanceNorm2d(channels, affine=True)]
            made = draw(st.sampled_from(norms))
        elif kind == "activation":
            made = draw(st.sampled_from([nn.Mish(), nn.Tanh(), nn.PReLU(channels), nn.ELU()]))
        else:
            made = nn.AvgPool2d(draw(pair), ceil_mode=True) if kind == "pool" else nn.Linear(x.shape[3], 3)
        try:
            made(x)
        except (RuntimeError, ValueError):  # too small for it
            continue
        layers.append(made)
    ways = {f"{i}.weight": draw(st.sampled_from(WAYS[:3])) for i, m in enumerate(layers) if isinstance(m, nn.Conv2d)}
    return net(*layers, shape=shape), shape, ways


@settings(max_examples=15, deadline=None)
@given(
    made=networks(),
    count=st.integers(1, 4),
    views=st.sampled_from([None, 1, 2]),
    cut=st.fixed_dictionaries(
        {
            "images": st.integers(1, 9),
            "workers": st.integers(1, 2),
            "memory_format": st.sampled_from(list(fast.FORMATS)),
            "mish": st.sampled_from(["pieces", "torch"]),
        }
    ),
)
def test_any_small_network_agrees_with_one_example_at_a_time(made, count, views, cut):
    network, shape, ways = made
    rtol = 1e-8  # norms are enlarged by roundings, where filters of one weight are standardised by the root of the floor
    agrees(network, *examples_of(count, shape, views), rtol=rtol, layers=ways, **cut)


# --- what is refused ---


def written(how: Callable[[Tensor, Tensor], Any]) -> Callable[[], nn.Module]:
    def work(n: Any, x: Tensor) -> Tensor:
        y = n.conv(x)
        how(y, n.p)
        return y

    return lambda: Net(work, conv=conv(), p=of_lengths(3))


def into_a_buffer(n: Any, x: Tensor) -> Tensor:
    """Hide what is made of data in a tensor that was not."""
    buffer = torch.zeros(len(x), 2, 6, 5, dtype=x.dtype)
    buffer[:, :, 1:] = x[:, :, 1:]
    return torch.tanh(n.conv(buffer))


MIXING: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "the mean subtracted": lambda n, x: n.conv(x - x.mean(0)),
    "a softmax over the batch": lambda n, x: n.conv(x).softmax(0),
    "a cumulative sum": lambda n, x: n.conv(x).cumsum(0),
    "neighbours added": lambda n, x: n.conv(x + x.flip(0)),
    "divided by the largest": lambda n, x: n.conv(x) / n.conv(x).abs().amax(),
    "a mean without a gradient subtracted": lambda n, x: n.conv(x - x.mean(0).detach()),
    "those before counted, without a gradient": lambda n, x: n.conv(x + x.detach().cumsum(0)),
    "the largest counted": lambda n, x: n.conv(x) * (1 + (x.mean((1, 2, 3), True) >= x.mean()).to(x)),
}


def following() -> dict[str, nn.Module]:
    return {"norm": nn.BatchNorm2d(2), "conv": conv()}


class OwnProduct(torch.autograd.Function):
    """A function x * p that the tape does not see."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: Tensor) -> Tensor:
        ctx.save_for_backward(x, p)
        return x * p

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, p = ctx.saved_tensors
        return g * p, (g * x).sum(0)


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "x.mul_(p)": (written(lambda y, p: y.mul_(p)), r"mul_ \(p\): it writes"),
    "x.add_(p)": (written(lambda y, p: y.add_(p)), r"add_ \(p\): it writes"),
    "x *= p": (written(lambda y, p: y.__imul__(p)), r"\(p\): it writes"),
    "x -= p": (written(lambda y, p: y.__isub__(p)), r"\(p\): it writes"),
    "x[0] = p": (written(lambda y, p: y.__setitem__((slice(None), 0), p)), r"\(p\)"),
    "batch normalisation": (lambda: net(conv(), nn.BatchNorm2d(4)), r"\(1.weight\).*depends on the others.*GroupNorm"),
    "one row of a weight per example": (
        lambda: Net(lambda n, x: x.flatten(1, 2) * n.p[torch.zeros(len(x), dtype=torch.long)][:, None], p=of_lengths(1, 5)),
        r"\(p\): .*rows are shared by all examples.*\.expand",
    ),
    "batch normalisation without weights": (
        lambda: net(conv(), nn.BatchNorm2d(4, affine=False)),
        "batch_norm.*depends on the others",
    ),
    "batch normalisation that keeps no statistics": (
        lambda: net(conv(), nn.BatchNorm2d(4, track_running_stats=False)).eval(),
        r"\(1.weight\).*depends on the others",
    ),
    "instance normalisation with statistics": (
        lambda: net(conv(), nn.InstanceNorm2d(4, affine=True, track_running_stats=True)),
        r"\(1.weight\).*running statistics",
    ),
    "the batch in another dimension": (
        lambda: Net(lambda n, x: n.linear(x.transpose(0, 1)).transpose(0, 1), linear=nn.Linear(5, 4)),
        r"\(linear.weight\).*not along the first dimension",
    ),
    "the batch and positions in one dimension": (
        lambda: Net(lambda n, x: n.linear(x.flatten(0, 1)).unflatten(0, (-1, 2)), linear=nn.Linear(5, 4)),
        r"\(linear.weight\).*not along the first dimension",
    ),
    "a mean of all times a weight": (
        lambda: Net(lambda n, x: x + x.mean() * n.p, p=of_lengths(5)),
        r"\(p\).*not along the first dimension",
    ),
    "an output with the examples last": (
        lambda: Net(lambda n, x: torch.einsum("bi,oi->ob", x.flatten(1), n.p).t(), p=of_lengths(7, 60)),
        r"einsum \(p\).*examples first",
    ),
    "a buffer that follows the data": (
        lambda: Net(lambda n, x: n.conv(x - n.norm.running_mean.lerp_(x.mean((0, 2, 3)), 0.1)[:, None, None]), **following()),
        "norm.running_mean.*made of the data",
    ),
    "an operation of one's own": (
        lambda: Net(
            lambda n, x: n.conv(x).flatten(1)[:, :5] + 1e-6 * OwnProduct.apply(x[:, 0, 0], n.p), conv=conv(), p=of_lengths(5)
        ),
        "^p: .*not understood",
    ),
    "less than single precision": (lambda: net(conv(), nn.GroupNorm(2, 4)).bfloat16(), "float32"),
    "nothing to train": (lambda: frozen(nn.Linear(5, 3), "weight", "bias"), "no parameter .* is trainable"),
    "several outputs": (lambda: Net(lambda n, x: n.both(x.flatten(2))[0], both=nn.LSTM(30, 4, batch_first=True)), r"\(both\."),
    **{name: (lambda work=work: Net(work, conv=conv(2, 4)), "mixes the examples") for name, work in MIXING.items()},
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("views", [None, 2])
def test_it_is_refused_with_a_reason(name, views):
    make, reason = REFUSED[name]
    network = make()
    with pytest.raises(Refused, match=reason):
        ClippedSum(network, CLIP, choices=UNTIMED)(*examples_of(5, views=views))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Net(into_a_buffer, conv=conv()), id="data copied into a buffer"),
        pytest.param(
            lambda: Net(lambda n, x: torch.cat([n.p.expand(len(x), 1, 30), x.flatten(2)], 1).tanh(), p=of_lengths(1, 1, 30)),
            id="a token before a sequence",
        ),
        pytest.param(
            lambda: Net(lambda n, x: n.linear(x.transpose(0, 1)).transpose(0, 1).tanh(), (3, 6, 5), linear=nn.Linear(5, 4)),
            id="as many channels as examples, and the two exchanged",
        ),
    ],
)
def test_it_is_right_or_refused(make):
    network = make()
    images, labels = examples_of(3, (3, 6, 5) if network.head.in_features == 72 else SHAPE)
    images *= torch.tensor([0.1, 1.0, 3.0]).view(-1, 1, 1, 1)
    with suppress(Refused):
        agrees(network, images, labels)


def test_a_network_that_mixes_is_refused_even_if_the_first_batch_is_one_example():
    with pytest.raises(Refused, match="mixes the examples"):
        ClippedSum(Net(MIXING["the mean subtracted"], conv=conv()), CLIP, choices=UNTIMED)(*examples_of(1))


@pytest.mark.parametrize("side", [1, -1])
def test_a_network_that_mixes_far_from_zero_is_refused_on_either_side(side):
    """Scale by whether anything lies far out; no gradient flows through that look."""

    def work(n: Any, x: Tensor) -> Tensor:
        return n.linear(x) / (1 + F.relu(side * x.detach().flatten() - 30).max())

    with pytest.raises(Refused, match="mixes the examples"):
        ClippedSum(Net(work, linear=nn.Linear(5, 5)), CLIP, choices=UNTIMED)(*examples_of(4))


def test_what_is_lost_where_the_first_gradients_are_zero_is_caught(monkeypatch):
    """A scalar that starts at 0 leaves no gradient behind it to compare, yet."""

    def work(n: Any, x: Tensor) -> Tensor:
        return x + n.scale * n.linear(x)

    network = Net(work, scale=torch.tensor(0.0), linear=nn.Linear(5, 5))
    network.head.register_parameter("bias", None)
    monkeypatch.setitem(rules.RULES, F.linear, a_bias_lost)
    with pytest.raises(Refused, match="linear.bias"):
        ClippedSum(network, CLIP, choices=UNTIMED)(*examples_of(4))


@pytest.mark.parametrize("first", [torch.nan, torch.inf, 1e300])
def test_examples_that_are_not_finite_do_not_pass_for_a_check(first, monkeypatch):
    monkeypatch.setitem(rules.RULES, F.linear, a_bias_lost)
    way, (images, labels) = ClippedSum(net(conv()), CLIP, choices=UNTIMED), examples_of(5)
    images[0] *= first
    with pytest.raises(Refused, match="^2.bias"):
        way(images, labels)
        way(*examples_of(5))


def test_examples_that_are_not_finite_are_no_reason_to_refuse():
    network, (images, labels) = net(conv()), examples_of(4)
    images[0], images[1, 0, 0, 0] = torch.nan, torch.inf
    found = ClippedSum(network, CLIP, choices=UNTIMED)(images, labels)
    assert found.norms.isfinite().tolist() == [False, False, True, True]


# --- the engine's own check ---


def a_bias_lost(tape: Tape, func: Any, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return tape.apply(rules.Linear(tape, tape.use(weight), None, bias), input)


def a_weight_doubled(tape: Tape, func: Any, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    linear = rules.Linear(tape, tape.use(weight), tape.use_any(bias), bias)
    doubled = lambda x, g: rules.keep(linear.weight, 2 * torch.bmm(g.transpose(1, 2), x))  # noqa: E731
    linear._ways = lambda x, g: {"product": lambda: doubled(x, g)}
    return tape.apply(linear, input)


@pytest.mark.parametrize(("rule", "name"), [(a_bias_lost, "2.bias"), (a_weight_doubled, "2.weight")])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_rule_that_is_wrong_is_caught_with_the_parameters_name(rule, name, precision, monkeypatch):
    monkeypatch.setitem(rules.RULES, F.linear, rule)
    way = ClippedSum(in_precision(net(conv()).float(), precision), CLIP, choices=UNTIMED)
    with pytest.raises(Refused, match=rf"^(network\.)?{name}: "):
        way(*examples_of(5, dtype=torch.float32))


def test_a_weight_used_behind_the_tapes_back_is_caught():
    def work(n: Any, x: Tensor) -> Tensor:
        with torch._C.DisableTorchFunction():
            return torch.tanh(x * n.p)

    with pytest.raises(Refused, match="^p: "):
        ClippedSum(Net(work, p=of_lengths(5)), CLIP, choices=UNTIMED)(*examples_of(4))


def test_normalising_single_numbers_does_not_enlarge_rounding_in_float32():
    """One group a channel on maps pooled to one pixel gives a scale of 316, and its cube where terms should cancel."""
    torch.manual_seed(0)
    model = {"family": "resnet9", "scale_norm": True, "groups": "channels", "norm": "group", "order": "norm-activation"}
    network = build(model | {"width": 0.25}, 3, 1)
    ClippedSum(network, 1.0).check(*examples_of(5, (1, 8, 8), dtype=torch.float32))


def test_a_layer_that_is_unfrozen_later_gets_no_gradient_that_is_not_clipped():
    network = net(frozen(conv(), "weight", "bias"), nn.Tanh())
    way = ClippedSum(network, 1.0, choices=UNTIMED)
    way(*examples_of(3))
    network[0].requires_grad_(True)
    way(*examples_of(3))
    assert all(p.grad is None for p in network.parameters())


def test_a_network_that_tosses_coins_passes_the_check():
    ClippedSum(net(conv(), nn.Dropout(0.5), nn.Tanh(), nn.Dropout2d(0.5)), CLIP, choices=UNTIMED)(*examples_of(6))


def test_as_many_copies_of_a_weight_as_the_check_has_examples_are_no_copies_for_them():
    agrees(Net(lambda n, x: x * n.p.expand(3, 5).mean(0), p=of_lengths(5)), *examples_of(3))


def test_a_network_of_positive_inputs_alone_passes_the_check():
    images, labels = examples_of(5)
    agrees(Net(lambda n, x: n.conv(x.log()), conv=conv()), images.abs() + 0.1, labels)


@pytest.mark.parametrize("causal", [False, True])
def test_a_transformer_that_tosses_coins_passes_the_check(causal):
    class Causal(nn.TransformerEncoderLayer):
        def forward(self, x: Tensor) -> Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype) if causal else None
            return super().forward(x, mask, is_causal=causal)

    network = net(nn.Flatten(1, 2), nn.Linear(5, 6), Causal(6, 2, 7, 0.3, batch_first=True))
    ClippedSum(network, CLIP, choices=UNTIMED)(*examples_of(6))


class Losses:
    @staticmethod
    def divided_by_their_number(outputs: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(outputs, labels, reduction="none") / len(labels)

    @staticmethod
    def weighted_by_how_rare_the_label_is(outputs: Tensor, labels: Tensor) -> Tensor:
        rare = 1 / torch.bincount(labels, minlength=3).clamp(min=1).to(outputs)
        return F.cross_entropy(outputs, labels, rare, reduction="none")


@pytest.mark.parametrize("loss", [Losses.divided_by_their_number, Losses.weighted_by_how_rare_the_label_is])
@pytest.mark.parametrize("views", [None, 2])
def test_a_loss_that_mixes_the_examples_is_refused(loss, views):
    with pytest.raises(Refused, match="mixes the examples"):
        ClippedSum(net(conv()), CLIP, loss=loss, choices=UNTIMED)(*examples_of(5, views=views))


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("mix", [lambda x: x - x.mean(0), lambda x: x.cumsum(0).detach() + x])
def test_a_network_that_mixes_sentences_is_refused(mix, count):
    class Mixing(nn.Embedding):
        def forward(self, x: Tensor) -> Tensor:
            return mix(super().forward(x))

    network = nn.Sequential(Mixing(11, 4), nn.Flatten(), nn.Linear(12, 3)).double()
    with pytest.raises(Refused, match="mixes the examples"):
        ClippedSum(network, CLIP, choices=UNTIMED)(torch.randint(1, 11, (count, 3)), torch.randint(3, (count,)))


def test_a_network_that_mixes_in_training_alone_is_refused_as_soon_as_it_does():
    network = Net(lambda n, x: n.conv(x - x.mean(0) if n.training else x), conv=conv()).eval()
    way = ClippedSum(network, CLIP, choices=UNTIMED)
    way(*examples_of(4))
    network.train()
    with pytest.raises(Refused, match="mixes the examples"):
        way(*examples_of(4))


def test_a_parameter_that_was_replaced_is_refused():
    network = net(conv())
    way = ClippedSum(network, CLIP, choices=UNTIMED)
    way(*examples_of(4))
    network[0].bias = nn.Parameter(torch.zeros(4, dtype=torch.float64))
    with pytest.raises(Refused, match="replaced"):
        way(*examples_of(4))


@pytest.mark.parametrize("way", WAYS[:3])
def test_a_network_may_change_its_precision(way):
    network, (images, labels) = net(conv()).float(), examples_of(4)
    clipped = ClippedSum(network, CLIP, choices=UNTIMED | {"layers": {"0.weight": way}})
    clipped(images.float(), labels)
    network.double()
    is_the_clipped_sum(clipped, rows_of(network, images, labels), images, labels)


def test_workers_do_not_find_what_another_left_in_the_network():
    def work(n: Any, x: Tensor) -> Tensor:
        n.skipped = n.first(x)
        y = n.second(n.skipped.tanh())
        for _ in range(20):
            y = y.sin()
        return y + n.skipped

    network = Net(work, first=conv(2, 4, padding=1), second=conv(4, 4, padding=1))
    del network.skipped
    agrees(network, *examples_of(48), workers=2, images=2)


@pytest.mark.parametrize("workers", [1, 2])
def test_autocast_around_the_call_is_for_the_network_alone(workers):
    network, (images, labels) = net(conv(), nn.GroupNorm(2, 4)).float(), examples_of(6, dtype=torch.float32)
    choices = UNTIMED | {"workers": workers, "images": 1}
    inside = ClippedSum(in_precision(network, "bfloat16"), 1e-3, choices=choices)(images, labels)
    way = ClippedSum(network, 1e-3, choices=choices)
    with torch.autocast("cpu", torch.bfloat16):
        around = way(images, labels)
        alone = way(images[:1], labels[:1])
    torch.testing.assert_close(vector(around.sums), vector(inside.sums), rtol=1e-5, atol=0)
    assert vector(alone.sums).norm() <= 1e-3


@pytest.mark.parametrize("clip", [0.0, -1.0, torch.inf, torch.nan])
def test_a_norm_to_clip_to_is_positive_and_finite(clip):
    with pytest.raises(ValueError, match="positive, finite"):
        ClippedSum(net(conv()), clip)


def test_views_that_are_not_as_many_as_said_are_an_error():
    with pytest.raises(ValueError, match="8 views"):
        ClippedSum(nn.Linear(4, 3), CLIP, views=8)(torch.randn(5, 2, 4), torch.randint(3, (5,)))


def test_timing_tosses_no_coins():
    network, (images, labels) = net(conv(), nn.Dropout(0.5)), examples_of(4)
    torch.manual_seed(5)
    timed = ClippedSum(network, CLIP)
    first = timed(images, labels)
    torch.manual_seed(5)
    assert torch.equal(ClippedSum(network, CLIP, choices=timed.choices)(images, labels).norms, first.norms)


# --- no example is worth more than C ---


@pytest.mark.parametrize("workers", [1, 2])
def test_dropout_gives_the_same_bits_for_the_same_coins(workers):
    network, (images, labels) = net(conv(), nn.Dropout(0.5)), examples_of(32)
    way = ClippedSum(network, CLIP, choices=UNTIMED | {"workers": workers, "images": 2})
    results = []
    for _ in range(4):
        torch.manual_seed(3)
        results.append(vector(way(images, labels).sums))
    assert all(torch.equal(result, results[0]) for result in results)
    torch.manual_seed(4)
    assert not torch.equal(vector(way(images, labels).sums), results[0])


SMALL_SHAPE = (16, 3, 4)


def bare(first: Callable[..., nn.Module] = nn.Conv2d) -> nn.Module:
    """Build a network with gradients as large and as small as its images; every way fits both convolutions."""
    layers = [first(16, 16, 3, padding=1, bias=False), nn.Mish(), nn.Conv2d(16, 16, 3, padding=1, bias=False)]
    return nn.Sequential(*layers, nn.Mish(), nn.Flatten(), nn.Linear(192, 3, bias=False))


def no_example_moves_it_by_more_than_c(network: nn.Module, views: int | None, precise: float = 1e-6, **choices: Any) -> None:
    way = ClippedSum(network, CLIP, choices=UNTIMED | choices)
    images, labels = examples_of(10, SMALL_SHAPE, views, torch.float32)
    way(images[:3], labels[:3])
    scales = torch.tensor([1.0, 0.0, 1e-6, 1e-3, 1e4, 1e8, 1e15, 1e30, 1.0, 1.0])
    images *= scales.view(-1, *[1] * (images.dim() - 1))
    images[8].view(-1)[3], images[9].view(-1)[5] = torch.nan, torch.inf
    with torch.no_grad():  # the least likely class: a right answer has no gradient
        labels = network(images if views is None else images[:, 0]).argmin(1)
    found = way(images, labels)
    assert not found.norms[8:].isfinite().any()
    assert found.norms[:6].isfinite().all()
    assert found.norms[5] > 1e3 * found.norms[0] > 1e6 * found.norms[2]
    everybody = vector(found.sums)
    assert everybody.isfinite().all()
    for one in range(len(images)):
        others = torch.arange(len(images)) != one
        without = vector(way(images[others], labels[others]).sums)
        assert (everybody - without).norm() <= CLIP * (1 + precise)
        alone = vector(way(images[one : one + 1], labels[one : one + 1]).sums)
        assert alone.norm() <= CLIP
        assert alone.any() == (one != 1 and found.norms[one].isfinite())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("views", [None, 3])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("first", [nn.Conv2d, StandardizedConv2d])
def test_no_example_moves_the_sum_by_more_than_c(way, views, precision, first):
    network = in_precision(bare(first), precision)
    layers = {name: way for name, p in network.named_parameters() if p.dim() == 4}
    no_example_moves_it_by_more_than_c(network, views, layers=layers)


@pytest.mark.parametrize("cut", [{"images": 1}, {"images": 2, "workers": 2}, {"memory_format": "channels last", "images": 4}])
def test_no_example_moves_the_sum_by_more_than_c_however_it_is_cut(cut):
    no_example_moves_it_by_more_than_c(bare(), 3, **cut)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", [nn.Conv2d, StandardizedConv2d])
def test_a_norm_is_never_less_than_what_is_added(way, first):
    """Gradients of a constant and of a lonely pixel have products of patches that all add up, and that all cancel."""
    network = bare(first)
    layers = {name: way for name, p in network.named_parameters() if p.dim() == 4}
    images = torch.zeros(4, *SMALL_SHAPE)
    images[0], images[1, 0, 0, 0], images[2, 3] = 3.0, 5.0, 7.0
    images[3] = torch.tensor([1e3, -1e3]).repeat(16, 3, 2)
    way = ClippedSum(network, 1e-3, choices=UNTIMED | {"layers": layers})
    for image, label in zip(images, torch.tensor([0, 1, 2, 0]), strict=True):
        assert 0.99e-3 < vector(way(image[None], label[None]).sums).norm() <= 1e-3


@pytest.mark.parametrize("workers", [1, 2])
def test_examples_that_all_overflow_sum_to_zero(workers):
    network, (images, labels) = bare(), examples_of(4, SMALL_SHAPE, dtype=torch.float32)
    way = ClippedSum(network, CLIP, choices=UNTIMED | {"workers": workers})
    way(images, labels)
    found = way(images * torch.nan, labels)
    assert [total.shape for total in found.sums] == [p.shape for p in network.parameters()]
    assert not vector(found.sums).any()
    assert not found.norms.isfinite().any()
    assert len(found.losses) == 4


def test_what_overflows_leaves_the_others_as_they_are():
    network, (images, labels) = bare().double(), examples_of(6, SMALL_SHAPE)
    images[3], images[4, 0, 0, 0] = torch.nan, torch.inf
    rest = torch.tensor([0, 1, 2, 5])
    way = ClippedSum(network, CLIP, choices=UNTIMED)
    found, expected = way(images, labels), way(images[rest], labels[rest])
    torch.testing.assert_close(vector(found.sums), vector(expected.sums), rtol=0, atol=1e-10)
    torch.testing.assert_close(found.norms[rest], expected.norms, rtol=0, atol=1e-10)


@pytest.mark.parametrize("way", WAYS)
def test_in_bfloat16_norms_and_sums_are_finer(way):
    network, (images, labels) = bare(), examples_of(6, SMALL_SHAPE, dtype=torch.float32)
    expected = rows_of(network, images, labels)
    low = in_precision(network, "bfloat16")
    layers = {name: way for name, p in low.named_parameters() if p.dim() == 4}
    found = ClippedSum(low, 1e9, choices=UNTIMED | {"layers": layers})(images, labels)
    assert {t.dtype for t in (*found.sums, found.losses)} == {torch.float32}
    assert found.norms.dtype in (torch.float32, torch.float64)
    assert 1e-4 < (vector(found.sums) - expected.sum(0)).norm() / expected.sum(0).norm() < 0.1
    torch.testing.assert_close(found.norms, expected.norm(dim=1), rtol=0.1, atol=0)


LOW = ["prelu", "convolution of sequences", "transposed convolution", "layer norm", "instance norm", "group norm"]
LOW_OPERATIONS = ["matmul", "einsum", "p - x", "x * p", "addmm", "bilinear", "conv1d", "a scalar before a residual"]
LOW_WEIGHTS = ["masked", "a product of two", "weight normalisation", "the same module twice", "a standardised module twice"]


@pytest.mark.parametrize(
    "make",
    [
        *(pytest.param(LAYERS[name], id=name) for name in LOW),
        *(pytest.param(OPERATIONS[name], id=name) for name in LOW_OPERATIONS),
        *(pytest.param(WEIGHTS[name], id=name) for name in LOW_WEIGHTS),
        pytest.param(lambda: net(conv(2, 4, 3, padding="same"), nn.Tanh()), id="padding that keeps the size"),
        pytest.param(lambda: net(frozen(conv(), "weight"), nn.Tanh()), id="a frozen weight"),
        pytest.param(lambda: net(conv(), conv(4, 4, 3, padding="same")), id="padding that keeps the size, second"),
        pytest.param(lambda: net(conv(), frozen(conv(4), "weight"), nn.Tanh()), id="a frozen weight, second"),
        pytest.param(lambda: net(conv(), nn.Flatten(2), nn.Conv1d(4, 4, 3)), id="convolution of sequences, second"),
        pytest.param(lambda: Net(lambda n, x: n.conv(x) @ n.p, conv=conv(), p=of_lengths(3, 4)), id="matmul, second"),
        pytest.param(lambda: net(conv(), nn.RMSNorm(3), nn.Tanh()), id="rms norm, second"),
        pytest.param(lambda: net(nn.Flatten(2), nn.Linear(30, 8), nn.Tanh(), nn.Linear(8, 4)), id="linear on sequences"),
    ],
)
def test_in_bfloat16_every_example_is_worth_its_norm_or_c(make):
    network = make().float()
    images, labels = examples_of(6, dtype=torch.float32)
    images *= torch.logspace(-1, 1, 6).view(-1, 1, 1, 1)
    low = in_precision(network, "bfloat16")
    norms = rows_of(low, images, labels).norm(dim=1)
    clip = norms.median().item()
    way = ClippedSum(low, clip, choices=UNTIMED)
    torch.testing.assert_close(way(images, labels).norms, norms, rtol=0.1, atol=0)
    for image, label in zip(images, labels, strict=True):
        found = way(image[None], label[None])
        assert {total.dtype for total in found.sums} == {torch.float32}
        assert vector(found.sums).norm() == pytest.approx(min(clip, found.norms.item()), rel=1e-4)
        assert vector(found.sums).norm() <= clip


# --- Mish ---


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2e-2)], ids=str
)
@pytest.mark.parametrize("shape", [(70001,), (3, 5, 7), (2, 3, 4, 5), (0,), ()], ids=str)
def test_mish_in_pieces_is_mish(dtype, tolerance, shape):
    x = torch.empty(shape, dtype=torch.float64).uniform_(-100, 100)
    x = torch.where(torch.rand(shape) < 0.5, x, x / 20).to(dtype)
    for order in (x, x.to(memory_format=torch.channels_last)) if x.dim() == 4 else (x,):
        ours, theirs = (order.detach().clone().requires_grad_() for _ in range(2))
        found, expected = Mish.apply(ours), F.mish(theirs.double())
        assert found.dtype == dtype
        assert found.stride() == order.stride()
        torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
        g = torch.randn_like(order)
        found.backward(g)
        expected.backward(g.double())
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=tolerance, atol=tolerance)


def test_mish_in_pieces_of_a_part_of_a_tensor_is_mish():
    x = torch.randn(6, 2, 4, 5, dtype=torch.float64)[2:4]
    torch.testing.assert_close(Mish.apply(x), F.mish(x), rtol=1e-12, atol=1e-12)


# --- choices ---


def test_what_is_chosen_by_timing_agrees_and_given_again_gives_the_same_bits(monkeypatch):
    network, (images, labels) = bare(), examples_of(12, SMALL_SHAPE, dtype=torch.float32)
    timed = ClippedSum(network, CLIP)
    first = timed(images, labels)
    assert set(timed.choices) == {"workers", "images", "memory_format", "mish", "layers"}
    assert set(timed.choices["layers"]) == {"0.weight", "2.weight", "5.weight"}
    monkeypatch.setattr(fast, "quickest", not_wanted)
    again = ClippedSum(network, CLIP, choices=copy.deepcopy(timed.choices))
    for found in (timed(images, labels), again(images, labels), again(images, labels)):
        assert torch.equal(vector(found.sums), vector(first.sums))
        assert torch.equal(found.norms, first.norms)
    assert again.choices == timed.choices
    rows = rows_of(network.double(), images.double(), labels)
    torch.testing.assert_close(first.norms, rows.norm(dim=1), rtol=1e-4, atol=0)


def test_choices_name_no_mish_where_there_is_none():
    network, (images, labels) = net(nn.Flatten(), nn.Linear(60, 4), nn.ReLU()), examples_of(6)
    timed = ClippedSum(network, CLIP)
    first = timed(images, labels)
    assert set(timed.choices) == {"workers", "images", "memory_format", "layers"}
    again = ClippedSum(network, CLIP, choices=timed.choices)(images, labels)
    assert all(torch.equal(one, other) for one, other in zip(first.sums, again.sums, strict=True))


def not_wanted(*_: Any) -> Any:
    raise AssertionError("timed, though everything was chosen")


def test_what_is_pinned_is_not_timed(monkeypatch):
    monkeypatch.setattr(fast, "quickest", not_wanted)
    monkeypatch.setattr(fast, "_seconds", not_wanted)
    ClippedSum(bare(), CLIP, choices=UNTIMED)(*examples_of(4, SMALL_SHAPE, dtype=torch.float32))


@pytest.mark.parametrize("first", [nn.Conv2d, StandardizedConv2d])
def test_any_split_of_the_same_parts_gives_the_same_result(first):
    network, (images, labels) = bare(first).double(), examples_of(8, SMALL_SHAPE, 2)
    results = [
        ClippedSum(network, CLIP, choices=UNTIMED | {"workers": workers, "images": size})(images, labels)
        for workers, size in product((1, 2, 3), (1, 4, 5, 64))
    ]
    for found in results[1:]:
        torch.testing.assert_close(vector(found.sums), vector(results[0].sums), rtol=0, atol=1e-10)
        torch.testing.assert_close(found.norms, results[0].norms, rtol=0, atol=1e-10)
        torch.testing.assert_close(found.losses, results[0].losses)


@pytest.mark.parametrize("first", [nn.Conv2d, StandardizedConv2d])
def test_what_is_made_of_the_weights_serves_one_step(first):
    network, (images, labels) = bare(first).double(), examples_of(4, SMALL_SHAPE)
    way = ClippedSum(network, CLIP, choices=UNTIMED | {"images": 1, "memory_format": "channels last"})
    way(images, labels)
    with torch.no_grad():
        for p in network.parameters():
            p.mul_(1.5).add_(0.1 * torch.randn_like(p))
    is_the_clipped_sum(way, rows_of(network, images, labels), images, labels)


@pytest.mark.parametrize("layer", ["0.weight", "2.weight"])
@pytest.mark.parametrize("way", ["gram", "quick"])
def test_a_way_that_does_not_fit_is_an_error_that_names_the_layer_and_what_would(layer, way):
    network = net(conv(groups=2, padding=1), nn.Tanh(), conv(4, groups=2, padding=1))
    with pytest.raises(ValueError, match=rf"^{layer}: .*{way}.*one, grouped, unfold"):
        ClippedSum(network, CLIP, choices=UNTIMED | {"layers": {layer: way}})(*examples_of(4))


@pytest.mark.parametrize("size", [2, 40])
def test_what_was_chosen_for_short_sequences_serves_long_ones(size):
    network = Net(lambda n, x: n.linear(x).tanh().mean(1), (2, 5), linear=nn.Linear(5, 4))
    layers = {"linear.weight": "gram", "head.weight": "gram"}
    inputs, labels = torch.randn(4, size, 5, dtype=torch.float64), torch.randint(3, (4,))
    agrees(network, inputs, labels, layers=layers)


def test_a_shared_weights_norm_is_not_taken_alone():
    """The norm of a sum is no sum of norms: pinning the way that computes norms alone is an error."""
    network = Net(lambda n, x: n.conv(n.conv(x)), SMALL_SHAPE, conv=conv(16, 16, padding=1))
    with pytest.raises(ValueError, match=r"^conv.weight: .*gram"):
        ClippedSum(network, CLIP, choices=UNTIMED | {"layers": {"conv.weight": "gram"}})(*examples_of(4, SMALL_SHAPE))


@pytest.mark.parametrize("views", [None, 3])
@pytest.mark.parametrize("way", WAYS[:3])
def test_each_use_of_a_shared_weight_has_gradients_of_its_own(way, views):
    """Keep both until they are added up: memory that a way borrows for one is not lent again for the other."""
    network = Net(lambda n, x: n.conv(n.conv(x).tanh()), SMALL_SHAPE, conv=conv(16, 16, padding=1))
    agrees(network, *examples_of(4, SMALL_SHAPE, views), layers={"conv.weight": way})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inplace", [nn.ReLU(inplace=True), nn.Mish(inplace=True)])
def test_what_is_written_over_a_standardised_output_is_not_taken_for_it(way, inplace):
    network = net(tilted(StandardizedConv2d(16, 16, 3, padding=1)), inplace, shape=SMALL_SHAPE)
    agrees(network, *examples_of(4, SMALL_SHAPE), layers={"0.weight": way})


# --- the properties notice what could go wrong ---


def property_of(views: int | None, way: str, first: Callable[..., nn.Module] = nn.Conv2d) -> None:
    """Check agreement in the small network whose every convolution can go every way."""
    network, (images, labels) = bare(first).double(), examples_of(4, SMALL_SHAPE, views)
    images *= torch.logspace(-1, 1, 4).view(-1, *[1] * (images.dim() - 1))
    agrees(network, images, labels, layers={"0.weight": way, "2.weight": way})


def halved(self: Weight, rows: Tensor, *_: Any) -> Tensor:
    return rows.sum(1) / 2


def without_its_version(self: Convolution, *args: Any, original: Callable = Convolution._output) -> Any:
    if self.made:
        self.made = (self.made[0], self.made[0]._version, self.made[2])
    return original(self, *args)


def without_its_bias(self: Convolution, *args: Any, original: Callable = Convolution._output) -> Any:
    y, gain, offset = original(self, *args)
    return y, gain, torch.zeros_like(offset)


def forgotten(self: Tape, weight: Any, *rest: Any, original: Callable = Tape.add_quickest) -> None:
    if self.name(weight) != "0.weight":
        original(self, weight, *rest)


def views_as_examples(self: ClippedSum, images: Tensor, labels: Tensor, original: Callable = ClippedSum.__call__) -> Gradients:
    views = images.shape[1]
    found = original(self, images.flatten(0, 1), labels.repeat_interleave(views))
    per_example = [of_views.view(-1, views).mean(1) for of_views in (found.losses, found.norms)]
    return Gradients([total / views for total in found.sums], *per_example)


def gram_with(factors_of: Callable[[Tensor, int], Tensor]) -> Callable:
    original = Convolution.gram

    def gram(self: Convolution, x: Tensor, g: Tensor, examples: int) -> Any:
        found = original(self, x, g, examples)
        scaled = lambda factors: g * factors_of(factors, len(g) // examples).view(-1, 1, 1, 1)  # noqa: E731
        found.total = lambda factors: self.of_weight(scaled(factors), x, self.weight.value)
        return found

    return gram


def neighbours(self: Convolution, x: Tensor, g: Tensor, examples: int, original: Callable = Convolution.grouped) -> Tensor:
    """Take views as if they lay view by view, though they lie example by example."""
    x, g = (t.unflatten(0, (-1, examples)).transpose(0, 1).flatten(0, 1) for t in (x, g))
    return original(self, x, g, examples)


def unclipped(norms: Tensor, clip: float, dtype: torch.dtype) -> Tensor:
    return torch.ones_like(norms, dtype=dtype)


def turned(self: Convolution, *rest: Any, original: Callable = Convolution.unfold) -> Tensor:
    return original(self, *rest).flip(-1)


ones = gram_with(lambda factors, views: torch.ones_like(factors).repeat(views))
mixed = gram_with(lambda factors, views: factors.repeat(views))
BUGS: list[tuple[str, Any, str, Any, Callable[[], None]]] = [
    ("half the squares", Weight, "squares", halved, lambda: property_of(None, "one")),
    ("half the squares, grouped", Weight, "squares", halved, lambda: property_of(3, "grouped")),
    ("half the squares, gram", Weight, "squares", halved, lambda: property_of(3, "gram")),
    ("a contribution forgotten", Tape, "add_quickest", forgotten, lambda: property_of(None, "one")),
    ("views taken for examples", ClippedSum, "__call__", views_as_examples, lambda: property_of(3, "one")),
    (
        "norms of the standardised weight",
        Standardized,
        "squares",
        Weight.squares,
        lambda: property_of(None, "one", StandardizedConv2d),
    ),
    (
        "norms of the standardised weight, gram",
        Standardized,
        "squares",
        Weight.squares,
        lambda: property_of(None, "gram", StandardizedConv2d),
    ),
    (
        "an output that was written over",
        Convolution,
        "_output",
        without_its_version,
        lambda: test_what_is_written_over_a_standardised_output_is_not_taken_for_it("gram", nn.Mish(inplace=True)),
    ),
    (
        "a bias taken for what the filters made",
        Convolution,
        "_output",
        without_its_bias,
        lambda: test_every_way_agrees_with_one_example_at_a_time(SMALL["standardised, tilted"], SMALL_SHAPE, "gram"),
    ),
    ("factors left out", Convolution, "gram", ones, lambda: property_of(None, "gram")),
    ("factors of neighbours", Convolution, "gram", mixed, lambda: property_of(3, "gram")),
    ("views of neighbours", Convolution, "grouped", neighbours, lambda: property_of(3, "grouped")),
    ("kernels turned round", Convolution, "unfold", turned, lambda: property_of(None, "unfold")),
    ("no clipping", fast, "clip_factors", unclipped, lambda: property_of(None, "one")),
    (
        "no clipping: C exceeded",
        fast,
        "clip_factors",
        unclipped,
        lambda: no_example_moves_it_by_more_than_c(bare(), None),
    ),
    ("half the squares: C exceeded", Weight, "squares", halved, lambda: no_example_moves_it_by_more_than_c(bare(), None)),
    (
        "views for examples: C exceeded",
        Convolution,
        "gram",
        mixed,
        lambda: no_example_moves_it_by_more_than_c(bare(), 3, layers={"0.weight": "gram", "2.weight": "gram"}),
    ),
]


@pytest.mark.parametrize(("owner", "name", "bug", "check"), [pytest.param(*bug[1:], id=bug[0]) for bug in BUGS])
def test_a_planted_bug_is_noticed(owner, name, bug, check, monkeypatch):
    check()
    monkeypatch.setattr(ClippedSum, "check", lambda *_: None)  # without the engine's own help
    monkeypatch.setattr(owner, name, bug)
    with pytest.raises(AssertionError):
        check()


def test_nothing_of_a_pass_stays_in_memory():
    """The data that a contribution holds must not hold the graph, and with it the contribution."""
    network = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.Tanh(), nn.Conv2d(16, 16, 3, padding=1), nn.Flatten())
    way = ClippedSum(network.double(), CLIP, choices={**UNTIMED, "layers": {"0.weight": "gram", "2.weight": "gram"}})
    for _ in range(3):
        way(torch.randn(2, 16, 3, 4, dtype=torch.float64), torch.tensor([0, 1]))
    gc.collect()
    assert not [each for each in gc.get_objects() if type(each) is Tape]
