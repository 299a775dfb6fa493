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
        "weights": ("train/weights.safetensors",),
        "provenance": ("train/provenance.json",),
    }


DECIMALS = 1
NOTE = (
    "σ √(d / B): the noise of an update for the error of its sample, were all gradients as long as the clipping bound, with d "
    "parameters and an expected batch B. A simulation with batch and σ divided by k has 1 / √k of it, and predicts well while "
    "that stays well above 1. σ, steps and ε are those of the training itself, not of its simulation."
)


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each cell; trainings of a cell have the same, unless a search found other values."""
    import pandas as pd

    from dpvision.reporting.points import read_by_folder
    from dpvision.reporting.records import Records

    ledgers, networks = read_by_folder(inputs["ledgers"]), Records({"": inputs["weights"]})
    rows = []
    for cell in spec["cells"]:
        run = next(iter(cell["work"]["train"].values()))
        ledger = ledgers[run].get("simulated", ledgers[run])
        if "noise_multiplier" not in ledger:
            continue
        count, batch = networks.parameters(run) or 0, round(ledger["sampling_rate"] * ledger["examples"])
        ratio = ledger["noise_multiplier"] * math.sqrt(count / batch)
        found = {"parameters": count, "batch": batch, "sigma_used": ledger["noise_multiplier"]}
        found |= {"steps_made": ledger["steps"]["made"], "epsilon_rdp": ledger["epsilon"]["rdp"]}
        found |= {"ratio": ratio, "simulated": cell.get("simulated", 1)}
        rows.append(cell["at"] | found | {"ratio_simulated": ratio / math.sqrt(found["simulated"])})
    return pd.DataFrame(rows)


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
    from dpvision.reporting.tables import number

    names = list(dict.fromkeys(["model", *telling([cell["at"] for cell in spec["cells"]])]))
    rows = []
    for found in frame.to_dict("records"):
        about = {HEADINGS.get(name, name): _text(found.get(name), labels) for name in names}
        counts = {"parameters": 0, "batch": 0, "steps_made": 0, "simulated": 0}
        rows.append(about | {head: number(found[key], counts.get(key)) for key, head in COLUMNS.items()})
    return pd.DataFrame(rows)


def _text(value: Any, labels: dict[str, Any]) -> str:
    from dpvision.reporting.tables import number

    return labels["models"].get(value, value) if isinstance(value, str) else number(value)
