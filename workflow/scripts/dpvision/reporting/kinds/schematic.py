"""The drawing of a residual block, without (A) and with ScaleNorm (B): the paper's Figure 1.

The frame holds the elements of both blocks in the order in which activations pass through them, and what the paper calls
the activations behind each; the drawing shows that and nothing else.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from dpvision.config.artifacts import Figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


class Options(Figure):
    """The drawing of a residual block; it shows no cells."""

    kind: Literal["schematic"]
    """What it is."""


NOTE = "$V_R$: residual path, $V_F$: convolutional path, $V_A$: their sum, $V_A^S$: the sum after ScaleNorm"
UNIT = [("convolution", "3×3 convolution"), ("normalisation", "group norm"), ("activation", "Mish")]
NAMES = {"A": "Residual block", "B": "Residual block with ScaleNorm"}
LOOKS: dict[str, dict[str, Any]] = {
    "convolution": {"facecolor": "#9db4cf", "edgecolor": "#1f4e8c"},
    "normalisation": {"facecolor": "white", "edgecolor": "#1f4e8c"},
    "activation": {"facecolor": "#e6e6e6", "edgecolor": "#4d4d4d"},
    "ScaleNorm": {"facecolor": "#fbe3c4", "edgecolor": "#e07b00", "linewidth": 2.2},
}
WIDE, HIGH, GAP, ARCH = 1.1, 0.76, 0.34, 0.95  # of a box, between two of them, and how far above them the residual path runs
ARROW = {"arrowstyle": "-|>,head_width=0.18,head_length=0.35", "color": "black", "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}


def read(spec: Any, inputs: Any) -> "pd.DataFrame":
    """Return one row an element, panel by panel; nothing that was run decides any of it."""
    import pandas as pd

    rows = []
    for panel in NAMES:
        rows += [(panel, "residual", "identity", "", "V_R")]
        rows += [(panel, "convolutional", element, text, "") for element, text in [*UNIT, *UNIT]]
        rows[-1] = (*rows[-1][:4], "V_F")
        rows += [(panel, "sum", "addition", "+", "V_A")]
        rows += [(panel, "sum", "ScaleNorm", "ScaleNorm", "V_A^S")] if panel == "B" else []
    return pd.DataFrame(rows, columns=["panel", "path", "element", "text", "activations"])


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Drawing":
    """Draw block under block, so that what is alike stands at the same place."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(NAMES), 1, figsize=(9.0, 3.7), sharex=True)
    for axis, (panel, block) in zip(axes, frame.groupby("panel", sort=True), strict=True):
        _draw_block(axis, block)
        axis.set_title(f"$\\bf{{{panel}}}$   {NAMES[str(panel)]}", loc="left")
        axis.set(aspect="equal", ylim=(-0.62, ARCH + 0.42))
        axis.set_axis_off()
    axes[0].set_xlim(-0.15, _places(len(UNIT) * 2 + 2)[-1] + WIDE + 0.85)
    return figure


def _places(count: int) -> list[float]:
    """Return the left edges of so many elements, one behind the other."""
    return [0.75 + i * (WIDE + GAP) for i in range(count)]


def _draw_block(axis: "Axes", block: "pd.DataFrame") -> None:
    from matplotlib.patches import Circle

    name = block.set_index("element")["activations"]
    along = block[block["path"] != "residual"].reset_index(drop=True)
    stops = []  # left and right edge of each element
    for left, row in zip(_places(len(along)), along.itertuples(), strict=True):
        if row.element == "addition":
            middle, radius = left + WIDE / 2, 0.22
            axis.add_patch(Circle((middle, 0), radius, facecolor="white", edgecolor="black", linewidth=1.2))
            axis.text(middle, 0, "+", ha="center", va="center_baseline", fontsize=13)
            stops.append((middle - radius, middle + radius))
        else:
            _box(axis, left, row.element, row.text)
            stops.append((left, left + WIDE))
    at = int(along.index[along["element"] == "addition"][0])
    fork, join, end = 0.3, sum(stops[at]) / 2, stops[-1][1] + GAP + 0.25
    _arrow(axis, (-0.1, 0), (stops[0][0], 0))
    for (_, right), (left, _) in pairwise(stops):
        _arrow(axis, (right, 0), (left, 0))
    _arrow(axis, (stops[-1][1], 0), (end, 0))
    axis.plot([fork, fork, join], [0, ARCH, ARCH], color="black", linewidth=1.1, solid_joinstyle="miter")
    _arrow(axis, (join, ARCH), (join, 0.22))
    axis.plot(fork, 0, "o", color="black", markersize=3.5)
    _call(axis, (fork + join) / 2, ARCH + 0.08, name["identity"])
    _call(axis, (stops[at - 1][1] + stops[at][0]) / 2, 0.1, along["activations"][at - 1])
    if at + 1 < len(stops):
        _call(axis, (stops[at][1] + stops[at + 1][0]) / 2, 0.1, name["addition"])
    axis.text(end + 0.08, 0, f"${along['activations'].iloc[-1]}$", ha="left", va="center", fontsize=11)


def _box(axis: "Axes", left: float, element: str, text: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch((left, -HIGH / 2), WIDE, HIGH, boxstyle="round,pad=0,rounding_size=0.08", linewidth=1.2)
    box.set(**LOOKS[element])
    axis.add_patch(box)
    weight = "bold" if element == "ScaleNorm" else "normal"
    lines = text.replace(" ", "\n")
    axis.text(left + WIDE / 2, 0, lines, ha="center", va="center", fontsize=8, fontweight=weight, linespacing=1.15)


def _arrow(axis: "Axes", begin: tuple[float, float], end: tuple[float, float]) -> None:
    axis.annotate("", end, begin, arrowprops=ARROW)


def _call(axis: "Axes", x: float, y: float, name: str) -> None:
    axis.text(x, y, f"${name}$", ha="center", va="bottom", fontsize=11)
