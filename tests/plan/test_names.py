"""Names are for ever: every name that was planned once is planned still, and of the same spec."""

import json
from pathlib import Path
from typing import Annotated

import pytest
from record_names import STAGES

from dpvision import plan
from dpvision.config.base import Later, Strict
from dpvision.files import digest

NAMES = Path(__file__).with_name("names")  # PAPER/SCALE.jsonl, a line a piece of work; record_names.py adds lines
RECORDED = [pytest.param(file, id=f"{file.parent.name}-{file.stem}") for file in sorted(NAMES.glob("*/*.jsonl"))]


@pytest.mark.parametrize("file", RECORDED)
def test_every_name_of_today_stays_and_ends_in_the_digest_of_its_spec(file):
    planned = plan.load({"papers": [file.parent.name], "scale": file.stem})
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert lines
    for line in lines:
        spec = planned.work.get((STAGES[line["kind"]], line["name"]))
        assert spec is not None, line["name"]
        assert line["name"].rsplit("-", 1)[1] == digest(spec)
        assert line.get("spec", spec) == spec, line["name"]  # the first paper's are there whole


def test_a_field_that_comes_later_is_in_a_spec_only_where_it_is_not_its_default():
    class Old(Strict):
        first: int
        second: Annotated[float, Later] = 0.0
        below: "Old | None" = None

    assert Old(first=1).as_spec() == Old(first=1, second=0.0).as_spec() == {"first": 1, "below": None}
    assert Old(first=1, second=2.0, below=Old(first=3)).as_spec() == {
        "first": 1,
        "second": 2.0,
        "below": {"first": 3, "below": None},
    }
