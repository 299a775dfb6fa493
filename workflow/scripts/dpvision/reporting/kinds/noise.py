"""How far the noise of an update outweighs the error of its sample: what the scale `simulate` rests on."""

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import Table

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """σ √(d / B) of each cell, with d parameters and a batch of B, and the same of its simulation."""

    kind: Literal["noise"]
    """What it is."""

    READS: ClassVar = {
        "ledgers": ("train/ledger.json",),
        "specs": ("train/spec.json",),
        "provenance": ("train/provenance.json",),
    }


DECIMALS = 1
NOTE = (
    "σ √(d / B): the noise of an update for the error of its sample, were all gradients as long as the clipping bound, with d "
    "parameters and an expected batch B. A simulation with batch and σ divided by k has 1 / √k of it, and predicts well while "
    "that stays well above 1. σ, steps and ε are those of the training itself, not of its simulation. d counts the weights of "
    "convolutions and linear layers alone; with norms and biases the noise would outweigh a little more. It is left open where "
    "a part of the network trains alone, or nobody has counted its layers."
)


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each cell; trainings of a cell have the same, unless a search found other values."""
    import pandas as pd

    from dpvision.reporting.points import read_by_folder

    ledgers, trained = read_by_folder(inputs["ledgers"]), read_by_folder(inputs["specs"])
    rows = []
    for cell in spec["cells"]:
        run = next(iter(cell["work"]["train"].values()))
        ledger = ledgers[run].get("simulated", ledgers[run])
        if "noise_multiplier" not in ledger:
            continue
        count, batch = parameters(trained[run]), round(ledger["sampling_rate"] * ledger["examples"])
        ratio = None if count is None else ledger["noise_multiplier"] * math.sqrt(count / batch)
        found = {"parameters": count, "batch": batch, "sigma_used": ledger["noise_multiplier"]}
        found |= {"steps_made": ledger["steps"]["made"], "epsilon_rdp": ledger["epsilon"]["rdp"]}
        found |= {"ratio": ratio, "simulated": cell.get("simulated", 1)}
        rows.append(cell["at"] | found | {"ratio_simulated": ratio and ratio / math.sqrt(found["simulated"])})
    return pd.DataFrame(rows)


def parameters(run: "Spec") -> int | None:
    """Count a run's network, whether or not its weights are kept; None where a part of it trains, or nobody counted it."""
    from dpvision.plan import cost, specs

    whole = specs.trained_part(run) == "all" or run["data"].get("kind") == "features"
    return cost.counts_of(run).parameters or None if whole else None


COLUMNS = {
    "parameters": "d",
    "batch": "B",
    "sigma_used": "σ",
    "steps_made": "steps",
    "epsilon_rdp": "ε (RDP)",
    "ratio": "σ √(d / B)",
    "simulated": "k",
    "ratio_simulated": "in the simulation",
}


def shown(frame: "pd.DataFrame", spec: "Spec", labels: dict[str, Any]) -> "pd.DataFrame":
    """Return the coordinates that tell cells apart, and the numbers."""
    import pandas as pd

    from dpvision.reporting.coordinates import HEADINGS, telling
    from dpvision.reporting.markup import number

    names = list(dict.fromkeys(["model", *telling([cell["at"] for cell in spec["cells"]])]))
    rows = []
    for found in frame.to_dict("records"):
        about = {HEADINGS.get(name, name): _text(found.get(name), labels) for name in names}
        counts = {"parameters": 0, "batch": 0, "steps_made": 0, "simulated": 0}
        rows.append(about | {head: number(found[key], counts.get(key)) for key, head in COLUMNS.items()})
    return pd.DataFrame(rows)


def _text(value: Any, labels: dict[str, Any]) -> str:
    from dpvision.reporting.markup import number

    return labels["models"].get(value, value) if isinstance(value, str) else number(value)
