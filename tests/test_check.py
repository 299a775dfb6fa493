"""`make check` runs the tests that a change touches, and `make help` names what make can do."""

import re
import subprocess

import pytest
from check import ROOT, touched_by

TESTS = {
    "tests/data/test_sampling.py": "from dpvision.data.sampling import PoissonSampler\n",
    "tests/training/test_step.py": "from dpvision.data.sampling import PoissonSampler\nfrom jobs import started\n",
    "tests/reporting/test_figures.py": "from dpvision.reporting import (\n    figures,\n    words,\n)\n",
    "tests/reporting/test_tables.py": "from dpvision.reporting import tables, wording\n",
    "tests/test_own_loop.py": 'PAGE = ROOT / "docs/own_loop.md"\n',
    "tests/plan/test_specs.py": "from dpvision.plan import specs\n",
    "tests/test_locks.py": "import dpvision.locks\n",
}


@pytest.mark.parametrize(
    ("file", "touched"),
    [
        (
            "workflow/scripts/dpvision/data/sampling.py",
            {"tests/data", "tests/data/test_sampling.py", "tests/training/test_step.py"},
        ),
        ("workflow/scripts/dpvision/reporting/words.py", {"tests/reporting", "tests/reporting/test_figures.py"}),
        ("workflow/scripts/dpvision/plan/__init__.py", {"tests/plan", "tests/plan/test_specs.py"}),
        ("workflow/scripts/dpvision/locks.py", {"tests/test_locks.py"}),
        ("workflow/scripts/dpvision/vision.py", set()),
        ("docs/own_loop.md", {"tests/test_own_loop.py"}),
        ("config/papers/scalenorm/paper.yaml", {"tests/plan"}),
        ("tests/plan/test_specs.py", {"tests/plan/test_specs.py"}),
        ("tests/training/conftest.py", {"tests/training"}),
        ("tests/conftest.py", {"tests"}),
        ("tests/jobs.py", {"tests/training/test_step.py"}),
        ("CITATION.cff", set()),
    ],
)
def test_a_change_touches_the_touched_by_its_folder_and_those_that_name_it(file, touched):
    assert touched_by(file, TESTS) == touched


def test_help_has_a_line_for_every_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.M)
    said = subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = {line.split()[1]: line.split(maxsplit=2)[2] for line in said.splitlines()}
    assert set(lines) == set(phony.split()) == set(re.findall(r"^([a-z-]+):", makefile, re.M))
    assert all(lines.values())
