"""A network on a CPU is evaluated by other routes than PyTorch's own, to the same numbers."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dpvision.training.evaluate import OnACpu, evaluate
from dpvision.training.examples import Examples
from dpvision.training.precision import in_precision


def network(inplace: bool = False) -> nn.Module:
    torch.manual_seed(0)
    parts = [nn.Conv2d(3, 16, 3), nn.GroupNorm(4, 16), nn.Mish(inplace), nn.Conv2d(16, 8, 3), nn.GroupNorm(8, 8), nn.Mish()]
    made = nn.Sequential(*parts, nn.Flatten(), nn.Linear(8 * 6 * 6, 10))
    with torch.no_grad():
        for p in made.parameters():  # norms that do something
            p.add_(torch.randn_like(p), alpha=0.2)
    return made.eval()


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("bfloat16", 1e-2)])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_the_other_routes_lead_to_the_same_numbers(precision, tolerance, memory_format):
    images = (3 * torch.randn(7, 3, 10, 10)).to(memory_format=memory_format)
    evaluated = in_precision(network(), precision)
    with torch.no_grad():
        expected = evaluated(images)
        with OnACpu():
            found = evaluated(images)
    assert found.dtype == torch.float32
    assert torch.allclose(found, expected, rtol=tolerance, atol=tolerance * expected.abs().max().item())


def test_an_activation_in_place_is_seen_through_every_name():
    images = torch.randn(2, 3, 4, 4)
    calls = [lambda x: F.mish(x, True), lambda x: F.mish(x, inplace=True), lambda x: F.mish(input=x, inplace=True)]
    with torch.no_grad(), OnACpu():
        for call in calls:
            written = images.clone()
            call(written)
            assert torch.allclose(written, F.mish(images), atol=1e-6)


def test_loss_and_accuracies_are_those_of_all_examples_together():
    images, labels = torch.randint(256, (70, 3, 10, 10), dtype=torch.uint8).numpy(), torch.randint(10, (70,)).numpy()
    examples = Examples(images, labels, [0.5] * 3, [0.25] * 3, torch.device("cpu"))
    evaluated = network(inplace=True)
    batch, classes = examples.batch(torch.arange(70))
    with torch.no_grad():
        logits = evaluated(batch)
    found = evaluate(evaluated, examples, 64)
    first = logits.argsort(descending=True)[:, :5] == classes[:, None]
    assert found["loss"] == pytest.approx(F.cross_entropy(logits, classes).item(), rel=1e-5)
    assert found["top1"] == pytest.approx(first[:, 0].float().mean().item())
    assert found["top5"] == pytest.approx(first.any(1).float().mean().item())
