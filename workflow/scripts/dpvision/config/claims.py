"""config/papers/NAME/claims.yaml."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from dpvision.config.base import Name, Strict, one_of
from dpvision.config.cells import Where
from dpvision.config.comparisons import Comparison
from dpvision.reporting.comparisons import COMPARISONS

if TYPE_CHECKING:
    AnyComparison = Comparison
else:
    AnyComparison = one_of(COMPARISONS, "kind")


class Claim(Strict):
    """A sentence of the paper that its artifacts decide."""

    text: str
    """The sentence, word for word: [...] for what is left out, and what is added in brackets, too."""
    in_our_words: bool = False
    """Whether `text` is no quotation, but says shortly what the paper does. Pages show it otherwise."""
    section: str
    """Where it stands."""
    artifacts: list[Name] = []
    """The tables and figures that decide it, among whose cells its comparisons select; none: among all of the paper's."""
    where: Where = Where()
    """Further coordinates of all its comparisons' sides."""
    reading: str | None = None
    """What was decided here to make it measurable, where the sentence leaves that open."""
    combined: Literal["all", "readings"] = "all"
    """`all`: it holds if every comparison does, and not if one does not. `readings`: the comparisons are readings of one
    statement; it holds if all of them agree that it does, and not if all agree that it does not."""
    comparisons: Annotated[list[AnyComparison], Field(min_length=1)]
    """What decides it."""
