"""What captions and notes say of how the records behind an artifact were made."""

from collections.abc import Iterable
from typing import Any

from dpvision.plan.specs import Spec


def simulation(spec: Spec) -> str:
    """Of the cells that are simulated; nothing where none is."""
    divisors = sorted({cell["simulated"] for cell in spec["cells"] if "simulated" in cell})
    if not divisors:
        return ""
    return f"simulated, not private: batch and noise divided by {' or '.join(map(str, divisors))}, steps kept"


def made_by(provenances: Iterable[dict[str, Any]]) -> list[str]:
    """Sentences of what a reader should know before trusting; none where all is of one code, commit and lock."""
    records = list(provenances)
    stages: dict[str, set[str]] = {}
    for record in records:
        sessions = record.get("sessions", [])
        stages.setdefault(record["stage"], set()).update([record["code"], *(session["code"] for session in sessions)])
    mixed = [f"{len(codes)} versions of {stage}" for stage, codes in sorted(stages.items()) if len(codes) > 1]
    locks = {record["lock"] for record in records}
    counts = {
        "from files that are in no commit": sum(not (record["commit"] or "+").isalnum() for record in records),
        "interrupted, and went on": sum(len(record.get("sessions", [])) > 1 for record in records),
    }
    sentences = [f"Made by different code: {', '.join(mixed)}."] if mixed else []
    sentences += ["Made with different packages: more than one lock."] if len(locks) > 1 else []
    return sentences + [f"{count} of {len(records)} records: {what}." for what, count in counts.items() if count]
