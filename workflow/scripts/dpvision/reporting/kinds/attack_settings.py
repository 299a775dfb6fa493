"""What an attack tries, as printed, with the σ that this asks for and the ε that it spends."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import Table

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """Settings of attacks: sizes, rates, clipping norms and steps as printed, σ for each ε, and the ε that it spends."""

    kind: Literal["attack_settings"]
    """What it is."""

    READS: ClassVar = {
        "tried": ("attack/tried.csv",),
        "attack": ("attack/attack.json",),
        "provenance": ("attack/provenance.json",),
    }


NOTE = (
    "A row for each level of ε and length of training. σ: the least for ε at δ by Rényi differential privacy; ε is recomputed "
    "from σ, by that and by our own convolution, which is the tightest. Phase one tries all z, learning rates and clipping "
    "norms of a row, and all lengths. The last columns: the largest total variation between the losses on z of models with z "
    "and without it, as two normal distributions, and the setting that it is of. Canaries are their own z, and try nothing."
)


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each attack and length of training, with the best that phase one found there."""
    import pandas as pd

    from dpvision.privacy.accounting import Mechanism, calibrate
    from dpvision.privacy.audit.claim import Scores
    from dpvision.reporting.points import by_folder, read_by_folder

    found, files = read_by_folder(inputs["attack"]), by_folder(inputs["tried"])
    rows = []
    for cell in spec["cells"]:
        for seed, name in cell["work"]["attack"].items():
            about, tried = found[name], pd.read_csv(files[name])
            if STEPS not in tried:
                tried[STEPS] = about["steps"]
            for steps, part in tried.groupby(STEPS):
                sigma = calibrate(about["nominal"], about["delta"], about["q"], int(steps))
                mechanism = Mechanism(about["q"], sigma, int(steps))
                row = {"seed": seed, "by": about["by"], "q": about["q"], STEPS: int(steps), "budget.sigma": sigma}
                row |= {"epsilon_rdp": mechanism.epsilon(about["delta"])}
                row |= {"epsilon_tightest": Scores.of(mechanism).epsilon(about["delta"])}
                row |= {what: _every(part, key) for what, key in TRIED.items()}
                measured = part.dropna(subset="total_variation")
                if len(measured):
                    best = measured.loc[measured["total_variation"].idxmax()]
                    row |= {"best_variation": best["total_variation"]}
                    row |= {f"best_{what}": best[key] for what, key in TRIED.items() if key in part}
                rows.append(cell["at"] | row)
    return pd.DataFrame(rows)


STEPS = "recipe.steps"
TRIED = {"z": "target", "rate": "recipe.optimizer.learning_rate", "clip": "recipe.clip"}


def _every(part: "pd.DataFrame", key: str) -> str:
    """Return all values that a column has, in their order."""
    return (
        ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in part[key].unique())
        if key in part
        else ""
    )


def shown(frame: "pd.DataFrame", spec: "Spec", labels: dict[str, Any]) -> "pd.DataFrame":
    """Return the rows as in print, for people."""
    import pandas as pd

    from dpvision.reporting.markup import number

    rows = []
    for row in frame.astype(object).where(frame.notna(), None).to_dict("records"):
        best = [row.get(f"best_{what}") for what in TRIED]
        said = {"data": labels.get("datasets", {}).get(row["dataset"], row["dataset"]), "ε": f"{row['epsilon']:g}"}
        said |= {"by": row["by"], "q": number(row["q"], 4), "updates": str(row[STEPS]), "σ": number(row["budget.sigma"], 3)}
        said |= {"ε (RDP)": number(row["epsilon_rdp"], 3), "ε, tightest": number(row["epsilon_tightest"], 3)}
        said |= {"z": row["z"], "learning rates": row["rate"] or "–", "clipping norms": row["clip"] or "–"}
        said["largest variation"] = "–" if row.get("best_variation") is None else number(row["best_variation"], 3)
        said["of"] = "–" if best[0] is None else ", ".join(str(value) for value in best if value is not None)
        rows.append(said)
    return pd.DataFrame(rows)
