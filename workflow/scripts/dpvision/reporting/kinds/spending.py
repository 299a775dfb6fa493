"""Printed hyper-parameters with the ε that they spend by two accountants, for each N that they may be meant for."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import Table
from dpvision.config.base import Distinct, Positive

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """σ and steps as printed beside the ε in print, and the ε that they spend; nothing is trained for it."""

    kind: Literal["spending"]
    """What it is."""
    examples: Distinct[Positive]
    """N: how many training examples there may be; q is the batch divided by it."""

    READS: ClassVar = {"provenance": ()}

    def faults(self, models: dict, groups: list) -> Any:
        for key in NEEDED:
            if any(not any(key in point for point in (*(cells.points or []), cells.vary or {})) for cells in groups):
                yield "cells", f"each of its cells needs {key} among what its group varies"


NEEDED = ("budget.nominal", "budget.sigma", "recipe.batch", "recipe.steps")
DECIMALS = 3
NOTE = (
    "ε in print, and what σ and steps in print spend by Poisson sampling with q = batch / N at the δ of the row, by Rényi "
    "differential privacy and by privacy random variables (an upper bound, to 0.01); most steps: as many as ε in print allows "
    "by the first. Nothing is trained for it."
)


def notes(spec: "Spec", inputs: dict[str, list[str]], frame: "pd.DataFrame") -> list[str]:
    """Return what the columns are, and which rows are far from the ε in print."""
    far = frame[(frame["epsilon_rdp"] / frame["printed_epsilon"] - 1).abs() > 0.05]
    said = [f"ε = {row.printed_epsilon:g} at N = {row.examples:,}: {row.epsilon_rdp:.2f}" for row in far.itertuples()]
    return [NOTE, *([f"More than 5 % away: {'; '.join(said)}."] if said else [])]


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each cell and number of examples."""
    import pandas as pd

    from dpvision.privacy.accounting import Mechanism, most_steps, prv_epsilon

    rows = []
    for cell in spec["cells"]:
        at = cell["at"]
        for count in spec["examples"]:
            mechanism = Mechanism(at["recipe.batch"] / count, at["budget.sigma"], at["recipe.steps"])
            printed = at["budget.nominal"]
            found = {"printed_epsilon": printed, "examples": count}
            found |= {"epsilon_rdp": mechanism.epsilon(at["delta"]), "epsilon_prv": prv_epsilon(mechanism, at["delta"])}
            found |= {"most_steps": most_steps(printed, at["delta"], mechanism.q, mechanism.sigma)}
            rows.append(at | found)
    return pd.DataFrame(rows)


PARTS = {"all": "all layers", "head": "classifier layer", "norms": "norms and classifier"}
COLUMNS = {
    "train": "fine-tuned",
    "printed_epsilon": "ε in print",
    "delta": "δ",
    "recipe.augmentation.views": "augmult",
    "recipe.batch": "batch size",
    "recipe.optimizer.learning_rate": "learning rate",
    "budget.sigma": "σ",
    "recipe.steps": "updates",
}


def shown(frame: "pd.DataFrame", spec: "Spec", labels: dict[str, Any]) -> "pd.DataFrame":
    """Return the paper's rows, as columns of a row for each ε, with what each number of examples gives behind them."""
    import pandas as pd

    from dpvision.reporting.markup import number

    there = [name for name in COLUMNS if name in frame and (name != "train" or frame[name].nunique() > 1)]
    rows = []
    for _, part in frame.groupby(there, sort=False, dropna=False):
        first = part.iloc[0]
        row = {COLUMNS[name]: PARTS.get(first[name]) or number(first[name]) for name in there}
        for found in part.to_dict("records"):
            of = f"N = {found['examples']:,}"
            row |= {f"{of}: ε (RDP)": number(found["epsilon_rdp"], 3), f"{of}: ε (PRV)": number(found["epsilon_prv"], 3)}
            row |= {f"{of}: most steps": f"{found['most_steps']}"}
        rows.append(row)
    return pd.DataFrame(rows)
