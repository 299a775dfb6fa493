"""The drawing of a SmoothBlock (a) and of SmoothNet (b): the paper's Figure 1.

The frame holds the elements of both in the order in which activations pass through them; the drawing shows that and nothing
else. Widths are those of the authors' network, W80D50.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from dpvision.config.artifacts import Figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


class Options(Figure):
    """The drawing of a SmoothBlock and of SmoothNet; it shows no cells."""

    kind: Literal["smoothblock"]
    """What it is."""


NOTE = "a block's output is concatenated to its input; channels behind each part, for images of three"
NAMES = {"a": "SmoothBlock", "b": "SmoothNet"}
PARTS = {
    "a": [
        ("input", "input", "c"),
        ("convolution", "3×3 convolution", "w"),
        ("pooling", "3×3 max pooling, stride 1", "w"),
        ("normalisation", "group norm, 8 groups", "w"),
        ("activation", "SELU", "w"),
        ("concatenation", "concat", "c + w"),
    ],
    "b": [
        ("input", "image", "3"),
        ("blocks", "5 SmoothBlocks of 64", "323"),
        ("convolution", "1×1 convolution", "161"),
        ("pooling", "2×2 average pooling", "161"),
        ("blocks", "5 SmoothBlocks of 128", "801"),
        ("pooling", "2×2 average pooling, last 128", "128"),
        ("pooling", "average pooling to 4×4", "2048"),
        ("linear", "linear, SELU", "256"),
        ("linear", "linear, SELU", "128"),
        ("linear", "linear", "classes"),
    ],
}
LOOKS: dict[str, dict[str, Any]] = {
    "input": {"facecolor": "white", "edgecolor": "#4d4d4d"},
    "convolution": {"facecolor": "#9db4cf", "edgecolor": "#1f4e8c"},
    "pooling": {"facecolor": "#e3ecd0", "edgecolor": "#7a9a01"},
    "normalisation": {"facecolor": "white", "edgecolor": "#1f4e8c"},
    "activation": {"facecolor": "#e6e6e6", "edgecolor": "#4d4d4d"},
    "concatenation": {"facecolor": "white", "edgecolor": "black"},
    "blocks": {"facecolor": "#fbe3c4", "edgecolor": "#e07b00", "linewidth": 2.0},
    "linear": {"facecolor": "#e6e6e6", "edgecolor": "#1f4e8c"},
}
WIDE, HIGH, GAP, ARCH = 1.1, 1.0, 0.3, 0.95
ARROW = {"arrowstyle": "-|>,head_width=0.18,head_length=0.35", "color": "black", "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}


def read(spec: Any, inputs: Any) -> "pd.DataFrame":
    """Return one row an element, panel by panel; nothing that was run decides any of it."""
    import pandas as pd

    rows = [(panel, *part) for panel, parts in PARTS.items() for part in parts]
    return pd.DataFrame(rows, columns=["panel", "element", "text", "channels"])


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Drawing":
    """Draw the block above the network."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(NAMES), 1, figsize=(10.0, 4.0), sharex=True)
    for axis, (panel, parts) in zip(axes, frame.groupby("panel", sort=True), strict=True):
        _draw_panel(axis, parts.reset_index(drop=True))
        axis.set_title(f"$\\bf{{{panel}}}$   {NAMES[str(panel)]}", loc="left")
        axis.set(aspect="equal", ylim=(-0.95, ARCH + 0.35))
        axis.set_axis_off()
    axes[0].set_xlim(-0.1, max(map(len, PARTS.values())) * (WIDE + GAP))
    return figure


def _draw_panel(axis: "Axes", parts: "pd.DataFrame") -> None:
    """Draw the elements in a row; a concatenation takes the input along an arch above them."""
    from matplotlib.patches import FancyBboxPatch

    lefts = [i * (WIDE + GAP) for i in range(len(parts))]
    for left, part in zip(lefts, parts.itertuples(), strict=True):
        box = FancyBboxPatch((left, -HIGH / 2), WIDE, HIGH, boxstyle="round,pad=0,rounding_size=0.08", linewidth=1.2)
        box.set(**LOOKS[str(part.element)])
        axis.add_patch(box)
        axis.text(left + WIDE / 2, 0, _lines(str(part.text)), ha="center", va="center", fontsize=7, linespacing=1.1)
        axis.text(left + WIDE / 2, -HIGH / 2 - 0.08, str(part.channels), ha="center", va="top", fontsize=7)
    for one, other in pairwise(lefts):
        axis.annotate("", (other, 0), (one + WIDE, 0), arrowprops=ARROW)
    for place in parts.index[parts["element"] == "concatenation"]:
        fork, join = lefts[0] + WIDE + GAP / 3, lefts[place] + WIDE / 2
        axis.plot([fork, fork, join], [0, ARCH, ARCH], color="black", linewidth=1.1, solid_joinstyle="miter")
        axis.annotate("", (join, HIGH / 2), (join, ARCH), arrowprops=ARROW)
        axis.plot(fork, 0, "o", color="black", markersize=3.5)


def _lines(text: str) -> str:
    """Break a text so that it fits a box."""
    import textwrap

    return "\n".join(textwrap.wrap(text, 12))
