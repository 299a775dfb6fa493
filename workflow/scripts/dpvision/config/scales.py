"""config/scales/NAME.yaml."""

from typing import Annotated

from pydantic import Field

from dpvision.config.base import Distinct, Name, Positive, Strict


class Resources(Strict):
    """Resources that a job of a stage asks for. Changing them makes nothing stale."""

    threads: Positive = 1
    """Cores."""
    mem_mb: Positive = 2000
    """Memory in megabytes; if what network and data take is known, that of each process before these. A retry asks
    for more."""
    runtime: Positive = 10
    """Minutes; where the amount to compute is known, at most. What a job does not finish, a retry goes on with."""
    speed: Annotated[float, Field(gt=0)] = 5.0e9
    """Multiply-adds a second that a job surely reaches; its minutes are counted with it."""
    gpu: Annotated[int, Field(ge=0)] = 0
    """Graphics cards, for each process of a job."""
    physical_batch: Positive = 256
    """Examples that pass through the network at once, each with all its views; the result does not depend on it."""


class Scale(Strict):
    """A scale: what its jobs are given. config/papers/NAME/SCALE.yaml says how much of a paper it runs."""

    title: str
    """Purpose of the scale. A display label."""
    papers: Distinct[Name] | None = None
    """Papers of this scale alone: built at it where none of those in config/config.yaml has it."""
    workers: Positive = 1
    """Number of jobs that share each search."""
    resources: dict[str, Resources] = {}
    """Resources by kind of job: download, prepare, the name of a stage, or report, which is a table, a figure or a page."""
