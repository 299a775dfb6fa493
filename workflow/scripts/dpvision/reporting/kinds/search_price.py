"""The price of searches: ε of one run, of all trials as one composition, and of the best of a random number of trials."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import Table

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """List what the searches of cells spend, by what is planned; nothing is trained for it."""

    kind: Literal["search_price"]
    """What it is."""

    READS: ClassVar = {"provenance": ()}
    SEARCHES: ClassVar = True

    def faults(self, models: dict, groups: list) -> Any:
        for cells in groups:
            if not cells.search and not any(models[name].searched() for name in cells.models if name in models):
                yield "cells", "each of its groups needs a search, or models that leave values to one"


NOTE = (
    "Of each search the dearest trial that it can draw, and a run with what it found, which costs the same. All trials: their "
    "composition with that run, which holds for every search. Covered: the best of a number of trials that is geometric with "
    "this mean, composed with the run (Papernot and Steinke 2022, theorem 2): what `sampler: covered` spends, and no grid "
    "nor TPE can claim. By Rényi accounting at the δ of the row; held-out examples count as public. Nothing is trained for it."
)


def notes(spec: "Spec", inputs: dict[str, list[str]], frame: "pd.DataFrame") -> list[str]:
    return [NOTE]


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each price: searches of several cells that spend the same are one."""
    import pandas as pd

    return pd.DataFrame([_row(cell["at"], study) for cell in spec["cells"] for study in cell["studies"]]).drop_duplicates()


def _row(at: dict[str, Any], study: "Spec") -> dict[str, Any]:
    import numpy as np

    from dpvision.privacy.accounting import epsilon_of, selection_rdp
    from dpvision.privacy.mechanism import possible_trials

    delta, trials = study["run"]["budget"]["delta"], study["trials"]
    dearest = max(possible_trials(study), key=lambda trial: epsilon_of((trials + 1) * trial.rdp(), delta))
    rdp = np.maximum.reduce([trial.rdp() for trial in possible_trials(study)])
    return {
        "dataset": at["dataset"],
        "search": at["search"],
        "sampler": study.get("sampler", "tpe"),
        "trials": trials,
        "delta": delta,
        "sampling_rate": dearest.q,
        "sigma": dearest.sigma,
        "steps": dearest.steps,
        "epsilon_run": dearest.epsilon(delta),
        "epsilon_all_composed": epsilon_of((trials + 1) * rdp, delta),
        "epsilon_covered": epsilon_of(selection_rdp(rdp, trials) + rdp, delta),
    }


COLUMNS = {
    "search": "search",
    "trials": "trials",
    "delta": "δ",
    "sigma": "σ",
    "steps": "steps",
    "epsilon_run": "ε of a run",
    "epsilon_all_composed": "ε, all trials",
    "epsilon_covered": "ε, covered",
}


def shown(frame: "pd.DataFrame", spec: "Spec", labels: dict[str, Any]) -> "pd.DataFrame":
    """Return the rows as people read them, with what data sets are called."""
    from dpvision.reporting.markup import number

    texts = frame[list(COLUMNS)].rename(columns=COLUMNS).astype(object)
    for column in texts:
        if column not in ("search", "trials", "steps"):
            texts[column] = [number(value, 2 if column.startswith("ε") else None) for value in texts[column]]
    texts.insert(0, "data set", [labels.get("datasets", {}).get(name, name) for name in frame["dataset"]])
    return texts
