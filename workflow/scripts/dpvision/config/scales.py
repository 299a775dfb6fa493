"""config/scales/NAME.yaml."""

from typing import Annotated

from pydantic import Field

from dpvision.config.base import Positive, Strict


class Resources(Strict):
    """What a job of a stage asks for. Changing it makes nothing stale."""

    threads: Positive = 1
    """Cores."""
    mem_mb: Positive = 2000
    """Memory in megabytes; where it is known what network and data take, that of each process before these. A retry asks
    for more."""
    runtime: Positive = 10
    """Minutes; where it is known how much there is to compute, at most. What a job does not finish, a retry goes on with."""
    speed: Annotated[float, Field(gt=0)] = 5.0e9
    """Multiply-adds a second that a job surely reaches; its minutes are counted with it."""
    gpu: Annotated[int, Field(ge=0)] = 0
    """Graphics cards, for each process of a job."""
    physical_batch: Positive = 256
    """Examples that pass through the network at once, each with all its views; the result does not depend on it."""


class Scale(Strict):
    """What the jobs of a scale are given. How much of a paper it runs is said in config/papers/NAME/SCALE.yaml."""

    title: str
    """What it is for. A display label."""
    workers: Positive = 1
    """Jobs that share each search."""
    resources: dict[str, Resources] = {}
    """What jobs ask for: download, prepare, the name of a stage, or report, which is a table, a figure or a page."""
