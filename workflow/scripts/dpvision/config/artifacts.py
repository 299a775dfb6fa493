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
    """Over the seeds, shown behind ±: the standard deviation with n - 1, or that divided by the root of n; null: none."""
    published: Name | None = None
    """The artifact whose printed numbers stand beside ours; its own where absent."""
    columns: str | None = None
    """A coordinate whose values are laid out as columns, for people who read it; a printed number is then of a whole row."""


class Figure(Artifact):
    MAKER: ClassVar = "dpvision.reporting.figures"
    FILES: ClassVar = ("figures/{}.csv", "figures/{}.svg", "figures/{}.pdf", "figures/{}.png")


class FigureOfCells(Figure, OfCells):
    pass
