"""The networks that are measured: this project's, torchvision's with group normalisation, and small ones of other kinds."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dpvision.models import build
from dpvision.models.catalogue import MODELS

CLASSES = 10


@dataclass(frozen=True)
class Network:
    label: str
    build: Callable[[], nn.Module]
    shape: tuple[int, ...] = (3, 32, 32)
    threads: int | None = None  # none: as many as there are


def of_the_catalogue(
    name: str, shape: tuple[int, int, int] = (3, 32, 32), threads: int | None = None, **changes: object
) -> Network:
    model = MODELS[name].model_copy(update=changes)
    return Network(model.label, lambda: build(model.model_dump(), CLASSES, shape[0]), shape, threads)


def lenet() -> nn.Module:
    """Return a network of 10,650 parameters for 28 pixels, as audits train by the thousand."""
    first = [nn.Conv2d(1, 16, 8, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, nn.Flatten(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, CLASSES))


class Transformer(nn.Module):
    """A small vision transformer: patches, a class token, positions, four layers of attention."""

    def __init__(self, size: int = 64, patch: int = 4, layers: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, size, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, size))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (32 // patch) ** 2 + 1, size))
        self.layers = nn.Sequential(*(Attention(size, 4) for _ in range(layers)))
        self.head = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.layers(x)[:, 0])


class Attention(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.packed, self.out = nn.LayerNorm(size), nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.mlp = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.packed(self.before(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(x)


NETWORKS = {
    "resnet9": of_the_catalogue("resnet9"),
    "scaleresnet9": of_the_catalogue("scaleresnet9"),
    "wrn16-4": of_the_catalogue("wrn16-4"),
    "wrn40-4": of_the_catalogue("wrn40-4"),
    "smoothnet": of_the_catalogue("smoothnet"),
    "resnet18": of_the_catalogue("resnet18", stem="original"),
    "resnet34": of_the_catalogue("resnet34", stem="original"),
    "densenet121": of_the_catalogue("densenet121", stem="original"),
    "efficientnet_b0": of_the_catalogue("efficientnet_b0", stem="original"),
    "resnet50": of_the_catalogue("resnet50", (3, 160, 160)),
    "wrn28-10": of_the_catalogue("wrn28-10"),
    "nf_resnet50": of_the_catalogue("nf_resnet50", (3, 224, 224)),
    "demo resnet9": of_the_catalogue("resnet9, width 1/8", (1, 8, 8), threads=1),
    "demo wrn": of_the_catalogue("wrn16-4", (1, 8, 8), threads=1, label="WRN-10-1", depth=10, width=1),
    "lenet": Network("LeNet", lenet, (1, 28, 28), threads=1),
    "transformer": Network("transformer", Transformer),
    "head": Network("linear head", lambda: nn.Linear(1280, CLASSES), (1280,)),
}
