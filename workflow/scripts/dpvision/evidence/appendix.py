"""An appendix for artifact committees: what is claimed, how each result is made again, what it takes, what cannot be."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from dpvision.evidence.kept import Kept, level, same, short
from dpvision.evidence.owed import FAR, settings_of
from dpvision.evidence.page import how_made
from dpvision.files import read_json
from dpvision.logs import clock
from dpvision.looking.estimate import Estimator, table
from dpvision.looking.text import counted
from dpvision.plan import ROOT, Plan
from dpvision.reporting.claims import in_words
from dpvision.reporting.verdicts import UNDECIDED

BEGINNING = """# Artifact appendix

Made by `python -m dpvision evidence` from the records in this folder. An archive for a committee, one file with code, records
and a manifest of digests: `snakemake archive --config scale=SCALE` ([docs/archive.md](../archive.md)).

## Abstract

A pipeline that is set up to reproduce three papers on differentially private image classification, from the download of the
data to every table and figure. Two lists below say what is run, and what is not. Each training leaves a record: what was asked
for, the results, the ε it spent by several accountants, the code and packages that made it. Every table is made of records, and
`python -m dpvision verify` recomputes it.

## Description and requirements

- **Access**: this repository; its licence is Apache 2.0.
- **Hardware**: two cores for what is kept here; the memory of its jobs stands with each scale below. Scale `paper` wants
  graphics cards of 16 GB or more. How long, and how much memory: `python -m dpvision plan --cost --device A100`.
- **Software**: Python 3.11 or newer and make. `make setup` installs the locked packages by hash; conda and Apptainer files hold
  the same versions ([docs/environments.md](../environments.md)).
- **Data**: what the configuration names is downloaded and checked by digest.
  What has to be brought: [docs/data.md](../data.md).
- **Security, privacy, ethics**: no personal data but the public data sets' own. Noise follows from a seed where a recipe does
  not ask for secret noise, so weights are research results and not releases.

## Set-up and a basic test

    make demo     # the whole pipeline on data that comes with it, six minutes on two cores
    make test     # the quick tests, eight minutes on two cores
"""
BORNE = """## Claims that the kept records bear

Each result below follows from records in this folder. Its experiment, further below, says how to check it and how to make it
again. *Private*, *simulated*, *stand-in*, *not run* and *cannot be run* mean what [the page of results](README.md) says.
[CHECKLIST.md](CHECKLIST.md) says what ε leaves out.

| claim | result | ours | n | how ours came about | experiment |
| --- | --- | --- | --- | --- | --- |"""
DECIDED = """
*Supported* and *contradicted* are said of one comparison. The sentence in the paper may need others, which were not run."""
PRINTED = """
## Numbers in print that the pipeline is set up to test

These numbers are the papers'. A number that is *simulated* or *not run* is not reproduced: simulated accuracies predict
private ones.
"""
STATUSES = {"private": "are private", "simulated": "are simulated", "not run": "are not run", "cannot be run": "cannot be run"}
COLUMNS = "| paper | number | in print | status | ours | n | artifact | hours |\n" + "| --- " * 8 + "|"
GUESSED = """
*Hours* is what one {device} takes for the artifact at the scale `paper`: for all of its rows, seeds and searches. It is a guess
by the number of operations, and nothing of it was measured. All of these artifacts together take {all} hours.
`python -m dpvision plan --cost --device {device}` guesses for each artifact. Name the data that you bring first.
"""
DEVICE = "A100"
ENDING = """
## What cannot be made again here

- A result *simulated* predicts the accuracy of a private training; it does not replace it.
- JFT-300M and JFT-4B are not public. The rows of De et al. that rest on them are printed beside ours, and stay empty.
- Bits repeat on one kind of processor, with the locked packages and the same choices of how gradients are clipped
  ([docs/clipping.md](../clipping.md)). Elsewhere they do not.
"""


def appendix(papers: Plan, kept: Sequence[Kept]) -> str:
    """Return the appendix; `papers` is the plan of the scale paper."""
    experiments = {f"E{i}": each for i, each in enumerate(kept, 1)}
    borne = [(*row, number) for number, each in experiments.items() for row in _borne(each, papers)]
    lines = [BEGINNING, BORNE, *(f"| C{i} | {' | '.join(row)} |" for i, row in enumerate(borne, 1)), DECIDED]
    lines += [line for each in kept for line in _undecided(each)]
    lines += [PRINTED, *_printed(papers, kept), "## Experiments", ""]
    lines += [line for number, each in experiments.items() for line in _experiments(each, number)]
    return "\n".join(lines) + "\n" + ENDING


def _borne(kept: Kept, papers: Plan) -> Iterator[list[str]]:
    """Yield what a scale's records bear: a result, ours, n, and how ours came about."""
    yield from _trained(kept, papers)
    yield from _attacked(kept)
    yield from _recomputed(kept, papers)
    yield from _decided(kept)


def _trained(kept: Kept, papers: Plan) -> Iterator[list[str]]:
    """Yield the accuracies of trainings that nothing was simulated in."""
    for artifact, row in kept.trained():
        if row["metric"] == "top1" and same(row.get("simulated"), None):
            model, dataset = (kept.called(artifact, name, row[name]) for name in ("model", "dataset"))
            ours = f"{row['ours']:.2f} % of test examples" + (f", {row['statistic']}" if row["n"] > 1 else "")
            yield [f"{dataset}, {model}, {level(row)}", ours, f"{row['n']:g}", how_made(kept, artifact, row, papers)]


def _attacked(kept: Kept) -> Iterator[list[str]]:
    """Yield what attacks found: on the engine, and those of a paper's own audit."""
    for file in sorted(kept.folder.glob("audits/*/audit.json")):
        found = read_json(file)
        result = f"The engine under attack, {len(found['tests'])} tests at {found['confidence']:.1%}: *{found['verdict']}*"
        bounds = [(bound["lower_bound"], bound["claimed"]) for bound in found["bounds"]]
        yield [result, _above(bounds), "–", f"attacked: [record]({file.relative_to(kept.folder.parent).as_posix()})"]
    for artifact in kept.of_kind("attack"):
        rows = kept.table(artifact)
        rows = rows[(rows["metric"] == "lower_bound") & (rows["state"] == "run")]
        by = ", ".join(f"{n} by {what}" for what, n in rows["by"].value_counts().items())
        result = f"Attacks as in the audit of {short(kept.labels[artifact]['paper'])}: {by or 'none'}; theirs are by models"
        bounds = list(zip(rows["ours"], rows["claimed"], strict=True))
        yield [result, _above(bounds), "–", f"attacked: [{artifact}]({kept.scale}/README.md#{artifact})"]


def _above(bounds: list[tuple[float, float]]) -> str:
    above = sum(lower > claimed for lower, claimed in bounds)
    return f"{above} of {len(bounds)} lower bounds are above the claimed ε"


def _recomputed(kept: Kept, papers: Plan) -> Iterator[list[str]]:
    """Yield how many of the settings in print spend the ε in print, on as many examples as their trainings have."""
    settings = list(settings_of(kept))
    if settings and kept.scale == papers.scale:  # other scales have some of the same tables
        result = f"Settings in print that spend the ε in print, within {FAR:.0%}, by Rényi accounting"
        agree = sum(agrees for *_, agrees in settings)
        yield [result, f"{agree} of {len(settings)}", "–", f"recomputed: [tables]({kept.scale}/README.md)"]


def _decided(kept: Kept) -> Iterator[list[str]]:
    """Yield the effects on which the trainings decide, with their intervals."""
    for name, row in _effects(kept):
        if row["verdict"] != UNDECIDED:
            private = "not private" if same(row["epsilon"], None) else "private"
            made = "simulated" if same(row["simulated"], True) else private
            made += "" if same(row["stand_ins"], None) else ", stand-in"
            result = f"{short(kept.labels[name]['paper'])}, {row['verdict']}: {row['comparison']}"
            ours = in_words(row["effect"], row["low"], row["high"], row["unit"])
            yield [result, ours, f"{row['n']:g}", f"{made}: [{row['claim']}]({kept.scale}/{name}.md#{row['claim']})"]


def _effects(kept: Kept) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the comparisons of all claims that have an interval, with the page of claims."""
    for name, claims in kept.claims.items():
        for row in claims[(claims["row"] == "comparison") & claims["low"].notna()].to_dict("records"):
            yield name, row


def _undecided(kept: Kept) -> Iterator[str]:
    """Yield how many effects have an interval that decides nothing."""
    undecided = Counter(name for name, row in _effects(kept) if row["verdict"] == UNDECIDED)
    if undecided:
        places = ", ".join(f"{n} in [{name}]({kept.scale}/{name}.md)" for name, n in undecided.items())
        yield f"Further effects have intervals that decide nothing: {places}."


def _printed(papers: Plan, kept: Sequence[Kept]) -> Iterator[str]:
    """Yield the papers' headline numbers: what of ours stands beside them, and what their artifacts would take."""
    numbers = [(short(paper), number) for paper, of in papers.headlines.items() for number in of]
    beside = [list(_beside(number, papers, kept)) for _, number in numbers]
    found = Counter(said for rows in beside for said in {re.split("[:,]", status)[0] for status, _, _ in rows})
    yield f"Of {len(numbers)} numbers {', '.join(f'{found[status]} {words}' for status, words in STATUSES.items())}.\n"
    yield COLUMNS
    artifacts = list(dict.fromkeys(number["artifact"] for _, number in numbers if "beyond" not in number))
    cost = table(papers, Estimator(papers, ROOT, DEVICE, measured=False), artifacts, devices=1)
    hours = {row["artifact"]: f"{row['device_seconds'] / 3600:,.0f}" for row in cost["artifacts"]}
    for (paper, number), rows in zip(numbers, beside, strict=True):
        took = "–" if "beyond" in number else hours[number["artifact"]]
        for ours in rows:
            cells = [paper, number["headline"], f"{number['value']:g}", *ours, f"`{number['artifact']}`", took]
            yield f"| {' | '.join(cells)} |"
    yield GUESSED.format(device=DEVICE, all=f"{cost['total']['device_seconds'] / 3600:,.0f}")


def _beside(number: dict[str, Any], papers: Plan, kept: Sequence[Kept]) -> Iterator[tuple[str, str, str]]:
    """Yield the status of a number in print, ours and n: a row for each scale with trainings of it, or one without any."""
    rows = [(each, row) for each in kept for row in each.ours(number)]
    for each, row in rows:
        yield how_made(each, number["artifact"], row, papers), f"{row['ours']:.2f}", f"{row['n']:g}"
    if not rows:
        yield f"cannot be run: {number['beyond']}" if "beyond" in number else "not run", "–", "0"


def _experiments(kept: Kept, number: str) -> Iterator[str]:
    """Yield how a scale's artifacts are made again, and what their trainings took where they were made."""
    runs = list((kept.folder / "runs").glob("*/provenance.json"))
    if not runs:
        tables = counted("table", "tables", len(list((kept.folder / "tables").glob("*.csv"))))
        none = f"{tables}; 0 of {len(kept.plan.runs)} trainings"
        yield f"- **({number}) Scale `{kept.scale}`**: only what follows without a training is kept: {none}."
        yield f"  - Command: `python -m dpvision keep docs/results/{kept.scale} --scale {kept.scale}`."
        yield _expected(kept, "their settings")
        return
    made = [read_json(file) for file in runs]
    peak = max(read_json(file).get("peak_memory_mb", 0) for file in kept.folder.glob("*/*/provenance.json"))
    seconds = sum(session["seconds"] for record in made for session in record["sessions"])
    machines = {f"{record['machine']['processor']}, {record['machine']['cores']} cores" for record in made}
    artifacts = ", ".join(f"`{name}`" for name in kept.labels if (kept.folder / "plan" / f"{name}.json").exists())
    yield f"- **({number}) Scale `{kept.scale}`**, {kept.plan.title}: {artifacts}."
    yield f"  - Command: `snakemake all --cores 2 {kept.plan.asked_by()}`; one artifact: its name in the place of `all`."
    if (kept.folder / "audits").exists():
        yield f"  - The engine under attack: `snakemake audit --cores 2 {kept.plan.asked_by()}`."
    took = (
        f"{len(made)} of {len(kept.plan.runs)} trainings, {clock(seconds)} of work together, on {'; '.join(sorted(machines))}"
    )
    yield f"  - Time: {took}. Searches, data, features, analyses and attacks are not counted. The largest job took {peak:,} MB."
    yield _expected(kept, "their records")


def _expected(kept: Kept, source: str) -> str:
    tables = f"  - Expected: the tables in [{kept.scale}/README.md]({kept.scale}/README.md). That they follow from {source}:"
    return f"{tables}\n    `python -m dpvision verify docs/results/{kept.scale}`."
