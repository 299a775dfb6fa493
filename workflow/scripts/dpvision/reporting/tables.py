"""Tables: one long frame each, written as CSV; and as people know it, as Markdown and LaTeX.

In the CSV a row is a cell and a metric, every coordinate a column. `ours` is the artifact's statistic over the seeds, each of
which stands beside it. A row that only the paper has says so. What people read is laid out as in the paper (layout.py).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dpvision.config.metrics import measured
from dpvision.errors import UserError
from dpvision.files import read_json, replacing, write_text
from dpvision.looking.text import counted
from dpvision.plan.specs import Spec
from dpvision.reporting.coordinates import coordinates_of
from dpvision.reporting.kinds import KINDS
from dpvision.reporting.layout import DIRECTIONS, OF_NUMBERS, Entry, Panel, called, heading, lay_out
from dpvision.reporting.left_out import exclusion_notes, read_trainings
from dpvision.reporting.markup import latex, markdown, number
from dpvision.reporting.summary import CALLED, SPREADS, Summary, summarise
from dpvision.reporting.words import caption, made_by

WHICH = ("weights", "split")  # of a metric
BEST_TRIAL = re.compile(r"^best of \d+ trials$")
OF_ALL_SEEDS = ("million_parameters", "epsilon_with_search")  # metrics that no seed changes
ONLY_PRINTED = ("not run", "not asked for")  # states of rows that only the paper has
BESIDE: dict[str, tuple[dict[str, str], str]] = {  # columns that people read as numbers of their own, and whose n is whose
    "averaged": ({"weights": "averaged"}, "n"),
    "best_trial": ({"statistic": "best trial", "split": "validation"}, ""),
    "ten_best": ({"statistic": "mean of the ten best", "split": "validation"}, "ten_best_n"),
}


def write_table(spec: Spec, labels: dict[str, Any], inputs: dict[str, list[str]], csv: Path) -> None:
    kind = KINDS[spec["kind"]]
    frame = kind.frame(spec, inputs)
    with replacing(csv) as beside:
        frame.to_csv(beside, index=False)
    own = hasattr(kind, "shown")  # a table that is no table of cells by coordinates
    panels = [_panel(kind.shown(frame, spec, labels))] if own else shown_panels(frame, spec, labels, kind.DECIMALS)
    panels = [_with_heads(panel, getattr(kind, "HEADS", {})) for panel in panels]
    notes = list(kind.notes(spec, inputs, frame)) if hasattr(kind, "notes") else [kind.NOTE]
    if not own:
        notes = [*reading_notes(spec, frame, csv.name), *notes, *spent_note(spec, frame)]
    notes += exclusion_notes(read_trainings(spec["cells"], inputs))
    if hidden := len(spec["published"]) - len(_printed_here(spec)):
        left = counted("published number", "published numbers", hidden)
        notes.append(f"{left} of what this scale does not run: in {csv.name}.")
    notes += made_by(read_json(file) for file in inputs["provenance"])
    write_text(csv.with_suffix(".md"), markdown(panels, caption(spec, labels), notes))
    write_text(csv.with_suffix(".tex"), latex(panels, caption(spec, labels), notes, spec["artifact"]))


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
    """Tell whether a published number is of the cell there: all coordinates that it names are the cell's."""
    return all(at.get(name) == value for name, value in row["at"].items())


def _counted(row: Spec, at: dict[str, Any]) -> tuple[str | None, ...]:
    """Return the weights, the split and the name of what a published number of the cell there counts."""
    return measured(at["protocol"], row["metric"], row.get("weights"), row.get("split"))


def _prints_spreads(spec: Spec) -> bool:
    """Tell whether the paper prints a spread behind one of its numbers."""
    return any("spread" in row for row in spec["published"])


def _says_which(spec: Spec) -> bool:
    """Tell whether rows say of which weights and on which examples they are: the artifact or a published number does."""
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


def _panel(frame: pd.DataFrame) -> Panel:
    """Return texts in rows and columns as a table's one panel."""
    return Panel("", [], list(frame.columns), [[str(text) for text in row] for row in frame.itertuples(index=False)])


def _with_heads(panel: Panel, heads: Mapping[str, str]) -> Panel:
    """Return a panel whose coordinates are called as its kind calls them."""
    return panel._replace(names=[heads.get(name, name) for name in panel.names])


def shown_panels(frame: pd.DataFrame, spec: Spec, labels: dict[str, Any], decimals: int | None) -> list[Panel]:
    """Lay out ours and the printed numbers, as the artifact says or as its kind does."""
    cells = [*(cell["at"] for cell in spec["cells"]), *spec.get("absent", [])]
    said: dict[str, list[str]] = {direction: spec[direction] for direction in DIRECTIONS if direction in spec}
    names = {"model": labels["models"] | spec.get("works", {}), "dataset": labels.get("datasets", {})}
    names |= {"start": labels["starts"]} if "starts" in labels else {}
    of_artifact = spec.get("names", {})
    names |= {name: {**of_artifact[name], **(names.get(name, {}) | of_artifact[name])} for name in of_artifact}
    entries = list(_entries(frame, spec, decimals))
    try:
        return lay_out(entries, cells, said or KINDS[spec["kind"]].Options.LAYOUT, names)
    except UserError as error:
        raise UserError(f"{spec['artifact']}: {error}") from None


def _entries(frame: pd.DataFrame, spec: Spec, decimals: int | None) -> Iterator[Entry]:
    """Yield ours with the printed number beside it, then printed numbers of what was not run."""
    coordinates = coordinates_of(spec["cells"])
    rows = _plain_rows(frame)
    ours = [row for row in rows if row["state"] not in ONLY_PRINTED]
    for row in ours:
        at = {name: row.get(name) for name in (*coordinates, *OF_NUMBERS)}
        at["statistic"] = BEST_TRIAL.sub("best trial", row["statistic"])  # of searches of several lengths too
        if "averaged" in frame:
            at["weights"] = measured(row["protocol"], row["metric"], row.get("weights"))[0]
        yield Entry(at, _ours(row, spec, decimals) + _printed(row, spec))
        for column, (of, n) in BESIDE.items():
            if row.get(column) is not None and ("statistic" not in of or _first_of_cell(row, ours, coordinates)):
                count = f" ({_in_brackets(row, n)})" if n else ""
                yield Entry(at | of, number(row[column], decimals) + count)
        for column in spec.get("privacy", []):
            if row.get(column) is not None and _first_of_cell(row, ours, coordinates):
                yield Entry(at | dict.fromkeys(OF_NUMBERS) | {"metric": column}, number(row[column], 3))
    for row in _printed_here(spec):
        cells = [at for at in spec.get("absent", []) if of_cell(row, at)]
        if not cells and not any(of_cell(row, cell["at"]) for cell in spec["cells"]):
            cells = [{"protocol": "clean"} | row["at"]]  # said once
        beside = {"metric": row["metric"]} | {name: row[name] for name in WHICH if name in row}
        state = "" if "ours" not in frame or row["at"].get("model") in spec.get("works", {}) else "not run"
        theirs = {"published": row["value"], "published_spread": row.get("spread")}
        text = state + _printed(row | theirs, spec, alone=not state)
        yield from (Entry(_like(ours, at | beside), text) for at in cells)
    for row in rows:
        if row["state"] == "not asked for":
            at = {name: row[name] for name in (*coordinates, *OF_NUMBERS) if row.get(name) is not None}
            yield Entry(_like(ours, at), row["state"] + _printed(row, spec))


def _first_of_cell(row: dict[str, Any], rows: list[dict[str, Any]], coordinates: Iterable[str]) -> bool:
    """Tell whether no row before has the same cell: a search's best trial is the same for every metric of its cell."""
    keys = list(coordinates)
    return row is next(other for other in rows if all(other.get(key) == row.get(key) for key in keys))


def _plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows with None for what is not there."""
    rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return rows


def _printed_here(spec: Spec) -> list[Spec]:
    """Return the printed numbers; at another scale than the paper's, those of its cells and of other works on its data sets."""
    places = [*(cell["at"] for cell in spec["cells"]), *spec.get("absent", [])]
    datasets, works = {at["dataset"] for at in places}, spec.get("works", {})

    def is_here(row: Spec) -> bool:
        of_others = row["at"].get("model") in works and row["at"].get("dataset") in datasets
        return of_others or any(of_cell(row, at) for at in places)

    return [row for row in spec["published"] if spec["scale"] == "paper" or is_here(row)]


def _like(ours: list[dict[str, Any]], at: dict[str, Any]) -> dict[str, Any]:
    """Return the coordinates of a number in print with those that it does not say, as our numbers like it have them."""
    for row in ours:
        if row["metric"] == at["metric"] and all(row.get(name) in (None, at[name]) for name in WHICH if name in at):
            return {name: row.get(name) for name in (*WHICH, "statistic")} | at
    return at


def _ours(row: dict[str, Any], spec: Spec, decimals: int | None) -> str:
    if row["state"] != "run":
        return str(row["state"])
    if row["metric"] in OF_ALL_SEEDS:
        return number(row["ours"], decimals)
    spread = row.get("spread") if "spread" in spec else _spread(row, spec)
    if spread and decimals is None:
        spread = float(f"{spread:.2g}")
    around = f" ± {number(spread, decimals)}" if spread else ""
    return f"{number(row['ours'], decimals)}{around} ({_in_brackets(row, 'n')})"


def _in_brackets(row: dict[str, Any], n: str) -> str:
    return f"{row[n]:.0f}{', simulated' if row.get('simulated') else ''}"


def _spread(row: dict[str, Any], spec: Spec) -> float | None:
    """Return the spread that people read where the artifact asks for none: the best of several has no spread."""
    values = [value for name, value in row.items() if name.startswith("seed_") and value is not None]
    return SPREADS[USUAL](values) if len(values) > 1 and spec["statistic"] != "best" else None


USUAL = "standard_deviation"


def _printed(row: dict[str, Any], spec: Spec, alone: bool = False) -> str:
    """Write a printed number behind ours, with as many decimals as its like have."""
    if row.get("published") is None:
        return ""
    alike = [_decimals(other["value"]) for other in spec["published"] if _metric(other) == _metric(row)]
    least = min((count for count in alike if count), default=0)
    text = f"{row['published']:.{max(least, _decimals(row['published']))}f}"
    if row.get("published_spread") is not None:
        text += f" ± {number(row['published_spread'])}"
    return text if alone else f" / {text}"


def _metric(row: Mapping[str, Any]) -> str:
    return str(row["metric"]).replace("_", " ")


def _decimals(value: float) -> int:
    return len(f"{value:.10f}".rstrip("0").partition(".")[2])


def reading_notes(spec: Spec, frame: pd.DataFrame, csv: str) -> list[str]:
    """Say what stands in a place, and what its numbers are."""
    by_place: dict[str, dict[str, None]] = {}
    for row in _printed_here(spec):
        by_place.setdefault(f"in {row.get('source', 'print')}", {})[row["statistic"]] = None
    printed = [f"Statistic {place}: {', '.join(statistics)}." for place, statistics in by_place.items()]
    if "ours" not in frame:
        return printed
    spread = spec.get("spread", None if spec["statistic"] == "best" else USUAL)
    beside = f" / {' or '.join(by_place)}" if printed else ""
    shape = f"ours{' ± spread' if spread else ''} (n){beside}"
    shape += "; of other works what they print" if printed and "works" in spec else ""
    around = f", ± their {CALLED[spread]}; no ± where n is 1 or all are equal" if spread else ""
    ours = f"Ours: the {spec['statistic']} of n trainings, one a seed{around}."
    simulated = [SIMULATED] if any("simulated" in cell for cell in spec["cells"]) else []
    return [f"Each place: {shape}. {ours} Each seed's number is in {csv}.", *printed, *simulated]


SIMULATED = "Simulated: nothing private; ε is that of the training whose batch and noise were divided."


def spent_note(spec: Spec, frame: pd.DataFrame) -> list[str]:
    """Say what privacy the trainings spent, by ε and protocol."""
    if "epsilon_rdp" not in frame:
        return []
    names = ["epsilon", *(["protocol"] if frame["protocol"].nunique() > 1 else [])]
    spent: dict[str, dict[str, float]] = {}
    for row in _plain_rows(_ascending(frame)):
        cell = ", ".join(heading(name, called(name, row[name], {}), {}) for name in names)
        for column, how in SPENT_HOW.items():
            if (value := row.get(column)) is not None:
                most = spent.setdefault(cell, {})
                most[how] = max(value, most.get(how, 0.0))
    each = [f"{cell}: {', '.join(f'{value:.3f} {how}' for how, value in most.items())}" for cell, most in spent.items()]
    return [SPENT.format("; ".join(each))] if each else []


def _ascending(frame: pd.DataFrame) -> pd.DataFrame:
    """Return it by protocol, then by ε."""
    sizes = frame.assign(size=pd.to_numeric(frame["epsilon"], errors="coerce"))
    return sizes.sort_values(["protocol", "size"], kind="stable")


SPENT = "Privacy that one training spent at most, by its accountant, neighbours differing in one example. {}."
SPENT_HOW = {  # columns of the privacy spent
    "epsilon_rdp": "by RDP",
    "epsilon_prv": "by PRV",
    "epsilon_pld": "by PLD",
    "epsilon_all_composed": "with all trials of its search",
    "epsilon_covered": "with its search, whose number of trials is secret",
}
