"""config/papers/NAME/published.yaml."""

from typing import Annotated

from pydantic import Field

from dpvision.config.base import Name
from dpvision.config.cells import Where
from dpvision.config.metrics import Examples, Weights


class Published(Where):
    """A number that a paper prints, and the cell of its artifact that it is of: coordinates that select this one alone."""

    artifact: Name
    """The table or figure that prints it: a name among the paper's artifacts."""
    metric: str
    """Quantity: top1 and top5 in per cent, minutes of a training, or a number of the Hessian's."""
    weights: Weights | None = None
    """Weights that it is of; null: not said, and held to be the last step's, in the authors' protocol the best epoch's."""
    split: Examples | None = None
    """Examples that it is counted on; null: not said, and held to be the test examples."""
    statistic: str
    """Statistic over the repetitions, as the paper says it."""
    source: str | None = None
    """What has the number, where the paper itself does not print it: the authors' notebook. A display label."""
    value: float
    """The number."""
    spread: Annotated[float, Field(gt=0)] | None = None
    """What stands behind it as ±: the standard deviation over the repetitions, or what the statistic says."""
    headline: str | None = None
    """Words for it on the page of all evidence, where it is one that the paper is known for. A display label."""
    beyond: str | None = None
    """Why nobody else can make it, for the same page: what it rests on is not public. A display label."""
    note: str | None = None
    """Remark that a reader of the number needs."""
