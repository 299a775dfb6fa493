"""Artifacts: tables and figures of a paper. Each kind is a file in reporting/kinds/, found by name."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from dpvision.config.base import Distinct, Epsilon, Name, Strict

if TYPE_CHECKING:
    from dpvision.config.cells import Cells
    from dpvision.models.options import Network


SPENT = ("sigma", "steps", "epochs", "mu")
"""What the ledger of a training says, whether it was given or solved."""


class Artifact(Strict):
    """Options that artifacts of every kind have."""

    kind: str
    """Kind of the artifact."""
    title: str
    """Caption of the artifact. A display label."""

    FILES: ClassVar[tuple[str, ...]]
    """Files below the results of a scale, {} its name; the first is the CSV that the others are made beside."""
    MAKER: ClassVar[str]
    """Module that makes it."""
    READS: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Files that it is made of: the name that its maker uses -> STAGE/FILE of each cell's work."""
    SEEDS: ClassVar[int | None] = None
    """Number of seeds of a cell that it uses, the first ones; none: all."""

    SEARCHES: ClassVar[bool] = False
    """Whether its cells have the specs of their private searches beside them: what is planned, not what was found."""

    def stages(self) -> list[str]:
        """Return the stages whose work its cells need."""
        return list(dict.fromkeys(read.split("/")[0] for reads in self.READS.values() for read in reads))

    def faults(self, models: dict[str, "Network"], groups: list["Cells"]) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with it beside its groups of cells and their models: the option's key, and why."""
        yield from ()


class OfCells(Artifact):
    """An artifact that shows cells."""

    cells: Distinct[Name]
    """Groups of cells that it shows."""
    epsilons: Distinct[Epsilon | None] | None = None
    """Levels of ε that it shows; all those of its cells where absent."""

    COORDINATES: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Options that name coordinates of its cells -> what they may name besides."""


class Table(OfCells):
    MAKER: ClassVar = "dpvision.reporting.tables"
    FILES: ClassVar = ("tables/{}.csv", "tables/{}.md", "tables/{}.tex")

    statistic: Literal["median", "mean", "best"] = "median"
    """Statistic over the seeds."""
    spread: Literal["standard_deviation", "standard_error"] | None = None
    """Spread over the seeds, behind ±: the standard deviation with n - 1, or that divided by the root of n. Null: people read
    the standard deviation, but of the best of the seeds none, and the CSV has no column of it."""
    published: Name | None = None
    """The artifact whose printed numbers stand beside ours; its own where absent."""
    panels: Distinct[str] | None = None
    """Coordinates that have a table each, one below the other, where people read it. Where panels, rows and columns are all
    null: data sets."""
    rows: Distinct[str] | None = None
    """Coordinates that tell its rows apart: those of cells, metric, weights, split or statistic. Whatever else tells two
    numbers apart becomes a row's by itself."""
    columns: Distinct[str] | None = None
    """Coordinates that tell its columns apart. Where panels, rows and columns are all null: ε."""
    names: dict[str, dict[str, str]] | None = None
    """Names of values there, in the order of rows and columns: {model: {resnet9: No ScaleNorm}}. Values of the same name share
    a row or a column."""

    LAYOUT: ClassVar[dict[str, list[str]]] = {}
    """Panels, rows and columns where none of them is said."""

    def layout(self) -> dict[str, list[str]]:
        """Return the panels, rows and columns that are said."""
        said = {"panels": self.panels, "rows": self.rows, "columns": self.columns}
        return {direction: names for direction, names in said.items() if names}


class Figure(Artifact):
    MAKER: ClassVar = "dpvision.reporting.figures"
    FILES: ClassVar = ("figures/{}.csv", "figures/{}.svg", "figures/{}.pdf", "figures/{}.png")


class FigureOfCells(Figure, OfCells):
    pass
