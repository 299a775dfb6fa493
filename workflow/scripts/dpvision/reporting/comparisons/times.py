"""How long one model's training took, divided by how long another's did."""

from typing import Literal

from dpvision.config.comparisons import AgainstAnother
from dpvision.plan.specs import Spec
from dpvision.reporting.measures import Named, Observed, observed_within, ratio, work_of
from dpvision.reporting.records import Records


class Options(AgainstAnother):
    """Seconds that one model's training took divided by those of another's, each on the machine that it ran on."""

    kind: Literal["times"]
    """What is compared."""

    def reads(self) -> str:
        return "train/provenance.json"


UNIT = "ratio"
in_print = ratio


def _seconds(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    """Return those of all sessions of a training that was interrupted."""
    made = records.json("provenance.json", work_of(comparison, side)[seed])
    return made and sum(session["seconds"] for session in made["sessions"])


def observed(comparison: Spec, records: Records) -> Observed:
    return observed_within(comparison, records, _seconds, ratio)


def described(comparison: Spec, named: Named) -> str:
    return f"seconds, {named.sides[0]} / {named.sides[1]}{named.where}"
