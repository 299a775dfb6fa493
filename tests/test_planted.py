"""Every planted bug still finds the text that it replaces; whether the audit notices it, `make test-planted` says."""

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
