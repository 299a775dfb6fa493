"""Every planted bug still finds the text that it replaces, and its tests; whether it is noticed, `make test-planted` says."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUGS = sorted((ROOT / "tests" / "planted" / "bugs").glob("*.toml"))


@pytest.mark.parametrize("bug", BUGS, ids=lambda file: file.stem)
def test_the_text_that_a_bug_replaces_is_there_once(bug):
    for edit in tomllib.loads(bug.read_text())["edits"]:
        text = (ROOT / "workflow" / "scripts" / "dpvision" / edit["file"]).read_text()
        assert text.count(edit["find"]) == 1, edit["find"]


@pytest.mark.parametrize("bug", BUGS, ids=lambda file: file.stem)
def test_a_bug_names_designs_and_a_verdict_or_tests_that_are_there(bug):
    said = tomllib.loads(bug.read_text())
    assert ("tests" in said) != ({"designs", "verdict"} <= said.keys())
    for name in said.get("tests", []):
        file, _, test = name.partition("::")
        assert f"def {test}" in (ROOT / file).read_text()
