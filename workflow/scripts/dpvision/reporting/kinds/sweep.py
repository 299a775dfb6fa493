"""A metric by what is swept: batch size, noise, steps, views or ε; a line for each network and metric."""

from itertools import cycle
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from dpvision.config.artifacts import SPENT, FigureOfCells
from dpvision.config.base import Distinct, Name
from dpvision.config.metrics import Metric

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from dpvision.plan.specs import Spec


class Options(FigureOfCells):
    """A metric by what is swept, the mean or median over the seeds with its spread."""

    kind: Literal["sweep"]
    """What it is."""
    x: Distinct[str]
    """What is swept, a panel for each: a coordinate (recipe.batch), or sigma, steps, epochs or mu as the trainings had them."""
    metrics: Distinct[Metric]
    """What is drawn, a line for each."""
    lines: Distinct[str] = Field(default=["model"])
    """Coordinates that tell lines apart; all else changes with what is swept."""
    statistic: Literal["median", "mean", "best"] = "mean"
    """Over the seeds."""
    spread: Literal["standard_deviation", "standard_error"] | None = "standard_error"
    """Over the seeds, drawn as bars; null: none."""
    published: Name | None = None
    """The artifact whose printed numbers stand beside ours; its own where absent."""
    works: dict[Name, str] | None = None
    """Other works among them, by what published.yaml calls their models. A display label."""

    COORDINATES: ClassVar = {"x": SPENT, "lines": ()}
    READS: ClassVar = {
        "metrics": ("train/metrics.json",),
        "ledgers": ("train/ledger.json",),
        "studies": ("search/best.json",),
    }


NOTE = (
    "bars: the spread over the seeds, as the CSV says it; ring: the search's best value is at an end of its grid; "
    "hollow: in print"
)
OURS, PRINTED, OTHER = "ours", "in print", "other work"


def read(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each panel, cell and metric, then one for each printed number."""
    import pandas as pd

    from dpvision.reporting.points import edges_of, metric_of, place, read_by_folder
    from dpvision.reporting.summary import summarise

    metrics, ledgers, studies = (read_by_folder(inputs[name]) for name in ("metrics", "ledgers", "studies"))
    rows = []
    for panel in spec["x"]:
        places: list[tuple[dict[str, Any], Any]] = []
        for cell in spec["cells"]:
            runs = cell["work"]["train"].values()
            at = place(cell["at"], panel, [ledgers[run] for run in runs])
            places.append((cell["at"], at))
            for metric in spec["metrics"]:
                ours = summarise([metric_of(metrics[run], metric) for run in runs], spec["statistic"], spec.get("spread"))
                about = {"of": OURS, "panel": panel, "x": at, **metric, "n": ours.n}
                about |= {"statistic": ours.how, "value": ours.value, "spread": ours.spread}
                rows.append(about | {"edges": edges_of(cell, studies)} | _line(spec, cell["at"]) | cell["at"])
        rows += [row for printed in spec["published"] for row in _printed(spec, panel, printed, places)]
    return pd.DataFrame(rows)


def _line(spec: "Spec", at: dict[str, Any]) -> dict[str, Any]:
    """Return what names a cell's line."""
    return {f"line {name}": at.get(name) for name in spec.get("lines", ["model"])}


def _printed(spec: "Spec", panel: str, row: dict[str, Any], places: list[tuple[dict[str, Any], Any]]) -> list[dict[str, Any]]:
    """Return the row of a printed number that has a place in a panel and is of one of the metrics.

    μ is never printed: over it, a number stands where the trainings of its cell do. `places`: cells with where they stand.
    """
    at, works = row["at"], spec.get("works") or {}
    x = [there for cell, there in places if at.items() <= cell.items()] if panel == "mu" else [at[panel]] * (panel in at)
    wanted = [m for m in spec["metrics"] if m["name"] == row["metric"] and m["split"] == row.get("split", "test")]
    if not x or not wanted or at["dataset"] not in {cell["at"]["dataset"] for cell in spec["cells"]}:
        return []
    of = OTHER if at["model"] in works else PRINTED
    model = works.get(at["model"], at["model"])
    about = {"of": of, "panel": panel, "x": x[0], **wanted[0], "statistic": row["statistic"], "value": row["value"]}
    return [about | {"spread": row.get("spread")} | _line(spec, at) | at | {"model": model}]


def draw(frame: "pd.DataFrame", labels: dict[str, Any]) -> "Figure":
    """Draw a panel for each thing that is swept."""
    import matplotlib.pyplot as plt

    from dpvision.reporting.figures import add_legend_below
    from dpvision.reporting.points import called, set_axis

    panels = list(frame.groupby("panel", sort=False))
    figure, axes = plt.subplots(1, len(panels), figsize=(1.6 + 4.2 * len(panels), 3.8), squeeze=False, sharey=True)
    for axis, (name, part) in zip(axes[0], panels, strict=True):
        words = _words(part)
        _draw_panel(axis, part.assign(x=part["x"].map(words.index)) if words else part, labels)
        if words:
            known = labels["models"] | labels.get("starts", {})
            axis.set_xticks(range(len(words)), [known.get(word, word) for word in words], fontsize=6, rotation=15)
        else:
            set_axis(axis, "x", part.loc[part["of"] == OURS, "x"], beside=part["x"])
        axis.set_xlabel(called(str(name)))
    axes[0, 0].set_ylabel("accuracy (%)")
    add_legend_below(figure)
    return figure


def _words(part: "pd.DataFrame") -> list[str]:
    """Return what is swept in its order where it is no number: networks, or what they start from."""
    found = list(dict.fromkeys(part["x"]))
    return found if any(isinstance(value, str) for value in found) else []


def _draw_panel(axis: Any, part: "pd.DataFrame", labels: dict[str, Any]) -> None:
    """Draw a line for each network and metric, then what is in print."""
    from dpvision.reporting.points import line_name, looks, metric_name, on_axis

    lines = [name for name in part.columns if name.startswith("line ")]
    ours = part[part["of"] == OURS]
    seen: dict[tuple, dict[str, Any]] = {}
    parts = ours.groupby([*lines, "weights", "split", "name"], sort=False, dropna=False)
    for (key, line), look in zip(parts, looks(), strict=False):
        line = line.sort_values("x")
        at = dict(zip([name.removeprefix("line ") for name in lines], key, strict=False))
        name = f"{line_name(at, at, labels)}, {metric_name(line.iloc[0].to_dict())}"
        x = on_axis(line["x"], part["x"])
        bars = {} if line["spread"].isna().all() else {"yerr": line["spread"]}
        axis.errorbar(x, line["value"], **bars, capsize=2, markersize=4, label=f"{name} (n = {_count(line)})", **look)
        at_edge = line["edges"].fillna("") != ""
        axis.plot(x[at_edge], line["value"][at_edge], "o", color="black", fillstyle="none", markersize=10)
        seen[key[: len(lines)]] = look
    for key, line in part[part["of"] == PRINTED].groupby(lines, sort=False, dropna=False):
        look = seen.get(key, {"color": "black", "marker": "o"})
        axis.plot(on_axis(line["x"], part["x"]), line["value"], look["marker"], color=look["color"], fillstyle="none")
    marks = cycle("*X1p2d")
    for model, line in part[part["of"] == OTHER].groupby("model", sort=False):
        x = on_axis(line["x"], part["x"])
        axis.plot(x, line["value"], next(marks), color="black", markersize=5)
        axis.annotate(str(model), (x.iloc[-1], line["value"].iloc[-1]), (4, -8), textcoords="offset points", fontsize=6)


def _count(line: "pd.DataFrame") -> str:
    """Say of how many trainings the points of a line are."""
    counts = sorted({int(n) for n in line["n"]})
    return " to ".join(map(str, counts[:1] + counts[1:][-1:]))
