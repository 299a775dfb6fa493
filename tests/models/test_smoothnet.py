"""SmoothNet and the networks of its authors' study: counts, and outputs and gradients of the same networks written out."""

from collections.abc import Iterator
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpvision.models.catalogue import MODELS
from dpvision.models.count import multiply_adds, parameter_count
from dpvision.models.options import counts_of_layers
from dpvision.models.smoothnet.options import Options, layers

MODEL = Options(family="smoothnet", label="SmoothNet").model_dump(exclude={"label"})
SMALL = {"width": 0.5, "depth": 3, "groups": 2}
CONNECTIONS = ["dense", "residual", "skip", "none"]


def shake(network: nn.Module) -> nn.Module:
    """Draw other weights than at the start, where normalisations scale by one and shift by nothing."""
    for parameter in network.parameters():
        nn.init.kaiming_normal_(parameter) if parameter.dim() > 1 else nn.init.normal_(parameter)
    return network


# --- counts ---


@pytest.mark.parametrize(
    ("width", "counts"),
    [
        (1.0, [101_017, 106_149, 146_121, 222_957]),
        (5.0, [379_465, 499_205, 1_472_825, 3_368_045]),
        (8.0, [601_069, 905_549, 3_391_853, 8_237_453]),
        (12.0, [913_565, 1_596_077, 7_182_557, 18_077_453]),
    ],
)
def test_the_dense_networks_have_the_parameters_of_the_authors(model, width, counts):
    with torch.device("meta"):
        assert [parameter_count(model(width=width, depth=depth)) for depth in (1, 2, 5, 8)] == counts


@pytest.mark.parametrize(
    ("connection", "norm", "thousands"),
    [
        ("residual", "group", {(1, 1): 103, (1, 8): 144, (5, 1): 447, (1, 5): 126}),
        ("residual", "layer", {(1, 1): 103, (1, 8): 144, (5, 1): 447}),
        ("residual", "instance", {(1, 1): 103, (1, 8): 143, (5, 1): 447}),
        ("residual", "none", {(1, 1): 103, (1, 2): 109, (1, 4): 120, (1, 8): 143, (5, 2): 591, (5, 4): 879, (8, 1): 776}),
        ("none", "none", {(1, 1): 101, (1, 2): 104, (1, 8): 121, (5, 1): 392, (5, 5): 680, (5, 8): 896, (8, 1): 634}),
        ("none", "none", {(1.4, 1): 127, (1.8, 1): 153, (2.6, 1): 210, (3.8, 1): 297}),
        ("skip", "none", {(1, 2): 104, (1, 8): 121}),
    ],
)
def test_the_other_networks_of_the_study_have_the_thousands_of_parameters_of_the_authors(model, connection, norm, thousands):
    with torch.device("meta"):
        found = {
            (width, depth): parameter_count(model(width=float(width), depth=depth, connection=connection, norm=norm)) // 1000
            for width, depth in thousands
        }
    assert found == thousands


def test_smoothnet_has_more_than_800_channels_at_its_widest_and_2048_features(model):
    with torch.device("meta"):
        network = model()
        assert network.stages(torch.empty(1, 3, 32, 32)).shape == (1, 801, 8, 8)
        assert network.classifier[0].in_features == 2048
        assert multiply_adds(network, [3, 32, 32]) == 1_055_035_648
        assert network(torch.empty(1, 3, 224, 224)).shape == (1, 10)


@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("shape", [[3, 32, 32], [1, 8, 8], [2, 33, 47]])
def test_the_counts_of_the_plan_are_those_of_the_network(model, connection, shape):
    changes = {"width": 2.6, "depth": 3, "connection": connection, "norm": "none"}
    with torch.device("meta"):
        network = model(7, shape[0], **changes)
    counted = counts_of_layers(layers(MODEL | changes, shape, 7))
    assert counted.multiply_adds == multiply_adds(network, shape)
    assert counted.parameters == sum(p.numel() for p in network.parameters() if p.dim() > 1)


def test_the_pooled_head_has_as_many_parameters(model):
    with torch.device("meta"):
        assert parameter_count(model(head="all")) == parameter_count(model()) == 3_391_853


def test_the_catalogue_has_smoothnet():
    assert MODELS["smoothnet"].model_dump(exclude={"label"}) == MODEL
    assert MODELS["smoothnet"].slug() == "smoothnet-w8d5"
    assert Options(family="smoothnet", label="S", width=1.4, depth=1, connection="none").slug() == "smoothnet-w1.4d1-none"
    assert Options(family="smoothnet", label="S", head="all").slug() == "smoothnet-w8d5-all"


# --- what it computes ---


def after(model: dict, x: Tensor, weights: Iterator[Tensor], halve: bool = False) -> Tensor:
    size = {"kernel_size": 2} if halve else {"kernel_size": 3, "stride": 1, "padding": 1}
    if model["pool"] != "none":
        x = {"max": F.max_pool2d, "average": F.avg_pool2d}[model["pool"]](x, **size)
    if model["norm"] == "batch":
        return F.batch_norm(x, None, None, next(weights), next(weights), training=True)
    if model["norm"] in ("group", "layer"):
        groups = {"group": model["groups"], "layer": 1}[model["norm"]]
        return F.group_norm(x, x.shape[1] if groups == "channels" else groups, next(weights), next(weights))
    return F.instance_norm(x) if model["norm"] == "instance" else x


def second_pixels(x: Tensor, channels: int) -> Tensor:
    there, height, width = x.shape[1:]
    found = x.new_zeros(len(x), channels, height // 2, width // 2)
    keep = min(there, channels)
    found[:, :keep] = x[:, :keep, 0 : 2 * (height // 2) : 2, 0 : 2 * (width // 2) : 2]
    return found


def written_out(model: dict, weights: Iterator[Tensor], x: Tensor) -> Tensor:
    """Compute the network, from the description in the paper and what is known of the authors' code."""
    act = {"selu": F.selu, "relu": F.relu, "leaky_relu": F.leaky_relu}[model["activation"]]
    depth, widths = model["depth"], (int(8 * model["width"]), int(16 * model["width"]))
    for stage, channels in enumerate(widths):
        if model["connection"] == "dense":
            if stage:
                x = F.avg_pool2d(F.conv2d(x, next(weights)), 2)
            for _ in range(depth):
                new = act(after(model, F.conv2d(x, next(weights), padding=1), weights))
                x = torch.cat((x, new), dim=1)
        elif model["connection"] == "residual":
            for i in range(depth):
                same = second_pixels(x, channels) if i == 0 else x
                x = F.conv2d(x, next(weights), stride=2) if i == 0 else F.conv2d(x, next(weights), padding=1)
                x = act(after(model, x, weights))
                x = act(after(model, F.conv2d(x, next(weights), padding=1), weights) + same)
        else:
            same = second_pixels(x, channels)
            for i in range(depth):
                x = F.conv2d(x, next(weights), next(weights), padding=1)
                x = act(after(model, x, weights, halve=i == depth - 1))
            if model["connection"] == "skip":
                x = x + same
    if model["connection"] == "dense":
        x = F.avg_pool2d(x, 2)
    if model["head"] == "all":
        x = F.adaptive_avg_pool1d(x.movedim(1, 3).flatten(1, 2), widths[1]).unflatten(1, x.shape[2:]).movedim(3, 1)
    else:
        x = x[:, len(x[0]) - widths[1] :]
    x = F.adaptive_avg_pool2d(x, 4).flatten(1)
    act = F.selu if model["activation"] == "selu" else F.relu
    x = act(F.linear(x, next(weights), next(weights)))
    x = act(F.linear(x, next(weights), next(weights)))
    return F.linear(x, next(weights), next(weights))


OF_THE_STUDY = [
    *(
        {"connection": connection, "pool": pool, "norm": "group"}
        for connection, pool in product(CONNECTIONS, ("max", "average"))
    ),
    *({"connection": connection, "norm": norm} for connection in CONNECTIONS for norm in ("layer", "instance", "none")),
    *({"connection": connection, "pool": "none", "norm": "group"} for connection in ("dense", "residual")),
    *(
        {"connection": connection, "activation": activation}
        for connection in CONNECTIONS
        for activation in ("relu", "leaky_relu")
    ),
    {"head": "all"},
    {"groups": "channels", "width": 0.25},
]


@pytest.mark.parametrize("changes", [*OF_THE_STUDY, {"connection": "residual", "norm": "batch"}], ids=str)
@pytest.mark.parametrize("size", [(16, 16), (17, 22)])
def test_outputs_are_those_of_the_network_written_out(model, changes, size):
    changes = SMALL | changes
    network = shake(model(**changes).double())
    images = torch.randn(3, 3, *size, dtype=torch.float64)
    weights = iter(list(network.parameters()))
    expected = written_out(MODEL | changes, weights, images)
    assert next(weights, None) is None
    assert expected.std() > 0.01
    torch.testing.assert_close(network(images), expected, atol=1e-10, rtol=0)


def test_smoothnet_itself_is_the_one_written_out(model):
    network = model().double()
    images = torch.randn(2, 3, 32, 32, dtype=torch.float64)
    with torch.no_grad():
        found = written_out(MODEL, iter(list(network.parameters())), images)
        torch.testing.assert_close(network(images), found, atol=1e-10, rtol=0)


# --- privacy ---


@pytest.mark.parametrize("changes", OF_THE_STUDY, ids=str)
def test_clipped_gradients_are_those_of_one_example_at_a_time(model, changes, clips_each_example):
    network = shake(model(3, **(SMALL | changes)).double())
    images, labels = torch.randn(4, 3, 32, 32, dtype=torch.float64), torch.tensor([0, 1, 2, 1])
    clips_each_example(network, images, labels)


def test_only_batch_normalisation_mixes_examples_and_it_is_refused_under_a_budget():
    for norm in ("group", "layer", "instance", "none"):
        options = Options(family="smoothnet", label="S", norm=norm)
        assert not options.mixes_examples() and not list(options.faults(private=True))
    batch = Options(family="smoothnet", label="S", norm="batch")
    assert batch.mixes_examples() and not list(batch.faults(private=False))
    ((key, why),) = batch.faults(private=True)
    assert key == "norm" and "not under differential privacy" in why


def test_nothing_is_computed_in_place(model):
    for activation in ("selu", "relu", "leaky_relu"):
        assert not any(getattr(layer, "inplace", False) for layer in model(**SMALL, activation=activation).modules())
