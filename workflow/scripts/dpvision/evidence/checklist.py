"""A checklist of reproducibility, filled in from records: what reviewers of machine learning and of privacy ask."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dpvision.evidence.kept import Kept, not_accounted
from dpvision.files import read_json
from dpvision.looking.text import counted

BEGINNING = """# Checklist of reproducibility

Made by `python -m dpvision evidence` from the records in this folder. Each scale that has trainings has a part.
(n of N) counts trainings: n of N private ones have this answer.
*Private* and *simulated* mean what [the page of results](README.md) says.
"""
WITH_SEARCH = {
    "epsilon_all_composed": "The ledger also has ε with all trials, as one composition",
    "epsilon_covered": "The ledger also has ε with a search by a random number of trials (Papernot and Steinke 2022)",
}
RELEASED = "under the conditions that the ledger lists: the noise was secret"
Record = dict[str, Any]  # the spec, the ledger and the provenance of a training


def checklist(kept: Sequence[Kept]) -> str:
    """Return the checklist."""
    return "\n".join([BEGINNING, *(line for each in kept for line in _of(each))]).rstrip() + "\n"


def _of(kept: Kept) -> Iterator[str]:
    """Yield the answers for a scale; nothing where nothing was trained."""
    folders = sorted(folder for folder in (kept.folder / "runs").glob("*") if (folder / "spec.json").exists())
    if not folders:
        return
    records = [{name: read_json(folder / f"{name}.json") for name in ("spec", "ledger", "provenance")} for folder in folders]
    yield f"## Scale `{kept.scale}`: {kept.plan.title}\n"
    yield "| question | answer |\n| --- | --- |"
    for question, answer in {**_experiments(kept, records), **_privacy(kept, records), **_code(records)}.items():
        yield f"| {question} | {answer} |"
    yield ""


def _experiments(kept: Kept, records: list[Record]) -> dict[str, str]:
    specs = [record["spec"] for record in records]
    seeds = ", ".join(map(str, sorted({spec["seed"] for spec in specs})))
    return {
        "How many trainings, with which seeds?": f"{counted('training', 'trainings', len(specs))}; seeds {seeds}",
        "Which data, divided how?": " ".join(_data(kept, specs)),
        "How were settings chosen?": " ".join(_settings(specs)),
        "Is the spread over seeds given?": " ".join(_spread(specs)),
    }


def _data(kept: Kept, specs: list[Record]) -> Iterator[str]:
    """Yield how each data set is divided, and what trainings and searches hold out of its training examples."""
    searched = [kept.scored_on(study) for study in _studies(specs)]
    for name, data in {spec["data"]["name"]: spec["data"] for spec in specs}.items():
        trainings = Counter(spec["data"]["validation"] for spec in specs if spec["data"]["name"] == name)
        searches = Counter(of["validation"] for of in searched if of["name"] == name)
        held_out = [f"{counted('training holds', 'trainings hold', n)} out {out:,}" for out, n in trainings.items()]
        held_out += [f"{counted('search holds', 'searches hold', n)} out {out:,}" for out, n in searches.items()]
        yield f"{name}: {data['train']:,} training examples, {data['test']:,} test examples."
        yield f"Of the training examples {', '.join(held_out)}."


def _settings(specs: list[Record]) -> Iterator[str]:
    """Yield for how many trainings a search chose values, and for how many none did."""
    searched = sum("found_by" in spec for spec in specs)
    if searched:
        yield f"{counted('search', 'searches', len(_studies(specs)))} chose values for {searched} of {len(specs)} trainings."
        yield "Their records are in the folder `studies`."
    if searched < len(specs):
        yield f"Nothing was searched for {len(specs) - searched} of {len(specs)} trainings."
        yield "The configuration has their settings; what is not in print: docs/reproduction.md."


def _studies(specs: list[Record]) -> list[str]:
    """Return the searches that chose values for trainings."""
    return sorted({study for spec in specs for study in spec.get("found_by", {}).values()})


def _spread(specs: list[Record]) -> Iterator[str]:
    """Yield how many trainings have others that differ in the seed alone."""
    alike = Counter(json.dumps({**spec, "seed": None}, sort_keys=True) for spec in specs)
    single = sum(n == 1 for n in alike.values())
    if single < len(specs):
        yield f"Yes for {len(specs) - single} of {len(specs)} trainings, beside each number with n."
    if single:
        yield f"No for {single} of {len(specs)} trainings: each is the only one with its settings (n = 1)."
    yield "The number of each seed is in the CSV."


def _privacy(kept: Kept, records: list[Record]) -> dict[str, str]:
    private = [record for record in records if record["ledger"].get("private")]
    simulated = sum("simulated" in record["ledger"] for record in records)
    answer = f"{len(private)} of {len(records)}; {simulated} of {len(records)} are simulated"
    answers = {"How many trainings are private?": answer}
    if not private:
        return answers
    ledgers = [record["ledger"] for record in private]
    epsilons = sorted({(ledger["epsilon"]["target"], ledger["delta"]) for ledger in ledgers if ledger["epsilon"].get("target")})
    return answers | {
        "Which ε and δ has one training?": _listed(f"({epsilon:g}, {delta:g})" for epsilon, delta in epsilons),
        "By which accountants?": _listed(key for ledger in ledgers for key in ledger["epsilon"] if key != "target"),
        "How many training examples does this ε cover?": _shares([_covered(record)] for record in private),
        "Who are neighbours?": _listed(ledger["neighbours"] for ledger in ledgers),
        "How are batches drawn?": _listed(ledger["sampling"] for ledger in ledgers),
        "Is the search accounted for?": _shares(_searched(kept, record) for record in private),
        "What else is not accounted for?": _shares(not_accounted(record["spec"], record["ledger"]) for record in private),
        "May the weights be released?": _listed(ledger.get("repeatable") or RELEASED for ledger in ledgers),
    }


def _covered(record: Record) -> str:
    return f"{record['ledger']['examples']:,} of {record['spec']['data']['train']:,}"


def _searched(kept: Kept, record: Record) -> Iterator[str]:
    """Yield what the ledger says of the searches for a training, and which examples no ε with them covers."""
    searches = record["ledger"].get("searches", [])
    if not searches:
        yield "Nothing was searched"
        return
    yield from (words for key, words in WITH_SEARCH.items() if any(key in search for search in searches))
    scored, trained_on = kept.scored(record["spec"])
    yield f"The trials were scored on {scored:,} held-out examples without noise: no ε with the trials covers these"
    if trained_on:
        yield f"Afterwards the training was on {trained_on:,} of these held-out examples too"


def _code(records: list[Record]) -> dict[str, str]:
    made = [record["provenance"] for record in records]
    commits = [session.get("commit", record["commit"]) for record in made for session in record["sessions"]]
    seconds = [sum(session["seconds"] for session in record["sessions"]) for record in made]
    return {
        "Which code?": _listed(f"commit {commit[:12]}" for commit in commits),
        "Was it changed locally?": "; ".join(_changed(made)),
        "Which packages?": _listed(f"{name} {version}" for record in made for name, version in record["packages"].items()),
        "On what?": _listed(f"{r['machine']['processor']}, {r['machine']['cores']} cores" for r in made),
        "What did a training take?": f"{min(seconds):.0f} to {max(seconds):.0f} s",
    }


def _changed(made: list[Record]) -> Iterator[str]:
    """Yield for how many trainings the code was changed, and for how many it was not or nobody knows."""
    answers = {True: "yes for {}, and the records do not say what was changed", False: "no for {}", None: "not known for {}"}
    for said, words in answers.items():
        if n := sum(record.get("dirty") is said for record in made):
            yield words.format(f"{n} of {counted('training', 'trainings', len(made))}")


def _shares(answers: Iterable[Iterable[str]]) -> str:
    """Name each answer once, in its own line of a table's cell, with how many trainings have it."""
    of_each = [list(dict.fromkeys(of_one)) for of_one in answers]
    counts = Counter(answer for of_one in of_each for answer in of_one)
    return "<br>".join(f"{answer} ({n} of {len(of_each)})" for answer, n in counts.items()).replace("|", r"\|")


def _listed(values: Iterable[Any]) -> str:
    """Name each value once."""
    return "; ".join(dict.fromkeys(map(str, values))).replace("|", r"\|")
