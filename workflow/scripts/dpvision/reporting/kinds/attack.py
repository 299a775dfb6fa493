"""Lower bounds of ε that attacks on whole trainings prove, beside the printed ones and what can be expected at most."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dpvision.config.artifacts import Table

if TYPE_CHECKING:
    import pandas as pd

    from dpvision.plan.specs import Spec


class Options(Table):
    """Lower bounds of ε by attacks, a row for each, with AUC, advantage, and what so many models can prove at most."""

    kind: Literal["attack"]
    """What it is."""

    READS: ClassVar = {"attack": ("attack/attack.json",), "provenance": ("attack/provenance.json",)}


METRICS = ("lower_bound", "auc", "advantage", "advantage_bound")
BESIDE = ("lower_bound_95", "perfect_attack", "best_attack", "claimed", "epsilon_of_mu", "inside", "out", "reserved")
ABOUT = ("by", "examples", "views", "confidence")
COUNTED = ("false_negatives", "false_positives", "threshold", "threshold_of_mu")
NOTE = (
    "ε ≥: by the errors of a threshold on the loss of z, of n models without z and n with it, none of which chose the "
    "threshold; Clopper and Pearson's bounds of both rates hold together, at 99.9 % or what the CSV says. At most: what an "
    "attack without any error would prove with so many models; best attack: what is to be expected of the best one on all that "
    "the training gives away, if the claim holds. ε of μ holds for mechanisms with Gaussian curves alone. Tightest: ε of σ and "
    "steps by convolution. The advantage (adv.) is that of the threshold that is best for μ."
)
CANARIES = (
    "By canaries: no network was trained. Images with gradients of known directions, each in by a fair coin, are told apart by "
    "what the engine's steps at these q, σ and steps give away; n are canaries of each world. It is another attack than the "
    "printed one, and a stronger one: it sees every step."
)


def notes(spec: "Spec", inputs: dict[str, list[str]], frame: "pd.DataFrame") -> list[str]:
    """Return what the columns are; whatever exceeds the claim is said first."""
    over = frame[(frame["metric"] == "lower_bound") & (frame["ours"] > frame["claimed"])]
    said = (
        [f"More than is claimed: {', '.join(f'ε = {row.epsilon:g}, seed {row.seed}' for row in over.itertuples())}."]
        if len(over)
        else []
    )
    return [*said, NOTE, *([CANARIES] if (frame["by"] == "canaries").any() else [])]


def frame(spec: "Spec", inputs: dict[str, list[str]]) -> "pd.DataFrame":
    """Return a row for each attack and metric, the printed number beside it."""
    import pandas as pd

    from dpvision.reporting.points import read_by_folder
    from dpvision.reporting.tables import of_cell

    found = read_by_folder(inputs["attack"])
    rows, printed = [], set()
    for cell in spec["cells"]:
        for seed, name in cell["work"]["attack"].items():
            about = found[name]
            same = {"attack": name, **{key: about[key] for key in (*ABOUT, *BESIDE, *COUNTED)}}
            same["z"] = about["chosen"]["target"]
            same |= {f"chosen.{key}": value for key, value in about["chosen"]["values"].items()}
            for metric in METRICS:
                theirs = [i for i, row in enumerate(spec["published"]) if row["metric"] == metric and of_cell(row, cell["at"])]
                printed.update(theirs)
                value = spec["published"][theirs[0]]["value"] if theirs else None
                rows.append(
                    {
                        **cell["at"],
                        "seed": seed,
                        "metric": metric,
                        "ours": about[metric],
                        "published": value,
                        **same,
                        "state": "run",
                    }
                )
    for i, row in enumerate(spec["published"]):
        if i not in printed:
            rows.append({**row["at"], "metric": row["metric"], "published": row["value"], "state": "not run"})
    return pd.DataFrame(rows)


def shown(frame: "pd.DataFrame", spec: "Spec", labels: dict[str, Any]) -> "pd.DataFrame":
    """Return a row for each attack, as in print, with what stands beside it."""
    import pandas as pd

    from dpvision.reporting.markup import number

    rows = []
    ours = frame[frame["state"] == "run"]
    plain = ours.astype(object).where(ours.notna(), None)
    names = [key for key in plain if key.startswith("chosen.")]
    for _, part in plain.groupby("attack", sort=False):
        row, of = part.iloc[0].to_dict(), {line["metric"]: line for line in part.to_dict("records")}

        def both(metric: str, decimals: int, of: dict[str, Any] = of) -> str:
            theirs = of[metric]["published"]
            return number(of[metric]["ours"], decimals) + ("" if theirs is None else f" / {number(theirs, decimals)}")

        chosen = [f"{key.rpartition('.')[2].replace('_', ' ')} {row[key]:g}" for key in names if row[key] is not None]
        said = {"data": labels.get("datasets", {}).get(row["dataset"], row["dataset"]), "N": f"{row['examples']:,.0f}"}
        said |= {"ε": f"{row['epsilon']:g}", "tightest": number(row["claimed"], 2)}
        said |= {"by": row["by"] + (f", {row['views']:.0f} views" if row["views"] > 1 else "")}
        said |= {"n": f"{min(row['inside'], row['out']):,.0f}", "ε ≥ / in print": both("lower_bound", 3)}
        said |= {"at 95 %": number(row["lower_bound_95"], 3), "at most": number(row["perfect_attack"], 2)}
        said |= {"best attack": number(row["best_attack"], 2), "ε of μ": number(row["epsilon_of_mu"], 2)}
        said |= {"AUC / in print": both("auc", 2), "adv. / in print": both("advantage", 2)}
        said |= {
            "adv. at most / in print": both("advantage_bound", 2),
            "z": ", ".join([row["z"], *chosen]),
            "seed": row["seed"],
        }
        rows.append(said)
    return pd.DataFrame(rows)
