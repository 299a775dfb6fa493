"""What a paper can say of a network that public weights are for; light."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from dpvision.config.base import TIMM
from dpvision.models.options import Network

BY_EXAMPLE = ("convnext_tiny",)  # normalise each example by itself; the others normalise by batches


class Options(Network):
    """A network of torchvision's or timm's for colour images, with its batch normalisation; nothing in it is random."""

    family: Literal["backbone"]
    """Architecture of the network."""
    network: (
        Literal[
            "convnext_tiny",
            "densenet121",
            "efficientnet_b0",
            "mobilenet_v2",
            "mobilenet_v3_large",
            "mobilenet_v3_small",
            "regnet_y_400mf",
            "resnet18",
            "resnet34",
            "resnet50",
            "wide_resnet50_2",
        ]
        | Annotated[str, Field(pattern=TIMM)]
    )
    """Its name in torchvision, or any in timm behind `timm/`. Nothing is downloaded for it: weights come from an entry in
    config/weights.yaml."""

    def slug(self) -> str:
        return self.network.replace("_", "-").replace("/", "-")

    def mixes_examples(self) -> bool:
        """Say so of torchvision's alone: which of timm's do is seen when they train, and refused there."""
        return self.network not in BY_EXAMPLE and not self.network.startswith("timm/")

    def faults(self, private: bool) -> Iterator[tuple[str, str]]:
        if private and self.mixes_examples():
            yield (
                "network",
                (
                    "not under differential privacy where all of it trains: its batch normalisation mixes examples; train its "
                    "head, or its norms, which leaves batch normalisation with the statistics of the public weights"
                ),
            )
