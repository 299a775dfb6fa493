"""The plan is read by every job that a cluster starts: it imports nothing heavy and takes 10,000 runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from copied import copy_configuration

HEAVY = ("torch", "torchvision", "numpy", "pandas", "scipy", "sklearn", "optuna", "opacus", "matplotlib", "PIL", "snakemake")
SAY = f"import sys; print('heavy:', *sorted(set({HEAVY}) & set(sys.modules)))"
LOAD = "import dpvision.plan; [dpvision.plan.load({'papers': ['scalenorm'], 'scale': scale}) for scale in ('paper', 'demo')]"
COMMAND = "import runpy, sys; sys.argv = ['dpvision', *{words!r}]; runpy.run_module('dpvision', run_name='__main__')"


def last_line(*code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", "\n".join(code)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_loading_a_plan_imports_nothing_heavy(tmp_path):
    assert last_line(LOAD, SAY, folder=tmp_path) == "heavy:"


LOOKS = ["plan", "plan table1 --scale demo", "plan --cost", "status", "status --json", "show resnet9-eps7.42-seed34-5"]


@pytest.mark.parametrize("words", [look.split() for look in LOOKS], ids=LOOKS)
def test_asking_for_the_plan_imports_nothing_heavy(words, tmp_path):
    copy_configuration(tmp_path)
    assert last_line(COMMAND.format(words=words), SAY, folder=tmp_path) == "heavy:"


def test_the_check_sees_what_is_heavy(tmp_path):
    assert last_line(LOAD, "import numpy", SAY, folder=tmp_path) == "heavy: numpy"


def test_ten_thousand_runs_each_have_a_folder_of_their_own(configuration):
    seeds = ", ".join(map(str, range(1667)))
    planned = configuration.change("papers/scalenorm/paper.yaml", "[34, 50, 113]", f"[{seeds}]").plan()
    assert len(planned.runs) == 6 * 1667
    assert len({name.rsplit("-", 1)[1] for name in planned.runs}) == 6 * 1667  # the digests alone keep them apart
    assert len(planned.runs_of("table1")) == 6 * 1667
