"""config/config.yaml and config/devices.yaml."""

from typing import Annotated, Literal

from pydantic import Field

from dpvision.config.base import Distinct, Name, Strict


class Config(Strict):
    """The choice of what to build."""

    scale: Name = "paper"
    """Scale, which says how much of each paper is run: the name of a file in config/scales."""
    papers: Distinct[Name]
    """The papers to build: names of folders in config/papers, or in own/ (python -m dpvision try)."""
    artifacts: Literal["all", "selection"] = "all"
    """Which artifacts of each paper: all that the scale has, or those that the paper's key `selection` names."""
    own_leaves: Literal["nothing", "models_losses_and_classes"] = "nothing"
    """What an archive, or a folder of kept results, may have of papers on your own pictures: nothing, so that there is none; or
    their models (also those without privacy), losses and accuracies of each epoch, and the names of the classes."""
    folders: dict[Name, str] = {}
    """Your own copies of data sets, where no download is possible: data set -> folder, or file. Checked like a download."""


class Device(Strict):
    """A kind of device, for estimates of what work costs where nothing was measured on it."""

    name: str
    """A part of the name by which its driver calls it."""
    peak: Annotated[float, Field(gt=0)]
    """Multiply-adds a second in float32 without tensor cores, as its maker says: half of its FLOPs."""
    share: Annotated[float, Field(gt=0, le=1)]
    """Share of the peak that a training is guessed to sustain."""
