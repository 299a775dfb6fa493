"""Names are for ever: every name that was planned once is planned still, with its whole spec."""

import json
from pathlib import Path
from typing import Annotated

import pytest

from dpvision import plan
from dpvision.config.base import Later, Strict
from dpvision.files import digest

STAGES = {"data": "data", "studies": "search", "runs": "train", "hessians": "hessian", "activations": "activations"}
NAMES = Path(__file__).with_name("names")  # a file a scale, of ScaleNorm; a line a piece of work


def golden(scale: str) -> list[dict]:
    return [json.loads(line) for line in (NAMES / f"{scale}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("scale", [file.stem for file in sorted(NAMES.glob("*.jsonl"))])
def test_every_name_of_today_stays_with_its_whole_spec(scale):
    planned = plan.load({"papers": ["scalenorm"], "scale": scale})
    for line in golden(scale):
        assert planned.work.get((STAGES[line["kind"]], line["name"])) == line["spec"], line["name"]


@pytest.mark.parametrize("scale", [file.stem for file in sorted(NAMES.glob("*.jsonl"))])
def test_a_name_ends_in_the_digest_of_its_spec(scale):
    assert all(line["name"].rsplit("-", 1)[1] == digest(line["spec"]) for line in golden(scale))


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
