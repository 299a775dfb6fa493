"""How many examples each split of a data set has, beside the numbers in print."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import Table

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """The training, held-out and test examples of the data sets of its cells; nothing is trained for it."""

    kind: Literal["splits"]
    """What it is."""

    READS: ClassVar = {"data": ("data/dataset.json",), "provenance": ("data/provenance.json",)}


DECIMALS = 0
NOTE = (
    "Examples: as they are prepared, less those that the cells hold out; in print behind the stroke. Nothing is trained for it."
)
SPLITS = {"train": "train", "validation": "held out", "train_validation": "both", "test": "test"}


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each data set and split, those of the paper alone included."""
    import pandas as pd

    from dpvision.reporting.points import read_by_folder

    described = read_by_folder(inputs["data"])
    ours: dict[tuple[str, str], int] = {}
    for cell in spec["cells"]:
        at = cell["at"]
        for name in cell["work"]["data"].values():
            counts, held_out = described[name], at["held_out"]
            found = {"train_validation": counts["train"], "test": counts["test"]}
            found |= {"train": counts["train"] - held_out, "validation": held_out} if held_out else {}
            ours |= {(at["dataset"], split): count for split, count in found.items()}
    printed = {(row["at"]["dataset"], row["metric"]): row["value"] for row in spec["published"]}
    rows = []
    for dataset, split in dict.fromkeys([*ours, *printed]):
        here, there = ours.get((dataset, split)), printed.get((dataset, split))
        state = "not run" if here is None else "run"
        rows.append({"dataset": dataset, "metric": split, "ours": here, "published": there, "state": state})
    return pd.DataFrame(rows)


def shown(frame: "pd.DataFrame", spec: "Spec", labels: dict[str, Any]) -> "pd.DataFrame":
    """Return a row for each data set, as in print."""
    import pandas as pd

    rows = []
    for dataset, part in frame.groupby("dataset", sort=False):
        of = {row["metric"]: f"{_count(row['ours'])} / {_count(row['published'])}" for row in part.to_dict("records")}
        rows.append({"data set": dataset} | {head: of.get(split, "– / –") for split, head in SPLITS.items()})
    return pd.DataFrame(rows)


def _count(value: Any) -> str:
    return "–" if value is None or value != value else f"{value:,.0f}"
