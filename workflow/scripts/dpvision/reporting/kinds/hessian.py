"""A table of the Hessian's numbers: a row a cell and number."""

from typing import TYPE_CHECKING, ClassVar, Literal

from dpvision.config.artifacts import Table
from dpvision.files import read_json

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """A table of the Hessian's numbers."""

    kind: Literal["hessian"]
    """What it is."""

    LAYOUT: ClassVar = {"rows": ["metric"], "columns": ["model"]}
    READS: ClassVar = {
        "hessians": ("hessian/hessian.json",),
        "provenance": ("train/provenance.json", "hessian/provenance.json"),
    }


DECIMALS = None
NUMBERS: dict[str, tuple[str, str | None]] = {  # metric -> key of hessian.json, and the paper's metric that it may be
    "largest eigenvalue": ("lambda_max_power", "largest_eigenvalue"),  # power iteration
    "trace": ("trace", "trace"),  # Hutchinson, stopped as in the paper
    "trace, all samples": ("trace_full", "trace"),  # Hutchinson, never stopped
    "negative eigenvalues": ("ritz_negative", "negative_eigenvalues"),  # negative Ritz values of Lanczos
    "negative share": ("ritz_negative_share", None),  # of all Ritz values
    "condition: largest to smallest": ("condition_largest_to_smallest_magnitude", "condition_number"),
    "condition: smallest positive to largest": ("condition_smallest_positive_to_largest", "condition_number"),
    "condition: most negative to largest": ("condition_most_negative_to_largest", "condition_number"),
}
NOTE = (
    "Of the mean cross-entropy over training examples at the weights of the last step. The paper says neither for "
    "which data, ε and weights its numbers are, nor what its condition number is: three readings are given. Lanczos finds "
    "as many eigenvalues as it makes steps, and those near zero last: only the outermost can be taken for the network's."
)
EXAMINED = "By {examples} examples, {lanczos_steps} steps of Lanczos."


def notes(spec: "Spec", inputs: dict[str, list[str]], frame: "pd.DataFrame") -> list[str]:
    return [NOTE, *dict.fromkeys(EXAMINED.format(**read_json(file)) for file in inputs["hessians"])]


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    from dpvision.reporting.tables import by_folder, frame_of, row

    hessians = by_folder(inputs["hessians"])
    rows = []
    for cell in spec["cells"]:
        examined = {seed: hessians[name] for seed, name in cell["work"]["hessian"].items()}
        for metric, (key, printed) in NUMBERS.items():
            found = row(spec, cell, metric, {seed: one[key] for seed, one in examined.items()}, printed)
            if key == "ritz_negative" and any(one["lanczos_steps"] <= (found["published"] or 0) for one in examined.values()):
                found["difference"] = None  # there could not be so many
            rows.append(found)
    return frame_of(spec, rows)
