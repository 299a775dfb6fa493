"""README.md of an archive: what somebody reads who has the archive alone. Its words are in readme.md beside this file."""

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any

from dpvision.files import read_json
from dpvision.looking.text import counted
from dpvision.plan import Plan
from dpvision.plan.stages import STAGES, Key
from dpvision.plan.withheld import all_withheld_files, is_withheld, withheld_artifacts
from dpvision.reporting.markup import markdown_row

TEMPLATE = Path(__file__).with_name("readme.md")


def readme(plan: Plan, root: Path, about: dict[str, Any]) -> bytes:
    """Return the content of README.md.

    Args:
        plan: The plan of what is packed.
        root: The folder that the plan's results lie in.
        about: The content of archive.json.
    """
    # what must not leave has no time here either: that of a covered search says how many trials it had
    times = {key: seconds_of(plan, key, root) for key in plan.kept() if not is_withheld(plan, key)}
    changed = ", ".join(about["changed"])
    words = {
        **{key: about[key] for key in ("name", "version", "scale", "title", "commit", "date", "results")},
        "changed": f"THE SOURCE IS NOT AS COMMITTED: {changed}." if changed else "The source is as committed.",
        "artifacts": "\n".join(artifact_rows(plan, times)),
        "time": duration(sum(times.values())),
        "machines": "; ".join(machines(plan, times, root)) or "no machine that the records name",
        "claims": "\n".join(claim_lines(plan, root)),
        "absent": "\n".join(f"- {line}" for line in absent_lines(plan, root)),
    }
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(words).encode()


def artifact_rows(plan: Plan, times: dict[Key, float]) -> list[str]:
    """Return the rows of the table of artifacts."""
    withheld = withheld_artifacts(plan)
    rows = [markdown_row(["artifact", "of", "what", "files", "time"]), markdown_row(["---"] * 5)]
    for name in plan.artifacts:
        labels = plan.labels[name]
        files = ", ".join(f"`{file.removeprefix(f'{plan.results}/')}`" for file in plan.targets(name)[:2])
        time = duration(sum(times.get(key, 0) for key in plan.below(name)))
        shown = ["left out, see below", "–"] if name in withheld else [files, time]
        rows.append(markdown_row([f"`{name}`", labels["paper"], labels["title"], *shown]))
    return rows


def claim_lines(plan: Plan, root: Path) -> list[str]:
    """Return, for each page of claims, how many have which verdict."""
    lines = []
    for name, spec in plan.artifacts.items():
        if "claims" not in spec or name in withheld_artifacts(plan):
            continue
        with open(root / plan.targets(name)[0], encoding="utf-8", newline="") as file:
            verdicts = Counter(row["verdict"] for row in csv.DictReader(file) if row["row"] == "claim")
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        lines.append(f"- `{plan.results}/{name}.md` judges {counted('sentence', 'sentences', verdicts.total())}: {counts}")
    return lines


def absent_lines(plan: Plan, root: Path) -> list[str]:
    """Return what the archive does not have: data, weights of others, what must not leave, what was not asked for."""
    lines = []
    for key in plan.kept():
        if key[0] in ("data", "weights"):
            product = read_json(root / plan.product(key))
            kind = "the data set" if key[0] == "data" else "the weights"
            where = f"{plan.folder(key)}/{STAGES[key[0]].record[0]}"
            lines.append(f"{kind} {product['title']} (licence: {product['licence']}); `{where}` has the digests")
    if withheld := all_withheld_files(plan):
        files = counted("file", "files", len(withheld))
        lines.append(f"{files} of covered searches and of trainings with secret noise, which must not leave")
    lines.append("checkpoints of unfinished trainings, and whatever no artifact of this scale rests on")
    return lines


def seconds_of(plan: Plan, key: Key, root: Path) -> float:
    """Return the seconds that a piece of work took by its records, in all sessions; of a search, all trials."""
    folder = root / plan.folder(key)
    provenance = read_json(folder / "provenance.json")
    seconds = float(sum(session["seconds"] for session in provenance.get("sessions", [])) or provenance["seconds"])
    if key[0] == "search":
        with open(folder / "trials.csv", encoding="utf-8", newline="") as file:
            seconds += sum(float(row["seconds"] or 0) for row in csv.DictReader(file))
    return seconds


def machines(plan: Plan, keys: Iterable[Key], root: Path) -> list[str]:
    """Return the processors and graphics cards of records, each once."""
    named = set()
    for key in keys:
        machine = read_json(root / plan.folder(key) / "provenance.json")["machine"]
        named.add(machine.get("gpu") or f"{machine['processor']}, {counted('core', 'cores', machine['cores'])}")
    return sorted(named)


def duration(seconds: float) -> str:
    """Return a time in the unit that a reader would choose."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"
