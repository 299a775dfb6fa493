"""config/papers/NAME/published.yaml."""

from dpvision.config.base import Name
from dpvision.config.cells import Where


class Published(Where):
    """A number that a paper prints, and the cell of its artifact that it is of: coordinates that select this one alone."""

    artifact: Name
    """The table or figure that prints it: a name among the paper's artifacts."""
    metric: str
    """What is counted: top1 and top5 in per cent, minutes of a training, or a number of the Hessian's."""
    statistic: str
    """Over the repetitions, as the paper says it."""
    value: float
    """The number."""
    note: str | None = None
    """What one should know of it."""
