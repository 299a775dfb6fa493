"""Tables: one long frame each, written as CSV; and as people read it, as Markdown and LaTeX.

A row is a cell and a metric, every coordinate a column. `ours` is the artifact's statistic over the seeds; each seed's own
value stands beside it. A row that only the paper has says that it was not run. A coordinate may be laid out as columns.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dpvision.config.metrics import measured
from dpvision.files import read_json, replacing, write_text
from dpvision.plan.specs import Spec
from dpvision.reporting.coordinates import HEADINGS, NOMINAL, always_shown, row_coordinates
from dpvision.reporting.kinds import KINDS
from dpvision.reporting.summary import Summary, said, summarise
from dpvision.reporting.words import made_by, simulation

NUMBERS = (
    *("published", "ours", "difference", "averaged", "last_step", "selection", "seeds", "n"),
    *("best_trial", "ten_best", "ten_best_n", "found", "epsilon_rdp", "epsilon_prv"),
)
LAID_OUT = [name for name in NUMBERS if name not in ("published", "seeds", "epsilon_prv")]  # for each value of a coordinate
WHICH = ("weights", "split")  # of a metric
NAMES = {"best_trial": "best trial", "ten_best": "mean of the ten best", "ten_best_n": "n best"}
NAMES |= {"last_step": "last step", "epsilon_rdp": "ε (RDP)", "epsilon_prv": "ε (PRV)", **HEADINGS}


def write_table(spec: Spec, labels: dict[str, Any], inputs: dict[str, list[str]], csv: Path) -> None:
    kind = KINDS[spec["kind"]]
    frame = kind.frame(spec, inputs)
    with replacing(csv) as beside:
        frame.to_csv(beside, index=False)
    elsewhere = ~frame["dataset"].isin({cell["at"]["dataset"] for cell in spec["cells"]}) & (spec["scale"] != "paper")
    there = frame[~elsewhere]
    shown = kind.shown(there, spec, labels) if hasattr(kind, "shown") else shown_frame(there, spec, labels, kind.DECIMALS)
    scale = "" if spec["scale"] == "paper" else f" Scale {spec['scale']}, not the paper's."
    how = simulation(spec)
    caption = f"{labels['title']}. {labels['paper']}.{scale}{' ' + how.capitalize() + '.' if how else ''}"
    notes = kind.notes(spec, inputs, frame) + spread_note(spec, frame)
    if elsewhere.any():
        notes.append(f"{elsewhere.sum()} published numbers of data sets that this scale does not run are in {csv.name}.")
    note = " ".join([*notes, *made_by(read_json(file) for file in inputs["provenance"])])
    write_text(csv.with_suffix(".md"), f"**{caption}**\n\n{markdown(shown)}\n\n{note}\n")
    write_text(csv.with_suffix(".tex"), latex(shown, caption, note, spec["artifact"]))


# --- the long frame ---


def by_folder(files: list[str]) -> dict[str, Any]:
    """Read the JSON files of records, by their folders' names."""
    return {Path(file).parent.name: read_json(file) for file in files}


def metrics_of(spec: Spec, cell: dict) -> list[str]:
    """Return the metrics that the paper prints of a cell's data set, or else the accuracy."""
    printed = [row["metric"] for row in spec["published"] if row["at"].get("dataset") == cell["at"]["dataset"]]
    return list(dict.fromkeys(printed or ["top1"]))


def summary(spec: Spec, values: Iterable[float | None]) -> Summary:
    """Return the artifact's statistic over the seeds, and its spread."""
    return summarise(values, spec["statistic"], spec.get("spread"))


def row(
    spec: Spec,
    cell: dict,
    metric: str,
    values: Mapping[str, float | None],
    printed: str | None,
    weights: str | None = None,
    split: str | None = None,
    lacking: str = "no finite value",
) -> dict[str, Any]:
    """Make the row of a cell and metric.

    `printed` is what the paper calls the metric, none where it does not print it; `lacking` says why, if no seed has a value.
    """
    ours = summary(spec, values.values())
    of = measured(cell["at"]["protocol"], printed, weights, split)
    rows = [row for row in spec["published"] if of_cell(row, cell["at"]) and _counted(row, cell["at"]) == of]
    theirs = rows[0]["value"] if rows else None
    return {
        **cell["at"],
        **({"simulated": cell["simulated"]} if "simulated" in cell else {}),
        "metric": metric,
        **({"weights": weights, "split": split} if _says_which(spec) else {}),
        "statistic": spec["statistic"],
        "n": ours.n,
        "ours": ours.value,
        **({"spread": ours.spread, "spread_is": spec["spread"]} if "spread" in spec else {}),
        **{f"seed_{seed}": value for seed, value in values.items()},
        "published": theirs,
        **({"published_spread": rows[0].get("spread") if rows else None} if _prints_spreads(spec) else {}),
        "difference": None if ours.value is None or theirs is None else ours.value - theirs,
        "state": "run" if ours.n else lacking,
        "_printed": [spec["published"].index(row) for row in rows],
    }


def of_cell(row: Spec, at: dict[str, Any]) -> bool:
    """Whether a published number is of the cell there: all coordinates that it names are the cell's."""
    return all(at.get(name) == value for name, value in row["at"].items())


def _counted(row: Spec, at: dict[str, Any]) -> tuple[str | None, ...]:
    """Return the weights, the split and the name of what a published number of the cell there counts."""
    return measured(at["protocol"], row["metric"], row.get("weights"), row.get("split"))


def _prints_spreads(spec: Spec) -> bool:
    """Whether the paper prints a spread behind one of its numbers."""
    return any("spread" in row for row in spec["published"])


def _says_which(spec: Spec) -> bool:
    """Whether rows say of which weights and on which examples they are: the artifact or a published number does."""
    return "metrics" in spec or any("weights" in row or "split" in row for row in spec["published"])


def frame_of(spec: Spec, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Make a frame of our rows, then those that only the paper has."""
    shown = {i for row in rows for i in row.pop("_printed")}
    for i, row in enumerate(spec["published"]):
        if i not in shown:
            about = row["at"] | {name: row[name] for name in ("metric", *WHICH, "statistic") if name in row}
            state = "not asked for" if any(of_cell(row, cell["at"]) for cell in spec["cells"]) else "not run"
            printed = {"published": row["value"]} | ({"published_spread": row["spread"]} if "spread" in row else {})
            rows.append(about | {"n": 0, **printed, "state": state})
    return pd.DataFrame(rows)


# --- as people read it ---


def spread_note(spec: Spec, frame: pd.DataFrame) -> list[str]:
    """Say what stands behind ±, and over how many seeds; nothing where no spread is asked for."""
    if "spread" not in spec:
        return []
    counts = sorted({int(n) for n in frame.loc[frame["spread"].notna(), "n"]})
    over = f"over {' to '.join(map(str, counts[:1] + counts[1:][-1:]))} seeds" if counts else "none: no cell has two seeds"
    return [f"Ours: {said(spec['statistic'], spec['spread'])}, {over}."]


def shown_frame(frame: pd.DataFrame, spec: Spec, labels: dict[str, Any], decimals: int | None) -> pd.DataFrame:
    """Make the frame that people read: coordinates that differ, names instead of keys, rounded numbers, a dash for nothing."""
    column = spec.get("columns")
    places = [cell["at"] for cell in spec["cells"]]
    wanted = {*row_coordinates(places, column), *always_shown(places)}
    coordinates = [name for name in dict.fromkeys(name for at in places for name in at) if name in wanted]
    texts = frame.apply(lambda row: _texts(row, labels, decimals), axis=1, result_type="expand")
    about = [*coordinates, "metric", *(name for name in WHICH if name in frame and frame[name].nunique() > 1), "statistic"]
    seeds = [name for name in frame.columns if name.startswith("seed_")]
    if column is None or frame[column].nunique() < 2:
        numbers = [name for key in NUMBERS for name in (seeds if key == "seeds" else [key]) if name in frame]
        shown = texts[[*about, *numbers]]
        return shown.rename(columns=lambda name: NAMES.get(name, name.replace("seed_", "seed ")))
    return _laid_out(frame, texts, about, column)


def _laid_out(frame: pd.DataFrame, texts: pd.DataFrame, keys: list[str], column: str) -> pd.DataFrame:
    """Lay a coordinate out: a row for all cells that differ in it alone, the numbers of each of its values side by side."""
    values = list(dict.fromkeys(frame[column].dropna()))
    heads = {(value, name): f"{value}: {NAMES.get(name, name)}" for value in values for name in LAID_OUT}
    rows: dict[tuple, dict[str, str]] = {}
    filled = set()
    for (_, row), (_, text) in zip(frame.iterrows(), texts.iterrows(), strict=True):
        key = tuple(text[name] for name in keys)
        found = rows.setdefault(key, dict(zip(keys, key, strict=True)) | {"published": text["published"]})
        if _there(row, "published"):  # it may be of one of the values alone
            found["published"] = text["published"]
        value = values[0] if pd.isna(row[column]) else row[column]  # only the paper has it: said once
        for name in LAID_OUT:
            if name in frame and (name == "ours" or _there(row, name)):
                found[heads[value, name]] = text[name]
                filled.add(heads[value, name])
    shown = pd.DataFrame(list(rows.values()), columns=[*keys, "published", *(h for h in heads.values() if h in filled)])
    return shown.fillna("–").rename(columns=NAMES)


def _there(row: pd.Series, name: str) -> bool:
    return name in row and not pd.isna(row[name])


def _texts(row: pd.Series, labels: dict[str, Any], decimals: int | None) -> dict[str, str]:
    """Write each number of a row as it is shown."""
    formats: dict[str, Callable[[Any], str]] = {
        "model": lambda name: labels["models"].get(name, name),
        "epsilon": lambda value: "not private" if pd.isna(value) else "as spent" if value == "solve" else number(value),
        **dict.fromkeys(("metric", *WHICH), lambda name: "–" if pd.isna(name) else name.replace("_", " ")),
        **dict.fromkeys(("n", "ten_best_n"), lambda value: number(value, 0)),
        **dict.fromkeys(("epsilon_rdp", "epsilon_prv"), lambda value: number(value, 3)),
        **dict.fromkeys(("ours", "averaged", "last_step", "best_trial", "ten_best"), lambda value: number(value, decimals)),
        **dict.fromkeys(("difference", "selection"), lambda value: number(value, decimals, "+")),
    }
    seed: Callable[[Any], str] = lambda value: number(value, decimals)  # noqa: E731
    texts = {name: formats.get(name, seed if name.startswith("seed_") else _plain)(value) for name, value in row.items()}
    if not pd.isna(row.get("simulated")):
        texts["epsilon"] += ", simulated"
        if NOMINAL in texts:
            texts[NOMINAL] += ", simulated"
    if _there(row, "published_spread"):
        texts["published"] += f" ± {number(row['published_spread'])}"
    if row["state"] != "run":
        texts["ours"] = row["state"]
    elif _there(row, "spread"):
        texts["ours"] += f" ± {number(row['spread'], decimals)}"
    return texts


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else number(value)


def number(value: float | None, decimals: int | None = None, sign: str = "") -> str:
    """Write a number with so many decimals, or four digits that count; a dash for nothing."""
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
    for plain, escaped in (
        ("_", r"\_"),
        ("%", r"\%"),
        ("&", r"\&"),
        ("ε", r"$\varepsilon$"),
        ("δ", r"$\delta$"),
        ("–", "--"),
        ("±", r"$\pm$"),
    ):
        text = text.replace(plain, escaped)
    return text
