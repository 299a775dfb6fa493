"""The page of all evidence: what the papers are known for, printed and ours, and what holds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dpvision.config.metrics import measured
from dpvision.evidence.kept import Kept, level, same, short, values_of
from dpvision.evidence.owed import owed
from dpvision.files import read_json
from dpvision.looking.text import counted
from dpvision.plan import Plan
from dpvision.plan.specs import training_count
from dpvision.reporting.claims import TALLIED, in_words
from dpvision.reporting.verdicts import CONTRADICTED, NOT_HERE, NOT_RUN, SUPPORTED, UNDECIDED, estimate

BEGINNING = """# What came out

`python -m dpvision evidence` makes this page from the records in this folder, and `python -m dpvision verify
docs/results/NAME` checks one scale's. Each result says how it came about:

- **private**: trained with differential privacy at the ε that stands there, on N examples. ε leaves out the search and the
  examples that it held out ([below](#what-each-result-owes)). Noise follows from a seed that is known, so that anybody can
  repeat it: a result of research, and not a release of the weights.
- **simulated**: batch and noise are divided by the same number, steps are kept. It is meant to predict the accuracy of the
  private training, and is not private itself. It was tried on small data, where it is right to about two points
  ([how](../reproduction.md#the-scale-simulate)): smaller differences from print may be its own.
- **stand-in**: another network or data set in the place of the paper's. It decides nothing.
- **not run**: nobody has paid for it yet. `python -m dpvision plan --cost` says what it takes.
- **cannot be run**: what it rests on is not public.

Ours is the statistic that the table names, over n trainings. They differ in the seed; where they differ in code or packages
too, the notes below the table say so. Mean and interval are of the same trainings. The interval is Student's t at 95 %: it
says what other seeds could have given. It knows nothing of other data, code or settings.
"""
EXAMPLES = {"test": "test", "validation": "held out", "train": "training examples"}
WEIGHTS = {"last_step": "last step", "averaged": "average", "best_epoch": "best epoch"}
VERDICTS = {
    SUPPORTED: "What holds, by these runs",
    CONTRADICTED: "What does not hold, by these runs",
    UNDECIDED: "What these runs cannot decide",
}
DECIDED = """A sentence is decided by all of its comparisons together, and a comparison by its interval. *Undecided* are
sentences of which some comparisons were not run, or have too few seeds: fewer than would find such an effect four times in
five ([rules](../results.md)).
"""
AUDITED = """*Consistent* is no proof: no attack found more than what is claimed. The claim is the least ε that an accountant
gives for the setting. A bound above the claim would refute it at {confidence:.1%}. No attack by so many runs can show more
than the last column says. The canaries of one run are taken as independent.
"""
ATTACKED = """{paper}'s own audit, [{artifact}]({place}), at 99.9 %. It asks what the weights of the setting show of one
example. By models: trainings with and without it, by a trainer that holds many models side by side and gives the engine's
sums. By canaries: the steps of the setting alone, without a network. No attack by so many can show more than the last column
says.
"""


def page(papers: Plan, kept: Sequence[Kept]) -> str:
    """Return the page; `papers` is the plan of the scale paper."""
    parts = [
        ("## The papers' headline numbers", _headlines(papers, kept)),
        *((f"## {title}", _of_its_own(each, artifacts, papers)) for each, title, artifacts in _others(kept, papers)),
        ("## The engine under attack", _audits(kept)),
        ("## What holds", _verdicts(kept)),
        ("## What each result owes", owed(kept, papers)),
    ]
    lines = [BEGINNING]
    for heading, found in parts:
        lines += [heading, "", *(list(found) or ["Nothing of it is kept yet."]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _headlines(papers: Plan, kept: Sequence[Kept]) -> Iterator[str]:
    """Yield a table: a row for each number in print, each scale at which something of it is here, and each protocol."""
    yield "| paper | number | in print | ours | n | mean, 95 % interval | ours is of | how ours came about |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for paper, numbers in papers.headlines.items():
        for number in numbers:
            also = f" ({number['note']})" if "note" in number else ""
            place = f"| {short(paper)} | {number['headline']} | {number['value']:g}{also}"
            without = f"cannot be run: {number['beyond']}" if "beyond" in number else "not run"
            for ours in list(_ours(number, kept, papers)) or [f"– | 0 | – | – | {without}"]:
                yield f"{place} | {ours} |"


def _ours(number: dict[str, Any], kept: Sequence[Kept], papers: Plan) -> Iterator[str]:
    """Yield our side of a number's rows, where trainings of it are kept."""
    for each in kept:
        for row in each.ours(number):
            yield f"{_number(row)} | {counted_on(row)} | {how_made(each, number['artifact'], row, papers)}"


def counted_on(row: dict[str, Any]) -> str:
    """Say on which examples and with which weights the accuracy in a table's row was counted."""
    said = (None if same(row.get(key), None) else row[key] for key in ("weights", "split"))
    weights, split, _ = measured(row["protocol"], row["metric"], *said)
    return f"{EXAMPLES[str(split)]}, {WEIGHTS[str(weights)]}"


def _number(row: dict[str, Any]) -> str:
    """Return the number of a table's row, how many trainings it is of, their mean and its interval."""
    found = estimate(values_of(row))
    if found is None or row["n"] < 2:
        between = "–"
    elif found.low is None:
        between = "all equal"
    else:
        between = f"{found.effect:.2f}, {found.low:.2f} to {found.high:.2f}"
    return f"{row['ours']:.2f} | {int(row['n'])} | {between}"


def how_made(kept: Kept, artifact: str, row: dict[str, Any], papers: Plan) -> str:
    """Say how a row of a table came about, with a link to where it stands."""
    label = kept.called(artifact, "model", row["model"])
    printed = papers.labels.get(artifact, {}).get("models", {}).get(row["model"], label)
    examples = training_count(read_json(kept.runs(artifact, row)[0] / "spec.json"))
    made = "not private" if same(row["epsilon"], None) else "private"
    if not same(row.get("simulated"), None):
        made = f"simulated, by {row['simulated']:g}"
    stand_in = "" if label == printed else f", stand-in {label}"
    protocol = ", authors' protocol" if row["protocol"] == "paper" else ""
    return f"{made}, N = {examples:,}{protocol}{stand_in}: [{artifact}]({kept.scale}/README.md#{artifact})"


def _others(kept: Sequence[Kept], papers: Plan) -> Iterator[tuple[Kept, str, list[str]]]:
    """Yield the papers that the scale paper does not have, with their artifacts."""
    for each in kept:
        for title in dict.fromkeys(of["paper"] for of in each.labels.values()):
            if title not in papers.headlines:
                yield each, title, [name for name, of in each.labels.items() if of["paper"] == title]


def _of_its_own(kept: Kept, artifacts: list[str], papers: Plan) -> Iterator[str]:
    """Yield the numbers and pictures of a paper that has a scale of its own."""
    yield "| trained | ours | n | mean, 95 % interval | ours is of | how ours came about |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for artifact, row in kept.trained():
        if artifact in artifacts:
            model, dataset = (kept.called(artifact, name, row[name]) for name in ("model", "dataset"))
            made = f"{counted_on(row)} | {how_made(kept, artifact, row, papers)}"
            yield f"| {model}, {dataset}, {level(row)} | {_number(row)} | {made} |"
    yield ""
    for name in artifacts:
        yield from _works(kept, name)
    yield from _edges(kept)
    for name in artifacts:
        yield from _picture(kept, name)


def _works(kept: Kept, artifact: str) -> Iterator[str]:
    """Yield in one line the numbers of other works that stand beside those of a table."""
    rows = kept.table(artifact)
    numbers: dict[str, list[str]] = {}
    for row in rows[rows["published"].notna()].to_dict("records") if "published" in rows else ():
        numbers.setdefault(kept.called(artifact, "model", row["model"]), []).append(f"{row['published']:g} at {level(row)}")
    if numbers:
        yield "In print: " + "; ".join(f"{work}: {', '.join(each)}" for work, each in numbers.items()) + ".\n"


def _edges(kept: Kept) -> Iterator[str]:
    """Yield what searches found at an end of what they tried, in one line: more of it may be better."""
    found = {file.parent.name: read_json(file).get("edges", []) for file in sorted(kept.folder.glob("studies/*/best.json"))}
    if edges := [edge for of_one in found.values() for edge in of_one]:
        ends = ", ".join(f"{edge} ({count})" for edge, count in Counter(edges).items())
        of = f"{sum(map(bool, found.values()))} of {len(found)} searches"
        yield f"In {of} the best lies at an end of what was tried, and more of the same may be better: {ends}.\n"


def _picture(kept: Kept, artifact: str) -> Iterator[str]:
    """Yield the picture of an artifact, if it has one."""
    if (kept.folder / "figures" / f"{artifact}.png").exists():
        yield f"![{kept.labels[artifact]['title']}]({kept.scale}/figures/{artifact}.png)\n"


def _audits(kept: Sequence[Kept]) -> Iterator[str]:
    """Yield the verdicts of audits, and what ε they prove at least beside what was claimed."""
    for each in kept:
        for file in sorted(each.folder.glob("audits/*/audit.json")):
            found = read_json(file)
            place = file.relative_to(each.folder.parent).as_posix()
            yield f"**{found['verdict']}** at {found['confidence']:.1%}, by {len(found['tests'])} tests: [record]({place})."
            yield AUDITED.format(confidence=found["confidence"])
            yield "| setting | claimed ε | lower bound | expected of this attack | most it could show |"
            yield "| --- | --- | --- | --- | --- |"
            for row in found["bounds"]:
                bounds = " | ".join(f"{row[key]:.2f}" for key in ("claimed", "lower_bound", "expected", "perfect_attack"))
                yield f"| {row['setting']}, δ = {row['delta']:g} | {bounds} |"
            yield ""  # or the next audit would be a row of this table
        yield from _attacks(each)


def _attacks(kept: Kept) -> Iterator[str]:
    """Yield the bounds of a paper's own audit, repeated here; beside those in print where the attack is the paper's."""
    for artifact in kept.of_kind("attack"):
        rows = kept.table(artifact)
        run = rows[(rows["metric"] == "lower_bound") & (rows["state"] == "run")]
        if len(run):
            paper, place = short(kept.labels[artifact]["paper"]), f"{kept.scale}/README.md#{artifact}"
            yield ATTACKED.format(paper=paper, artifact=artifact, place=place)
            yield "| ε | examples | by | in print, by models | lower bound | expected of the best attack | most it could show |"
            yield "| --- | --- | --- | --- | --- | --- | --- |"
            for row in run.to_dict("records"):
                alike = row["by"] == "models" and not same(row["published"], None)
                by = f"{int(row['inside'] + row['out']):,} {row['by']}"
                bounds = " | ".join(f"{row[key]:.2f}" for key in ("ours", "best_attack", "perfect_attack"))
                printed = f"{row['published']:g}" if alike else "–"
                yield f"| {row['epsilon']:g} | {int(row['examples']):,} | {by} | {printed} | {bounds} |"
            yield ""


def _verdicts(kept: Sequence[Kept]) -> Iterator[str]:
    """Yield the sentences of each paper that are decided at a scale, and how many nobody can decide yet."""
    yield DECIDED
    for each, name, claims in ((of, *verdicts) for of in kept for verdicts in of.claims.items()):
        of = dict(list(claims[claims["row"] == "comparison"].groupby("claim")))
        claims = claims[claims["row"] == "claim"]
        counts = claims["verdict"].value_counts()
        said = ", ".join(f"{count} {TALLIED.get(verdict, verdict)}" for verdict, count in counts.items())
        yield f"### {each.labels[name]['paper']}\n"
        yield f"**Scale `{each.scale}`**, {each.plan.title}: {said}. [Effects and intervals]({each.scale}/{name}.md)\n"
        yield from _picture(each, name)
        for verdict, heading in VERDICTS.items():
            if rows := claims[claims["verdict"] == verdict].to_dict("records"):
                yield f"{heading}:\n"
                for row in rows:
                    yield f"- [{row['text']}]({each.scale}/{name}.md#{row['claim']}) ({row['section']})"
                    yield from _compared(of[row["claim"]])
                yield ""
        if rest := int(counts.get(NOT_RUN, 0)):
            yield f"Nobody can say of {counted('more sentence', 'more sentences', rest)}: what they rest on was not run.\n"
        if rest := int(counts.get(NOT_HERE, 0)):
            alone = f"{counted('sentence has', 'sentences have', rest)} stand-ins alone"
            yield f"{alone}, [which decide nothing]({each.scale}/{name}.md).\n"


def _compared(rows: pd.DataFrame) -> Iterator[str]:
    """Yield what came out of each comparison of a claim that was run, and how many were not."""
    run = rows[rows["n"] > 0]
    for row in run.to_dict("records"):
        low, high, printed = (None if pd.isna(row[key]) else row[key] for key in ("low", "high", "published"))
        found = in_words(row["effect"], low, high, row["unit"])
        place = "in print" if same(row.get("source"), None) else f"in {row['source']}"
        beside = "" if printed is None else f"; {place} {in_words(printed, None, None, row['unit'])}"
        yield f"  - {row['comparison']}: **{found}**, n = {row['n']:g}{beside}: {row['verdict']}"
    if left := len(rows) - len(run):
        yield f"  - {counted('comparison', 'comparisons', left)} of it not run"
