"""torchvision's networks: counts, the variants of SmoothNet's authors, and outputs and gradients of the same written out."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dpvision.curvature.product import Hessian
from dpvision.models.catalogue import MODELS
from dpvision.models.count import multiply_adds, parameter_count
from dpvision.models.options import counts_of_layers
from dpvision.models.torchvision.options import Options, layers
from dpvision.privacy.clipping import each_cross_entropy, loss_of, losses_of
from dpvision.training.precision import in_precision
from dpvision.vision import torchvision

MODEL = Options(family="torchvision", label="ResNet-18", network="resnet18").model_dump(exclude={"label"})
VARIANTS = [
    *(("resnet18", stem, True) for stem in ("original", "small", "bare")),
    *((network, stem, True) for network in ("resnet34", "densenet121", "efficientnet_b0") for stem in ("original", "small")),
    *(("densenet121", stem, False) for stem in ("original", "small")),
    ("resnet50", "original", True),
    ("densenet169", "original", False),
]
QUICK = [("resnet18", "small", True), ("densenet121", "small", False), ("efficientnet_b0", "small", True)]
LARGE = [(network, "small", True) for network in ("resnet50", "resnet152", "wide_resnet50_2", "densenet201")]
STAGES = {"resnet18": [2, 2, 2, 2], "resnet34": [3, 4, 6, 3], "resnet50": [3, 4, 6, 3]}
STAGES |= {"densenet121": [6, 12, 24, 16], "densenet169": [6, 12, 32, 32]}
of_all = pytest.mark.parametrize(("network", "stem", "relu"), VARIANTS)


def shake(network: nn.Module) -> nn.Module:
    """Draw scales and shifts as they may be after training; at the start they scale by one and shift by nothing."""
    for parameter in network.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=0.7, std=0.3)
    return network


# --- counts ---


@pytest.mark.parametrize(
    ("network", "stem", "relu", "count"),
    [
        ("resnet18", "original", True, 11_181_642),
        ("resnet18", "small", True, 11_173_962),
        ("resnet18", "bare", True, 11_173_834),
        ("resnet34", "original", True, 21_289_802),
        ("resnet50", "original", True, 25_557_032 - 990 * 2049),  # torchvision's, of 10 classes for 1,000
        ("resnet152", "original", True, 60_192_808 - 990 * 2049),
        ("wide_resnet50_2", "original", True, 68_883_240 - 990 * 2049),
        ("densenet169", "original", False, 14_149_480 - 990 * 1665),
        ("densenet201", "original", False, 20_013_928 - 990 * 1921),
        ("densenet121", "original", True, 6_964_106),
        ("densenet121", "original", False, 6_964_106),
        ("efficientnet_b0", "original", True, 4_020_358),
        ("efficientnet_b0", "small", True, 4_020_358),
        ("vgg11", "original", True, 132_863_336 - 990 * 4097),
        ("vgg11", "small", True, 132_863_336 - 990 * 4097),
        ("googlenet", "original", True, 13_004_888 - 990 * 3 * 1025),  # with both auxiliary classifiers
    ],
)
def test_the_number_of_parameters_is_that_of_the_authors(model, network, stem, relu, count):
    with torch.device("meta"):
        assert parameter_count(model(network=network, stem=stem, relu=relu)) == count


@pytest.mark.parametrize("network", ["resnet34", "densenet121"])
def test_a_small_stem_has_9_weights_a_filter_and_channel_and_the_original_49(model, network):
    with torch.device("meta"):
        original, small = (parameter_count(model(network=network, stem=stem)) for stem in ("original", "small"))
    assert original - small == (49 - 9) * 3 * 64


def test_the_catalogue_has_fair_and_literal_ones_side_by_side():
    named = {name: options for name, options in MODELS.items() if options.family == "torchvision"}
    literal = {name.removesuffix(", literal"): options.slug() for name, options in named.items() if name.endswith("literal")}
    fair = {name: options.slug() for name, options in named.items() if not name.endswith("literal")}
    assert literal == {
        "resnet18": "resnet18-bare",
        "resnet34": "resnet34",
        "densenet121": "densenet121-norelu",
        "efficientnet_b0": "efficientnet_b0",
    }
    assert fair == {name: f"{name}-small" for name in literal}
    assert {options.groups for options in named.values()} == {8}


@pytest.mark.parametrize(("network", "stem", "relu"), VARIANTS + LARGE)
@pytest.mark.parametrize("shape", [[1, 64, 64], [2, 33, 47]])
def test_the_counts_of_the_plan_are_those_of_the_network(model, network, stem, relu, shape):
    with torch.device("meta"):
        made = model(7, shape[0], network=network, stem=stem, relu=relu)
    counted = counts_of_layers(layers(MODEL | {"network": network, "stem": stem}, shape, 7))
    assert counted.parameters == sum(p.numel() for p in made.parameters() if p.dim() > 1)
    assert counted.multiply_adds == multiply_adds(made, shape)


@pytest.mark.parametrize("stem", ["original", "small"])
@pytest.mark.parametrize("shape", [[1, 64, 64], [2, 33, 47]])
def test_the_counts_of_the_plan_are_those_of_vgg11(model, stem, shape):
    with torch.device("meta"):
        made = model(7, shape[0], network="vgg11", stem=stem)
    counted = counts_of_layers(layers(MODEL | {"network": "vgg11", "stem": stem}, shape, 7))
    assert counted.parameters == sum(p.numel() for p in made.parameters() if p.dim() > 1)
    assert counted.multiply_adds == multiply_adds(made, shape)


@pytest.mark.parametrize("shape", [[1, 64, 64], [2, 33, 47]])
def test_the_counts_of_the_plan_are_those_of_googlenet_with_its_auxiliary_classifiers(model, shape):
    with torch.device("meta"):
        made = model(7, shape[0], network="googlenet")
    counted = counts_of_layers(layers(MODEL | {"network": "googlenet"}, shape, 7))
    assert counted.parameters == sum(p.numel() for p in made.parameters() if p.dim() > 1)
    in_training = 16 * (512 + 528) * 128 + 2 * (2048 * 1024 + 1024 * 7)
    assert counted.multiply_adds == multiply_adds(made, shape) + in_training


# --- what it computes ---


def written_out(network: str, stem: str, relu: bool, groups: int, weights: Iterator[Tensor], x: Tensor) -> Tensor:
    """Compute the network, from the papers that proposed it; weights are in the order of use, shortcuts last."""
    act: Callable = F.silu if network == "efficientnet_b0" else F.relu if relu else lambda y: y

    def norm(y: Tensor) -> Tensor:
        return F.group_norm(y, groups, next(weights), next(weights))

    def conv(y: Tensor, kernel: int, stride: int = 1, apart: bool = False) -> Tensor:
        return F.conv2d(y, next(weights), stride=stride, padding=kernel // 2, groups=y.shape[1] if apart else 1)

    def resnet(y: Tensor) -> Tensor:
        for stage, blocks in enumerate(STAGES[network]):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                if network == "resnet50":
                    new = norm(conv(act(norm(conv(act(norm(conv(y, 1))), 3, stride))), 1))
                else:
                    new = norm(conv(act(norm(conv(y, 3, stride))), 3))
                y = act(new + (y if new.shape == y.shape else norm(conv(y, 1, stride))))
        return y

    def densenet(y: Tensor) -> Tensor:
        for stage, blocks in enumerate(STAGES[network]):
            if stage:
                y = F.avg_pool2d(conv(act(norm(y)), 1), 2)
            for _ in range(blocks):
                y = torch.cat([y, conv(act(norm(conv(act(norm(y)), 1))), 3)], dim=1)
        return act(norm(y))

    def efficientnet(y: Tensor) -> Tensor:
        kernels, strides, repeats = [3, 3, 5, 3, 5, 5, 3], [1, 2, 2, 2, 1, 2, 1], [1, 2, 2, 3, 3, 4, 1]
        for stage, (kernel, first, blocks) in enumerate(zip(kernels, strides, repeats, strict=True)):
            for block in range(blocks):
                wide = act(norm(conv(y, 1))) if stage else y
                wide = act(norm(conv(wide, kernel, 1 if block else first, apart=True)))
                squeezed = wide.mean((2, 3), keepdim=True)
                squeezed = act(F.conv2d(squeezed, next(weights), next(weights)))
                wide = wide * torch.sigmoid(F.conv2d(squeezed, next(weights), next(weights)))
                new = norm(conv(wide, 1))
                y = y + new if block else new
        return act(norm(conv(y, 1)))

    large = stem == "original"
    if network == "efficientnet_b0":
        x = efficientnet(act(norm(conv(x, 3, 2 if large else 1))))
    else:
        x = conv(x, 7, 2) if large else conv(x, 3)
        x = x if stem == "bare" else act(norm(x))
        x = F.max_pool2d(x, 3, 2, 1) if large else x
        x = densenet(x) if network.startswith("densenet") else resnet(x)
    return F.linear(x.mean((2, 3)), next(weights), next(weights))


@of_all
def test_outputs_are_those_of_the_network_written_out(model, network, stem, relu):
    made = shake(model(network=network, stem=stem, relu=relu, groups=4).double())
    images = torch.randn(2, 3, 38, 45, dtype=torch.float64)
    weights = iter(list(made.parameters()))
    with torch.no_grad():
        expected = written_out(network, stem, relu, 4, weights, images)
        assert next(weights, None) is None
        assert expected.std() > 1e-3
        torch.testing.assert_close(made(images), expected, atol=1e-10, rtol=0)


@of_all
def test_there_is_no_batch_normalisation_no_dropout_and_no_stochastic_depth(model, network, stem, relu):
    with torch.device("meta"):
        layers_of = list(model(network=network, stem=stem, relu=relu).modules())
    assert not any(isinstance(layer, (nn.BatchNorm2d, nn.Dropout, torchvision.ops.StochasticDepth)) for layer in layers_of)
    assert {layer.num_groups for layer in layers_of if isinstance(layer, nn.GroupNorm)} == {8}
    assert any(isinstance(layer, nn.ReLU) for layer in layers_of) == (relu and network != "efficientnet_b0")


def without_coins(network: nn.Module) -> nn.Module:
    for layer in network.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    return network


@pytest.mark.parametrize("stem", ["original", "small"])
def test_outputs_of_vgg11_are_those_of_the_network_written_out(model, stem):
    made = model(network="vgg11", stem=stem).eval()
    images, weights = torch.randn(2, 3, 38, 45), iter(list(made.parameters()))
    with torch.no_grad():
        x = images
        for stage, convolutions in enumerate([1, 1, 2, 2, 2]):
            for _ in range(convolutions):
                x = F.relu(F.conv2d(x, next(weights), next(weights), padding=1))
            x = F.max_pool2d(x, 2, 1 if stem == "small" and stage > 1 else 2)
        x = F.adaptive_avg_pool2d(x, 7).flatten(1)
        for _ in range(2):
            x = F.relu(F.linear(x, next(weights), next(weights)))
        expected = F.linear(x, next(weights), next(weights))
        assert next(weights, None) is None
        assert expected.std() > 1e-3
        torch.testing.assert_close(made(images), expected, atol=1e-5, rtol=1e-4)


def googlenet_written_out(network: nn.Module, x: Tensor) -> Tensor:
    """Compute what GoogLeNet and its auxiliary classifiers give, from the paper, but for 3x3 in the place of 5x5."""
    weights_of = {name: iter(list(part.parameters())) for name, part in network.named_children()}

    def conv(x: Tensor, part: str, kernel: int, stride: int = 1) -> Tensor:
        of = weights_of[part]
        return F.relu(F.group_norm(F.conv2d(x, next(of), stride=stride, padding=kernel // 2), 4, next(of), next(of)))

    def inception(x: Tensor, part: str) -> Tensor:
        alone = conv(x, part, 1)
        second, third = conv(conv(x, part, 1), part, 3), conv(conv(x, part, 1), part, 3)
        return torch.cat([alone, second, third, conv(F.max_pool2d(x, 3, 1, 1), part, 1)], 1)

    def auxiliary(x: Tensor, part: str) -> Tensor:
        of, x = weights_of[part], conv(F.adaptive_avg_pool2d(x, 4), part, 1).flatten(1)
        return F.linear(F.relu(F.linear(x, next(of), next(of))), next(of), next(of))

    x = F.max_pool2d(conv(x, "conv1", 7, 2), 3, 2, ceil_mode=True)
    x = F.max_pool2d(conv(conv(x, "conv2", 1), "conv3", 3), 3, 2, ceil_mode=True)
    x = inception(inception(x, "inception3a"), "inception3b")
    x = first = inception(F.max_pool2d(x, 3, 2, ceil_mode=True), "inception4a")
    for block in "bcd":
        x = inception(x, f"inception4{block}")
    second, x = x, F.max_pool2d(inception(x, "inception4e"), 2, 2, ceil_mode=True)
    x = inception(inception(x, "inception5a"), "inception5b").mean((2, 3))
    main = F.linear(x, next(weights_of["fc"]), next(weights_of["fc"]))
    outputs = torch.stack([main, auxiliary(second, "aux2"), auxiliary(first, "aux1")], 1)
    assert all(next(of, None) is None for of in weights_of.values())
    return outputs


def test_outputs_of_googlenet_are_those_of_the_network_written_out(model):
    made = shake(without_coins(model(network="googlenet", groups=4).double()))
    images = torch.randn(2, 3, 38, 45, dtype=torch.float64)
    with torch.no_grad():
        expected = googlenet_written_out(made.network, images)
        assert expected.std() > 1e-3
        torch.testing.assert_close(made.train()(images), expected, atol=1e-10, rtol=0)
        torch.testing.assert_close(made.eval()(images), expected[:, 0], atol=1e-10, rtol=0)


def test_googlenet_s_loss_in_training_is_its_own_and_three_tenths_of_each_auxiliary_one(model):
    made = shake(without_coins(model(network="googlenet", groups=4).double()))
    images, labels = torch.randn(3, 3, 33, 33, dtype=torch.float64), torch.tensor([0, 7, 3])
    with torch.no_grad():
        main, *others = googlenet_written_out(made.network, images).log_softmax(-1).unbind(1)
        expected = -(main + 0.3 * sum(others))[range(3), labels]
        torch.testing.assert_close(losses_of(made, images, labels), expected)


def test_googlenet_is_trained_by_that_loss_in_bfloat16_too_and_another_network_by_the_cross_entropy(model):
    googlenet, resnet = model(network="googlenet"), model()
    assert loss_of(in_precision(googlenet, "bfloat16")) == googlenet.loss
    assert loss_of(resnet) is each_cross_entropy
    with pytest.raises((RuntimeError, ValueError)):  # a network that forgot to pool is no network with auxiliary classifiers
        losses_of(nn.Unflatten(1, (7, 10)), torch.randn(6, 70), torch.zeros(6, dtype=torch.int64))


def test_the_hessian_of_googlenet_leaves_its_auxiliary_classifiers_out(model):
    made = model(network="googlenet")
    product = Hessian(made, [(torch.randn(2, 3, 32, 32), torch.tensor([1, 2]))])
    along = product(torch.ones(sum(p.numel() for p in made.parameters())))
    parts = dict(
        zip((name for name, _ in made.named_parameters()), along.split([p.numel() for p in made.parameters()]), strict=True)
    )
    assert not any(part.any() for name, part in parts.items() if ".aux" in name)
    assert along.norm() > 0


@pytest.mark.parametrize(("network", "rates"), [("vgg11", [0.5, 0.5]), ("googlenet", [0.7, 0.7, 0.2])])
def test_vgg11_and_googlenet_keep_their_dropout_and_have_no_batch_normalisation(model, network, rates):
    with torch.device("meta"):
        layers_of = list(model(network=network).modules())
    assert [layer.p for layer in layers_of if isinstance(layer, nn.Dropout)] == rates
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in layers_of)
    assert {layer.num_groups for layer in layers_of if isinstance(layer, nn.GroupNorm)} == (
        set() if network == "vgg11" else {8}
    )


def test_groups_may_be_one_a_channel(model):
    with torch.device("meta"):
        norms = [layer for layer in model(groups="channels").modules() if isinstance(layer, nn.GroupNorm)]
    assert len(norms) == 20
    assert all(norm.num_groups == norm.num_channels for norm in norms)


@pytest.mark.parametrize(("network", "stem"), [(network, stem) for network, stem, relu in VARIANTS if relu])
def test_weights_at_the_start_are_drawn_as_torchvision_s(model, network, stem):
    made = model(network=network, stem=stem)
    first = next(layer for layer in made.modules() if isinstance(layer, nn.Conv2d))
    fan = first.weight[0].numel() if network.startswith("densenet") else first.weight.numel() / first.in_channels
    assert first.weight.std().item() * (fan / 2) ** 0.5 == pytest.approx(1, abs=5 / (2 * first.weight.numel()) ** 0.5)
    for norm in (layer for layer in made.modules() if isinstance(layer, nn.GroupNorm)):
        assert (norm.weight == 1).all() and (norm.bias == 0).all()


# --- privacy ---


@pytest.mark.parametrize(
    ("network", "stem", "relu"),
    [
        pytest.param(*variant, marks=() if variant in QUICK else pytest.mark.slow)
        for variant in VARIANTS
        if variant[:2] != ("resnet34", "small") and variant[0] != "densenet169"
    ],
)
def test_clipped_gradients_are_those_of_one_example_at_a_time(model, network, stem, relu, clips_each_example):
    made = shake(model(3, network=network, stem=stem, relu=relu).double())
    size = 64 if stem == "original" else 16
    images, labels = torch.randn(2, 3, size, size, dtype=torch.float64), torch.tensor([0, 2])
    clips_each_example(made, images, labels)


@pytest.mark.parametrize("network", ["vgg11", "googlenet"])
@pytest.mark.slow
def test_clipped_gradients_of_the_study_s_networks_are_those_of_one_example_at_a_time(model, network, clips_each_example):
    made = shake(without_coins(model(3, network=network).double()))
    images, labels = torch.randn(2, 3, 32, 32, dtype=torch.float64), torch.tensor([0, 2])
    clips_each_example(made, images, labels)
