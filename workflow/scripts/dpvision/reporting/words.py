"""Words of captions and notes for how the records behind an artifact were made."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from dpvision.plan.specs import Spec
from dpvision.provenance import departures


def simulation(spec: Spec) -> str:
    """Describe the simulation of the cells that are simulated; nothing where none is, or numbers of others are quoted."""
    if spec.get("kind") == "quoted":
        return ""
    divisors = sorted({cell["simulated"] for cell in spec["cells"] if "simulated" in cell})
    if not divisors:
        return ""
    return f"simulated, not private: batch and noise divided by {' or '.join(map(str, divisors))}, steps kept"


def caption(spec: Spec, labels: dict[str, Any]) -> str:
    """Return the caption of a table: what it shows, of which paper, at which scale."""
    sentences = [labels["title"]]
    if labels["paper"] not in labels["title"]:
        sentences.append(labels["paper"])
    if spec["scale"] != "paper":
        sentences.append(f"Scale {spec['scale']}" + ("" if labels.get("as_written") else ", not the paper's"))
    if how := simulation(spec):
        sentences.append(how.capitalize())
    return " ".join(f"{sentence.rstrip('.')}." for sentence in sentences)


def made_by(provenances: Iterable[dict[str, Any]]) -> list[str]:
    """Return sentences that a reader should know before trusting; none where all is of one code, commit and lock."""
    records = list(provenances)
    codes: dict[str, dict[str, set[str]]] = {}  # codes of a module, by all modules that made records with it
    for record in records:
        module = record["stage"].split()[0]
        versions = codes.setdefault(module, {}).setdefault(record["stage"], set())
        versions.update(one["code"] for one in (record, *record.get("sessions", [])))
    counted = {module: _versions(module, by_stage) for module, by_stage in sorted(codes.items())}
    mixed = [f"{count} versions of {module}" for module, count in counted.items() if count > 1]
    sentences = [f"Made by different code: {', '.join(mixed)}."] if mixed else []
    if len({record["lock"] for record in records}) > 1:
        sentences.append("Made with different packages: more than one lock.")
    counts = Counter(text for record in records for text in departures(record))
    return sentences + [f"{count} of {len(records)} records: {text}." for text, count in counts.items()]


def _versions(module: str, codes: dict[str, set[str]]) -> int:
    """Count versions of a module: other modules beside it make no other version, but their absence is an earlier one."""
    alone = codes.get(module, set())
    return len(alone) + max((len(found) for stage, found in codes.items() if stage != module), default=0)
