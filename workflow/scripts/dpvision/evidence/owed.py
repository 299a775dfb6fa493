"""What each result owes to the test set, to the authors' protocol, to searches and to accounting: in points, and in ε."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dpvision.evidence.kept import Kept, level, price_of, same, short
from dpvision.files import read_json
from dpvision.plan import Plan
from dpvision.reporting.verdicts import estimate

Row = dict[str, Any]

SELECTED = """**To the test set.** The best epoch by test accuracy less the last one, in points: what a choice by the test set
gains. Only the authors' protocol makes this choice; in all other trainings it would have gained so much.
"""
BY_PROTOCOL = """
**To the authors' protocol.** Their code trains on all examples, with a σ and a number of steps of its own, lets the test set
steer the learning rate, and reports the best epoch by it ([both protocols](../reproduction.md#two-protocols-side-by-side)). Its
accuracy less that of the protocol `clean` at the same ε, in points, and how much of it the best epoch is worth:
"""
SEARCHED = """
**To the search.** ε of one training leaves out the trials. At most, all trials and the training together, composed; for the
papers by the searches that are planned here, each trial as dear as the dearest. Held-out examples, which chose the values,
count as public: where a training is on all examples, as the heads are, these are private in it.
"""
RECOMPUTED = """
**To accounting.** Settings in print that spend another ε than printed, by more than {far:.0%}, on as many examples as their
trainings have; {agree} of {all} agree:
"""
FAR = 0.05  # of an ε in print: settings that spend as much more or less are listed


def owed(kept: Sequence[Kept], papers: Plan) -> Iterator[str]:
    """Yield what choices by the test set, the protocol, searches and accounting are worth, where something tells."""
    yield SELECTED
    yield "| trainings | n | median | largest |\n| --- | --- | --- | --- |"
    for each in kept:
        yield from _selected(each)
    if rows := [row for each in kept for row in _by_protocol(each)]:
        yield BY_PROTOCOL
        yield "| trained | by seed | n | mean, 95 % interval | of it the best epoch |\n| --- | --- | --- | --- | --- |"
        yield from rows
    yield SEARCHED
    yield "| trained | ε of one training | of all together, at most |\n| --- | --- | --- |"
    for rows_of in (_planned_searches, _searched):
        for each in kept:
            yield from rows_of(each)
    settings = [setting for each in kept if each.scale == papers.scale for setting in _recomputed(each)]
    far = [row for row in settings if row]
    yield RECOMPUTED.format(far=FAR, agree=len(settings) - len(far), all=len(settings))
    yield "| settings | ε in print | by Rényi DP | by PRV | as printed at |\n| --- | --- | --- | --- | --- |"
    yield from far


def _selected(kept: Kept) -> Iterator[str]:
    """Yield a row for the trainings of a paper in each protocol that looked at test examples more than once."""
    gained: dict[tuple[str, str], list[float]] = {}
    for artifact, row in kept.trained():
        if row["metric"] == "top1":
            of = gained.setdefault((kept.labels[artifact]["paper"], row["protocol"]), [])
            courses = [pd.read_csv(run / "history.csv")["test_top1"] for run in kept.runs(artifact, row)]
            of += [100 * (course.max() - course.iloc[-1]) for course in courses if len(course) > 1]
    for (paper, protocol), points in gained.items():
        if points:
            how = ", authors' protocol" if protocol == "paper" else ""
            of_all = f"{len(points)} | {statistics.median(points):.2f} | {max(points):.2f}"
            yield f"| {short(paper)}, scale {kept.scale}{how} | {of_all} |"


def _by_protocol(kept: Kept) -> Iterator[str]:
    """Yield a row for each cell that was trained in both protocols, over the seeds that both have."""
    rows = [(artifact, row) for artifact, row in kept.trained() if row["metric"] == "top1"]
    for artifact, theirs in rows:
        if theirs["protocol"] == "paper":
            alike = (ours for name, ours in rows if name == artifact and _differ_in_protocol(ours, theirs))
            if ours := next(alike, None):
                yield from _protocols(kept, artifact, theirs, ours)


def _differ_in_protocol(ours: Row, theirs: Row) -> bool:
    alike = ("dataset", "model", "recipe", "epsilon")
    return ours["protocol"] == "clean" and all(same(ours[key], theirs[key]) for key in alike)


def _protocols(kept: Kept, artifact: str, theirs: Row, ours: Row) -> Iterator[str]:
    """Yield the row of a cell in both protocols."""
    seeds = [key for key in theirs if key.startswith("seed_") and not pd.isna(theirs[key]) and not pd.isna(ours[key])]
    found = estimate([theirs[seed] - ours[seed] for seed in seeds])
    if found:
        label = ", ".join(kept.called(artifact, name, theirs[name]) for name in ("model", "dataset"))
        between = "–" if found.low is None else f"{found.effect:+.2f}, {found.low:+.2f} to {found.high:+.2f}"
        each = ", ".join(f"{theirs[seed] - ours[seed]:+.2f}" for seed in seeds)
        where = f"{label}, {level(theirs)} ({kept.scale})"
        yield f"| {where} | {each} | {len(seeds)} | {between} | {theirs['selection']:.2f} |"


def _planned_searches(kept: Kept) -> Iterator[str]:
    """Yield a row for the searches of a paper on a data set with as many trials, by what is planned: nothing is trained."""
    for artifact in kept.of_kind("search_price"):
        for (dataset, trials), rows in kept.table(artifact).groupby(["dataset", "trials"], sort=False):
            several = f" in each of {len(rows)} searches" if len(rows) > 1 else ""
            place = f"[{artifact}]({kept.scale}/README.md#{artifact})"
            named = f"{short(kept.labels[artifact]['paper'])}: {kept.called(artifact, 'dataset', dataset)}"
            searched = f"{named}, {trials} trials{several}, {place}"
            yield f"| {searched} | {_range(rows['epsilon_run'])} | {_range(rows['epsilon_all_composed'])} |"


def _range(values: pd.Series) -> str:
    """Return the least and the largest value, once if they read the same."""
    return " to ".join(dict.fromkeys(f"{value:.2f}" for value in (values.min(), values.max())))


def _searched(kept: Kept) -> Iterator[str]:
    """Yield a row for each cell whose values a search chose."""
    for artifact, row in kept.trained():
        ledgers = [read_json(run / "ledger.json") for run in kept.runs(artifact, row)]
        together = [price_of(ledger) for ledger in ledgers if ledger.get("searches")]
        if together and not same(row["epsilon"], None):
            where = ", ".join(kept.called(artifact, name, row[name]) for name in ("model", "dataset"))
            spent = max(ledger["epsilon"][ledger["accountant"]] for ledger in ledgers)
            yield f"| {where} ({kept.scale}) | {spent:.2f} | {max(together):.2f} |"


def _recomputed(kept: Kept) -> Iterator[str]:
    """Yield a text for each ε of a table of settings: its row if σ and steps are far from it on all examples, or else none."""
    for artifact in sorted(file.stem for file in (kept.folder / "tables").glob("*.csv")):
        rows = kept.table(artifact)
        for printed, of_one in rows.groupby("printed_epsilon") if "printed_epsilon" in rows else ():
            found = sorted(of_one.to_dict("records"), key=lambda row: -row["examples"])
            fitting = [f"N = {row['examples']:,}" for row in found if abs(row["epsilon_rdp"] / printed - 1) <= FAR]
            settings = f"[{artifact}]({kept.scale}/README.md#{artifact}) at N = {found[0]['examples']:,}"
            spent = f"{found[0]['epsilon_rdp']:.2f} | {found[0]['epsilon_prv']:.2f}"
            is_far = abs(found[0]["epsilon_rdp"] / printed - 1) > FAR
            yield f"| {settings} | {printed:g} | {spent} | {', '.join(fitting) or '–'} |" if is_far else ""
