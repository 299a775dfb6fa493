"""The page of a paper's claims: a verdict on each, its numbers, and a figure of the effects."""

from typing import ClassVar, Literal

from dpvision.config.artifacts import Artifact


class Options(Artifact):
    """A verdict on each sentence of the paper's claims.yaml."""

    kind: Literal["claims"]
    """What it is."""

    MAKER: ClassVar = "dpvision.reporting.claims"
    FILES: ClassVar = ("{}.csv", "{}.md", "figures/{}.svg", "figures/{}.pdf", "figures/{}.png", "figures/{}.csv")
