"""Artifacts: tables and figures of a paper. Each kind is a file in reporting/kinds/, found by name."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from dpvision.config.base import Distinct, Epsilon, Name, Strict

if TYPE_CHECKING:
    from dpvision.config.cells import Cells
    from dpvision.models.options import Network


class Artifact(Strict):
    """What the options of every kind have."""

    kind: str
    """What it is."""
    title: str
    """Its caption. A display label."""

    FILES: ClassVar[tuple[str, ...]]
    """Below the results of a scale, {} its name; the first is the CSV that the others are made beside."""
    MAKER: ClassVar[str]
    """The module that makes it."""
    READS: ClassVar[dict[str, tuple[str, ...]]] = {}
    """What it is made of: the name that its maker calls it -> STAGE/FILE of each cell's work."""
    SEEDS: ClassVar[int | None] = None
    """Of how many seeds of a cell, the first ones; none: of all."""

    def stages(self) -> list[str]:
        """Return the stages whose work its cells need."""
        return list(dict.fromkeys(read.split("/")[0] for reads in self.READS.values() for read in reads))

    def faults(self, models: dict[str, "Network"], groups: list["Cells"]) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with it beside its groups of cells and their models: the option's key, and why."""
        yield from ()


class OfCells(Artifact):
    """What shows cells."""

    cells: Distinct[Name]
    """Groups of cells it shows."""
    epsilons: Distinct[Epsilon | None] | None = None
    """Only these of their ε; all of them where absent."""


class Table(OfCells):
    MAKER: ClassVar = "dpvision.reporting.tables"
    FILES: ClassVar = ("tables/{}.csv", "tables/{}.md", "tables/{}.tex")

    statistic: Literal["median", "mean", "best"] = "median"
    """Over the seeds."""
    spread: Literal["standard_deviation", "standard_error"] | None = None
    """Over the seeds, shown behind ±: the standard deviation with n - 1, or that divided by the root of n. Null: people read
    the standard deviation, but of the best of the seeds none, and the CSV has no column of it."""
    published: Name | None = None
    """The artifact whose printed numbers stand beside ours; its own where absent."""
    panels: Distinct[str] | None = None
    """How people read it: coordinates with a table each, one below the other. Where nothing is said of panels, rows and
    columns: data sets."""
    rows: Distinct[str] | None = None
    """Coordinates that tell its rows apart: those of cells, metric, weights, split or statistic. Whatever else tells two
    numbers apart becomes a row's by itself."""
    columns: Distinct[str] | None = None
    """Coordinates that tell its columns apart. Where nothing is said of panels, rows and columns: ε."""
    names: dict[str, dict[str, str]] | None = None
    """What values of coordinates are called there, in the order of rows and columns: {model: {resnet9: No ScaleNorm}}. Values
    that are called the same share a row or a column."""

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
