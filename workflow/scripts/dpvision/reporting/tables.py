"""Tables: one frame each, written as CSV, Markdown and LaTeX.

A row is a cell and a metric. `ours` is the artifact's statistic over the seeds; each seed's own value stands
beside it, and what the averaged weights and the authors' protocol give, where there is such a thing, in columns of
their own. A row that only the paper has says that it was not run.
"""

import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dpvision.files import read_json, replacing, write_text
from dpvision.plan.specs import Spec
from dpvision.reporting.words import made_by, simulation

Values = Mapping[str, float | None]  # by seed

STATISTICS: dict[str, Callable[[list[float]], float]] = {"median": statistics.median, "best": max}

# Metric of the Hessian table: key of hessian.json, and the paper's metric that it may be.
CURVATURE: dict[str, tuple[str, str | None]] = {
    "largest eigenvalue": ("lambda_max_power", "largest_eigenvalue"),  # power iteration
    "trace": ("trace", "trace"),  # Hutchinson, stopped as in the paper
    "trace, all samples": ("trace_full", "trace"),  # Hutchinson, never stopped
    "negative eigenvalues": ("ritz_negative", "negative_eigenvalues"),  # negative Ritz values of Lanczos
    "negative share": ("ritz_negative_share", None),  # of all Ritz values
    "condition: largest to smallest": ("condition_largest_to_smallest_magnitude", "condition_number"),
    "condition: smallest positive to largest": ("condition_smallest_positive_to_largest", "condition_number"),
    "condition: most negative to largest": ("condition_most_negative_to_largest", "condition_number"),
}

# The paper's own numbers of the Hessian, in rows that only the paper has.
PRINTED = {name: name.replace("_", " ") for name in ("largest_eigenvalue", "negative_eigenvalues", "condition_number")}

NOTES = {
    "accuracy": (
        "Accuracies in per cent of the test examples. Ours, and each seed's: at the last step, σ the least for the ε; held-out "
        "training examples steered a learning rate that follows the loss, and whatever a search chose. ε (RDP) and ε (PRV): "
        "spent by one training, by two accountants, neighbours differing in one example; not counted: searches and the "
        "held-out examples (ledger.json of each run). n: trainings, one a seed."
    ),
    "hessian": (
        "Of the mean cross-entropy over training examples at the weights of the last step. The paper says neither for "
        "which data, ε and weights its numbers are, nor what its condition number is: three readings are given. Lanczos finds "
        "as many eigenvalues as it makes steps, and those near zero last: only the outermost can be taken for the network's."
    ),
}
EXAMINED = "By {examples} examples, {lanczos_steps} steps of Lanczos."

AVERAGED = "Averaged: the moving average of the weights instead of those of the last step."
PAPER = (
    "Authors: trained as the authors' code does, with nothing held out, and the test split steering the learning rate and "
    "picking the best epoch, which is what the paper prints; their ε is what that spent. Selection: by how much the best "
    "epoch exceeds the last step, the mean over the seeds: gained by choosing on the test split."
)
MINUTES = "Minutes: of one training, on the machine that its provenance.json describes."


def write_table(spec: Spec, labels: dict[str, str], inputs: dict[str, list[str]], csv: Path) -> None:
    frame = {"accuracy": accuracy_frame, "hessian": hessian_frame}[spec["kind"]](spec, inputs)
    with replacing(csv) as beside:
        frame.to_csv(beside, index=False)
    elsewhere = ~frame["dataset"].isin({cell["dataset"] for cell in spec["cells"]}) & (spec["scale"] != "paper")
    shown = shown_frame(frame[~elsewhere], labels, decimals={"accuracy": 2, "hessian": None}[spec["kind"]])
    scale = "" if spec["scale"] == "paper" else f" Scale {spec['scale']}, not the paper's."
    how = simulation(spec)
    caption = f"{labels['title']}. {labels['paper']}.{scale}{' ' + how.capitalize() + '.' if how else ''}"
    parts = {"averaged": AVERAGED, "authors": PAPER}
    notes = [NOTES[spec["kind"]], *(text for column, text in parts.items() if column in frame)]
    notes += [MINUTES] if "minutes" in set(frame["metric"]) else []
    notes += dict.fromkeys(EXAMINED.format(**read_json(file)) for file in inputs.get("hessians", []))
    if elsewhere.any():
        notes.append(f"{elsewhere.sum()} published numbers of data sets that this scale does not run are in {csv.name}.")
    note = " ".join([*notes, *made_by(read_json(file) for file in inputs["provenance"])])
    write_text(csv.with_suffix(".md"), f"**{caption}**\n\n{markdown(shown)}\n\n{note}\n")
    write_text(csv.with_suffix(".tex"), latex(shown, caption, note, spec["artifact"]))


def accuracy_frame(spec: Spec, inputs: dict[str, list[str]]) -> pd.DataFrame:
    """One row a cell and accuracy, in per cent; the protocols of the same cell side by side, in columns of their own."""
    records = {name: _by_folder(inputs[name]) for name in ("metrics", "ledgers", "provenance")}
    authors = {_place(cell): cell for cell in spec["cells"] if "protocol" in cell}
    rows = []
    for cell in spec["cells"]:
        if "protocol" in cell:
            continue
        printed = [row["metric"] for row in spec["published"] if row["dataset"] == cell["dataset"]]
        for metric in dict.fromkeys(printed or ["top1"]):
            values = _of_seeds(cell, records, metric, "last_step")
            row = _row(spec, cell, metric, values, published=metric) | _spent(cell, records["ledgers"])
            if metric != "minutes" and all("averaged" in records["metrics"][run] for run in cell["runs"].values()):
                row["averaged"] = _statistic(spec, _of_seeds(cell, records, metric, "averaged"))
            if metric != "minutes" and _place(cell) in authors:
                row |= _as_the_authors(spec, authors[_place(cell)], records, metric, row["published"])
            rows.append(row)
    return _frame(spec, rows)


def _of_seeds(cell: dict, records: dict[str, dict], metric: str, weights: str) -> dict[str, float]:
    """A training's accuracy with these weights, or its minutes."""
    if metric == "minutes":
        seconds = {seed: records["provenance"][run]["sessions"] for seed, run in cell["runs"].items()}
        return {seed: sum(session["seconds"] for session in sessions) / 60 for seed, sessions in seconds.items()}
    return {seed: 100 * records["metrics"][run][weights]["test"][metric] for seed, run in cell["runs"].items()}


def _spent(cell: dict, ledgers: dict[str, dict]) -> dict[str, float | None]:
    """By the training that spent most."""
    spent = [ledgers[run]["epsilon"] or {} for run in cell["runs"].values()]
    return {f"epsilon_{by}": max((e[by] for e in spent if by in e), default=None) for by in ("rdp", "prv")}


def _as_the_authors(spec: Spec, cell: dict, records: dict[str, dict], metric: str, published: float | None) -> dict[str, Any]:
    best, last = (_of_seeds(cell, records, metric, weights) for weights in ("best_epoch", "last_step"))
    ours = _statistic(spec, best)
    return {
        "authors": ours,
        "authors_last_step": _statistic(spec, last),
        "authors_selection": statistics.mean(best[seed] - last[seed] for seed in best),
        "authors_n": len(best),
        "authors_difference": None if published is None else ours - published,
        **{f"authors_{name}": value for name, value in _spent(cell, records["ledgers"]).items()},
    }


def _statistic(spec: Spec, values: dict[str, float]) -> float:
    return STATISTICS[spec["statistic"]](list(values.values()))


def hessian_frame(spec: Spec, inputs: dict[str, list[str]]) -> pd.DataFrame:
    """One row a cell and number."""
    hessians = _by_folder(inputs["hessians"])
    rows = []
    for cell in spec["cells"]:
        for metric, (key, published) in CURVATURE.items():
            examined = {seed: hessians[spec["analyses"][run]] for seed, run in cell["runs"].items()}
            row = _row(spec, cell, metric, {seed: found[key] for seed, found in examined.items()}, published)
            if key == "ritz_negative" and any(found["lanczos_steps"] <= (row["published"] or 0) for found in examined.values()):
                row["difference"] = None  # there could not be so many
            rows.append(row)
    return _frame(spec, rows)


def _by_folder(files: list[str]) -> dict[str, Any]:
    return {Path(file).parent.name: read_json(file) for file in files}


def _row(spec: Spec, cell: dict, metric: str, values: Values, published: str | None) -> dict[str, Any]:
    there = [value for value in values.values() if value is not None]
    ours = STATISTICS[spec["statistic"]](there) if there else None
    key = (*_place(cell), published)
    printed = [row["value"] for row in spec["published"] if _key(row) == key]
    theirs = printed[0] if printed else None
    return {
        **{name: cell[name] for name in ("dataset", "model", "epsilon", "delta", "simulated") if name in cell},
        "metric": metric,
        "statistic": spec["statistic"],
        "n": len(there),
        "ours": ours,
        **{f"seed_{seed}": value for seed, value in values.items()},
        "published": theirs,
        "difference": None if ours is None or theirs is None else ours - theirs,
        "state": "run" if there else "no finite value",
        "_key": key,
    }


def _place(row: dict) -> tuple:
    return row["dataset"], row["model"], row["epsilon"]


def _key(row: dict) -> tuple:
    return *_place(row), row["metric"]


def _frame(spec: Spec, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Our rows, then those that only the paper has."""
    ours = {row.pop("_key") for row in rows}
    for row in spec["published"]:
        if _key(row) not in ours:
            names = ("dataset", "model", "epsilon", "metric", "statistic")
            rows.append({name: row[name] for name in names} | {"n": 0, "published": row["value"], "state": "not run"})
    return pd.DataFrame(rows)


def shown_frame(frame: pd.DataFrame, labels: dict[str, str], decimals: int | None) -> pd.DataFrame:
    """The frame as people read it: names instead of keys, rounded numbers, a dash for what is not there."""
    seeds = [name for name in frame.columns if name.startswith("seed_")]
    columns = {
        "dataset": "data set",
        "model": "model",
        "epsilon": "ε",
        "delta": "δ",
        "metric": "metric",
        "statistic": "statistic",
        "published": "published",
        "ours": "ours",
        "difference": "difference",
        "averaged": "averaged",
        **{seed: seed.replace("_", " ") for seed in seeds},
        "n": "n",
        "epsilon_rdp": "ε (RDP)",
        "epsilon_prv": "ε (PRV)",
        "authors": "authors",
        "authors_difference": "authors: difference",
        "authors_last_step": "authors: last step",
        "authors_selection": "authors: selection",
        "authors_n": "authors: n",
        "authors_epsilon_rdp": "authors: ε (RDP)",
    }
    rounded = [*seeds, "ours", "averaged", "authors", "authors_last_step"]
    formats: dict[str, Callable[[Any], str]] = {
        **dict.fromkeys(("published", "delta"), number),
        "epsilon": lambda value: "not private" if pd.isna(value) else number(value),
        "metric": lambda name: PRINTED.get(name, name),
        **dict.fromkeys(("epsilon_rdp", "epsilon_prv", "authors_epsilon_rdp"), lambda value: number(value, 3)),
        **dict.fromkeys(rounded, lambda value: number(value, decimals)),
        **dict.fromkeys(("difference", "authors_difference", "authors_selection"), lambda value: number(value, decimals, "+")),
        "authors_n": lambda value: number(value, 0),
        "model": lambda name: labels.get(str(name), str(name)),
    }
    shown = frame[[name for name in columns if name in frame]].copy()
    for name, form in formats.items():
        if name in shown:
            shown[name] = [form(value) for value in frame[name]]
    if "simulated" in frame:
        shown["epsilon"] += frame["simulated"].map(lambda k: "" if pd.isna(k) else ", simulated")
    shown["ours"] = shown["ours"].where(frame["state"] == "run", frame["state"])
    return shown.rename(columns=columns)


def number(value: float | None, decimals: int | None = None, sign: str = "") -> str:
    """With so many decimals, or four digits that count; a dash for nothing."""
    if value is None or pd.isna(value):
        return "–"
    if decimals is not None:
        return f"{value:{sign}.{decimals}f}"
    whole = 1000 <= abs(value) < 1e9
    return f"{value:{sign}.0f}" if whole else f"{value:{sign}.4g}"


def markdown(shown: pd.DataFrame) -> str:
    rows = [list(shown.columns), ["---"] * len(shown.columns), *shown.astype(str).values.tolist()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def latex(shown: pd.DataFrame, caption: str, note: str, name: str) -> str:
    """A booktabs table. ε and the dash as LaTeX has them."""
    rows = [" & ".join(map(_tex, row)) + r" \\" for row in [list(shown.columns), *shown.astype(str).values.tolist()]]
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(caption)}}}", rf"\label{{tab:{name}}}"]
    lines += [r"\resizebox{\textwidth}{!}{%"]
    lines += [rf"\begin{{tabular}}{{{'l' * len(shown.columns)}}}", r"\toprule", rows[0], r"\midrule", *rows[1:]]
    lines += [r"\bottomrule", r"\end{tabular}}", rf"\par\smallskip\footnotesize {_tex(note)}", r"\end{table}"]
    return "% needs \\usepackage{booktabs,graphicx}\n" + "\n".join(lines) + "\n"


def _tex(text: str) -> str:
    for plain, escaped in (("_", r"\_"), ("%", r"\%"), ("&", r"\&"), ("ε", r"$\varepsilon$"), ("δ", r"$\delta$"), ("–", "--")):
        text = text.replace(plain, escaped)
    return text
