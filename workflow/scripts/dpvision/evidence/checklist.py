"""A checklist of reproducibility, filled in from records: what reviewers of machine learning and of privacy ask."""

from collections.abc import Iterator, Sequence
from typing import Any

from dpvision.evidence.kept import Kept
from dpvision.files import read_json

BEGINNING = """# Checklist of reproducibility

Made by `python -m dpvision evidence` from the records in this folder, a part for each scale.
"""


COMPOSED = "beside, as a composition of all its trials; held-out examples count as public"
COVERED = "beside, by a random number of trials (Papernot and Steinke 2022); held-out examples count as public"
RELEASED = "under the conditions that the ledger lists: the noise was secret"
NOT_SEARCHED = "no search: as the configuration says; what is not in print: docs/reproduction.md"


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
    for question, answer in {**_experiments(records), **_privacy(records), **_code(records)}.items():
        yield f"| {question} | {answer} |"
    yield ""


def _experiments(records: list[dict[str, Any]]) -> dict[str, str]:
    specs = [record["spec"] for record in records]
    searches = {study for spec in specs for study in spec.get("found_by", {}).values()}
    data = [spec["data"] for spec in specs]
    counts = (f"{of['train']:,} examples, {of['validation']:,} of them held out; {of['test']:,} to test" for of in data)
    return {
        "How many trainings, with which seeds?": f"{len(specs)}; {_listed(spec['seed'] for spec in specs)}",
        "Which data, divided how?": _listed(f"{of['name']}: {count}" for of, count in zip(data, counts, strict=True)),
        "How were settings chosen?": f"by {len(searches)} searches, in the folder `studies`" if searches else NOT_SEARCHED,
        "Is the spread over seeds given?": "yes, beside each number, with n; each seed's number is in the CSV",
    }


def _privacy(records: list[dict[str, Any]]) -> dict[str, str]:
    ledgers = [record["ledger"] for record in records]
    private = [ledger for ledger in ledgers if ledger.get("private")]
    answers = {"How many trainings are private?": f"{len(private)} of {len(ledgers)}"}
    if not private:
        return answers
    epsilons = sorted({(ledger["epsilon"]["target"], ledger["delta"]) for ledger in private if ledger["epsilon"].get("target")})
    searches = [search for ledger in private for search in ledger.get("searches", [])]
    ways = {"epsilon_covered": COVERED, "epsilon_all_composed": COMPOSED}
    counted = [words for key, words in ways.items() if any(key in search for search in searches)]
    return answers | {
        "Which ε and δ?": _listed(f"({epsilon:g}, {delta:g})" for epsilon, delta in epsilons),
        "By which accountants?": _listed(key for ledger in private for key in ledger["epsilon"] if key != "target"),
        "Who are neighbours?": _listed(ledger["neighbours"] for ledger in private),
        "How are batches drawn?": _listed(ledger["sampling"] for ledger in private),
        "Is the search accounted for?": "; ".join(counted) or "nothing was searched",
        "What is not accounted for?": _listed(said for ledger in private for said in ledger["not_accounted"]),
        "May the weights be released?": _listed(ledger.get("repeatable") or RELEASED for ledger in private),
    }


def _code(records: list[dict[str, Any]]) -> dict[str, str]:
    made = [record["provenance"] for record in records]
    commits = [session.get("commit", record["commit"]) for record in made for session in record["sessions"]]
    seconds = [sum(session["seconds"] for session in record["sessions"]) for record in made]
    unknown = sum("dirty" not in record for record in made)
    changed = "yes" if any(record.get("dirty") for record in made) else "no"
    return {
        "Which code?": _listed(f"commit {commit[:12]}" for commit in commits),
        "Was it changed locally?": changed + (f"; of {unknown} it is not known" if unknown else ""),
        "Which packages?": _listed(f"{name} {version}" for record in made for name, version in record["packages"].items()),
        "On what?": _listed(f"{r['machine']['processor']}, {r['machine']['cores']} cores" for r in made),
        "What did a training take?": f"{min(seconds):.0f} to {max(seconds):.0f} s",
    }


def _listed(values: Any) -> str:
    """Name each value once."""
    return "; ".join(dict.fromkeys(map(str, values))).replace("|", r"\|")
