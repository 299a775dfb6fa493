"""A table of accuracies by class: a row a cell and class."""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from dpvision.config.artifacts import Table

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """A table of accuracies by class: who pays for privacy."""

    kind: Literal["by_class"]
    """What it is."""

    READS: ClassVar = {
        "classes": ("by_class/classes.csv",),
        "provenance": ("train/provenance.json", "by_class/provenance.json"),
    }


DECIMALS = 1
HEADS = {"metric": "class"}
NOTE = "Accuracies in per cent of the test examples of each class, at the last step."


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    import pandas as pd

    from dpvision.reporting.tables import frame_of, row

    files = {Path(file).parent.name: pd.read_csv(file, dtype={"class": str}) for file in inputs["classes"]}
    rows = []
    for cell in spec["cells"]:
        counted = {seed: files[name] for seed, name in cell["work"]["by_class"].items()}
        for place, name in enumerate(next(iter(counted.values()))["class"]):
            lines = {seed: table.iloc[place] for seed, table in counted.items()}
            values = {
                seed: 100 * line["right"] / line["examples"] if line["examples"] else None for seed, line in lines.items()
            }
            rows.append(row(spec, cell, name, values, None, lacking="no test picture"))
    return frame_of(spec, rows)
