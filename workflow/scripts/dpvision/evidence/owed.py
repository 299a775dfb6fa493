"""What each result owes to the test set, to the authors' protocol, to searches and to accounting: in points, and in ε."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dpvision.evidence.kept import Kept, level, price_of, same, short
from dpvision.files import read_json
from dpvision.plan import Plan
from dpvision.privacy.accounting import Mechanism, calibrate, epsilon_of
from dpvision.reporting.verdicts import estimate

Row = dict[str, Any]

PRACTICE = """How the numbers in print came about:
"""
SELECTED = """**To the test set.** The best epoch by test accuracy less the last one, in points: what a choice by the test set
gains, by how often a training was tested. Only the authors' protocol chooses so. For the other trainings it is what such a
choice would have gained.
"""
BY_PROTOCOL = """
**To the authors' protocol.** The code of the authors trains on all examples, with a σ and a number of steps
of its own. The test set steers its learning rate, and it reports the best epoch by test accuracy ([both
protocols](../reproduction.md#two-protocols-side-by-side)). Its accuracy less that of the protocol `clean` at the same ε, in
points, and what the best epoch is worth of that:
"""
SEARCHED = """
**To the search.** The ε of one training leaves out the search. The third column counts all of its trainings, as one
composition: it holds for the examples that they trained on. Examples that were held out to compare them are not protected by
it. Where the final training uses these as well, the search has no ε for them.
"""
RECOMPUTED = """
**To accounting.** ε recomputed from the σ and the steps in print, for the number of examples that the paper
trains on. {agree} of {all} settings spend what is printed, to {far:.0%}. The others would spend it on fewer examples:
"""
SETTING = ["printed_epsilon", "model", "budget.sigma", "recipe.steps"]  # what tells lines of a table of settings apart
FAR = 0.05  # of an ε in print: settings that spend as much more or less are listed


def owed(kept: Sequence[Kept], papers: Plan) -> Iterator[str]:
    """Yield what choices by the test set, the protocol, searches and accounting are worth, where something tells."""
    yield PRACTICE
    yield "| paper | chosen by | search | accounting |\n| --- | --- | --- | --- |"
    for paper, said in papers.practices.items():
        yield f"| {short(paper)} | {said['selection']} | {said['search']} | {said['accounting']} |"
    yield ""
    yield SELECTED
    yield "| trainings | tested so often | n | median | largest |\n| --- | --- | --- | --- | --- |"
    for each in kept:
        yield from _selected(each)
    if rows := [row for each in kept for row in _by_protocol(each)]:
        yield BY_PROTOCOL
        yield "| trained | by seed | n | mean, 95 % interval | of it the best epoch |\n| --- | --- | --- | --- | --- |"
        yield from rows
    yield SEARCHED
    yield "| trained | ε of one training | of all together | examples held out by the search |\n| --- | --- | --- | --- |"
    for paper, said in papers.practices.items():
        yield from (_priced(paper, searched) for searched in said["searched"])
    for rows_of in (_planned_searches, _searched):
        for each in kept:
            yield from rows_of(each)
    settings = [(each, *setting) for each in kept if each.scale == papers.scale for setting in settings_of(each)]
    yield RECOMPUTED.format(far=FAR, agree=sum(agrees for *_, agrees in settings), all=len(settings))
    yield "| settings | ε in print | by Rényi DP | by PRV | spends what is printed at |\n| --- | --- | --- | --- | --- |"
    yield from (_far(each, artifact, rows) for each, artifact, rows, agrees in settings if not agrees)


def _selected(kept: Kept) -> Iterator[str]:
    """Yield a row for the trainings of a paper by one recipe and protocol that were tested more than once."""
    courses: dict[tuple[str, str, str], list[pd.Series]] = {}
    for artifact, row in kept.trained():
        if row["metric"] == "top1":
            of = (short(kept.labels[artifact]["paper"]), row["recipe"], row["protocol"])
            tested = (pd.read_csv(run / "history.csv")["test_top1"] for run in kept.runs(artifact, row))
            courses.setdefault(of, []).extend(course for course in tested if len(course) > 1)
    for (paper, recipe, protocol), of_one in courses.items():
        if of_one:
            how = ", authors' protocol" if protocol == "paper" else ""
            points = [100 * (course.max() - course.iloc[-1]) for course in of_one]
            looks = " to ".join(dict.fromkeys(str(count(map(len, of_one))) for count in (min, max)))
            of_all = f"{len(points)} | {statistics.median(points):.2f} | {max(points):.2f}"
            yield f"| {paper}, recipe {recipe}{how} ({kept.scale}) | {looks} | {of_all} |"


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


def _priced(paper: str, searched: dict[str, Any]) -> str:
    """Return the row of trainings that a paper's authors chose among."""
    q, steps = searched["batch"] / searched["examples"], searched["epochs"] * searched["examples"] // searched["batch"]
    sigma = calibrate(searched["epsilon"], searched["delta"], q, steps)
    together = epsilon_of(searched["trainings"] * Mechanism(q, sigma, steps).rdp(), searched["delta"])
    return f"| {short(paper)}: {searched['what']} | {searched['epsilon']:.2f} | {together:,.2f} | – |"


def _planned_searches(kept: Kept) -> Iterator[str]:
    """Yield a row for the searches of a paper on a data set with as many trials, by what is planned: nothing is trained."""
    for artifact in kept.of_kind("search_price"):
        for (dataset, trials), rows in kept.table(artifact).groupby(["dataset", "trials"], sort=False):
            several = f" in each of {len(rows)} searches" if len(rows) > 1 else ""
            place = f"[{artifact}]({kept.scale}/README.md#{artifact})"
            named = f"{short(kept.labels[artifact]['paper'])}: {kept.called(artifact, 'dataset', dataset)}"
            searched = f"{named}, as planned here: {trials} trials{several} and one training, {place}"
            yield f"| {searched} | {_range(rows['epsilon_run'])} | {_range(rows['epsilon_all_composed'])} | – |"


def _range(values: pd.Series) -> str:
    """Return the least and the largest value, once if they read the same."""
    return " to ".join(dict.fromkeys(f"{value:.2f}" for value in (values.min(), values.max())))


def _searched(kept: Kept) -> Iterator[str]:
    """Yield a row for each cell whose values a search chose."""
    for artifact, row in kept.trained():
        runs = kept.runs(artifact, row)
        ledgers = [read_json(run / "ledger.json") for run in runs]
        together = [price_of(ledger) for ledger in ledgers if ledger.get("searches")]
        if together and not same(row["epsilon"], None):
            where = ", ".join(kept.called(artifact, name, row[name]) for name in ("model", "dataset"))
            spent = max(ledger["epsilon"][ledger["accountant"]] for ledger in ledgers)
            data = read_json(runs[0] / "spec.json")["data"]
            held_out = "train, too" if not data["validation"] else "never train"
            yield f"| {where} ({kept.scale}) | {spent:.2f} | {max(together):.2f} | {held_out} |"


def settings_of(kept: Kept) -> Iterator[tuple[str, list[Row], bool]]:
    """Yield each setting in print: its table, a row for each number of examples, and whether its ε is as printed.

    The first row is of most examples, which is what the paper trains on.
    """
    for artifact in sorted(kept.of_kind("spending")):
        for (printed, *_), of_one in kept.table(artifact).groupby(SETTING):
            rows = sorted(of_one.to_dict("records"), key=lambda row: -row["examples"])
            yield artifact, rows, abs(rows[0]["epsilon_rdp"] / printed - 1) <= FAR


def _far(kept: Kept, artifact: str, rows: list[Row]) -> str:
    """Return the row of a setting whose ε is another than printed; with the numbers of examples at which it is as printed."""
    printed, most = rows[0]["printed_epsilon"], rows[0]
    fitting = [f"N = {row['examples']:,}" for row in rows if abs(row["epsilon_rdp"] / printed - 1) <= FAR]
    settings = f"[{artifact}]({kept.scale}/README.md#{artifact}) at N = {most['examples']:,}"
    spent = f"{most['epsilon_rdp']:.2f} | {most['epsilon_prv']:.2f}"
    return f"| {settings} | {printed:g} | {spent} | {', '.join(fitting) or '–'} |"
