"""The environments of conda and Apptainer: made from the lock, and enough for the jobs that run in them."""

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dpvision.models.found import FAMILIES
from dpvision.plan.stages import STAGES

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = sorted(PROJECT["dependency-groups"])
RULES = {
    script: group
    for file in sorted((ROOT / "workflow/rules").glob("*.smk"))
    for group, script in re.findall(
        r'^ +conda:\n +"\.\./\.\./envs/(\w+)\.yaml"\n(?:(?!^ *rule\b).*\n)*? +script:\n +"\.\./scripts/(\w+)\.py"',
        file.read_text(),
        re.MULTILINE,
    )
}
"""The scripts of the rules, and the group whose environment each is given."""

# In a process that finds no other distributions: what Snakemake writes above a script, then every import that the
# scripts and the modules of dpvision behind them may ever make, those inside of functions as well.
IMPORT = """
import ast, importlib, importlib.metadata, json, re, sys
from importlib.machinery import PathFinder
from pathlib import Path

scripts, also, distributions, apart = map(json.loads, sys.argv[1:5])
sys.path += sys.argv[5:]

def normal(name):
    return re.sub("[-_.]+", "-", name).lower()

holders = importlib.metadata.packages_distributions()

class Allowed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        held = holders.get(name.split(".")[0])
        refused = held and not {normal(holder) for holder in held} & {"dpvision", *distributions}
        return None if refused else super().find_spec(name, path, target)

sys.meta_path = [Allowed if finder is PathFinder else finder for finder in sys.meta_path]

def imports(node):
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield node
    elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        for child in ast.iter_child_nodes(node):
            yield from imports(child)

def import_all_of(file):
    for node in imports(ast.parse(Path(file).read_text())):
        exec(ast.unparse(node))

from snakemake.logging import logger
from snakemake.iocontainers import Snakemake

for name in also:
    importlib.import_module(name)
for script in scripts:
    import_all_of(script)
seen = set()
while new := {name for name in sys.modules if name.split(".")[0] == "dpvision" and name.rpartition(".")[0] not in apart} - seen:
    seen |= new
    for name in new:
        import_all_of(sys.modules[name].__file__)
"""

# Of the process that runs the job, whose folders Snakemake puts behind those of the job's own environment.
BROUGHT_BY_SNAKEMAKE = [
    "snakemake",
    "snakemake-interface-common",
    "snakemake-interface-logger-plugins",
    "snakemake-interface-storage-plugins",
]


def environment(group: str) -> list[str]:
    """Return what pip is to install in a group's environment, as conda reads it."""
    dependencies = yaml.safe_load((ROOT / f"envs/{group}.yaml").read_text())["dependencies"]
    (pip,) = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    return pip


def distributions(group: str) -> set[str]:
    """Return a group's distributions that are for this Python and system."""
    requirements = [Requirement(entry.split(" --hash")[0]) for entry in environment(group)]
    return {needed.name for needed in requirements if not needed.marker or needed.marker.evaluate()}


def needs_of(name: str) -> set[str]:
    """Return what a distribution's own metadata says it needs here."""
    needs = map(Requirement, importlib.metadata.requires(name) or [])
    return {canonicalize_name(need.name) for need in needs if not need.marker or need.marker.evaluate({"extra": ""})}


def brought_by_torch() -> set[str]:
    """Return what a build of torch for CUDA needs more than others. The lock leaves that to it."""
    installed = {canonicalize_name(found.name) for found in importlib.metadata.distributions()}
    return {name for name in installed if name.startswith(("nvidia", "cuda", "triton"))}


def import_with(group: str, names: set[str]) -> subprocess.CompletedProcess:
    """Import whatever the jobs of a group import, where there is nothing but these distributions."""
    scripts = [str(ROOT / f"workflow/scripts/{script}.py") for script, its in RULES.items() if its == group]
    also = [stage.job.split(":")[0] for stage in STAGES.values() if stage.analysis and group == RULES["analyse"]]
    if group == "data":  # which module of these, the configuration says
        for name, entry in yaml.safe_load((ROOT / "config/datasets.yaml").read_text()).items():
            also += [f"dpvision.data.datasets.{entry.get('reader', name)}"]
            also += [source["package"] for source in entry.get("sources", []) if source["kind"] == "python"]
    if group == "train":  # and which family of networks
        also += [f"dpvision.models.{family}.network" for family in FAMILIES]
    allowed = [*names, *BROUGHT_BY_SNAKEMAKE, *(brought_by_torch() if "torch" in names else [])]
    # in the plan for their options alone: their functions run where things are drawn, or trained
    drawn = ["dpvision.reporting.kinds"]
    trained = [f"dpvision.training.{found}" for found in ("optimizers", "schedules", "initializations")]
    apart = {"report": trained, "train": drawn}.get(group, drawn + trained)
    arguments = [json.dumps(part) for part in (scripts, also, allowed, apart)]
    paths = [sysconfig.get_path("purelib"), str(ROOT / "workflow/scripts")]
    command = [sys.executable, "-I", "-S", "-c", IMPORT, *arguments, *paths]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def lock() -> ModuleType:
    """Import envs/lock.py."""
    sys.path.insert(0, str(ROOT / "envs"))
    found = importlib.util.spec_from_file_location("lock", ROOT / "envs/lock.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    sys.path.remove(str(ROOT / "envs"))
    return module


@pytest.fixture
def locked(lock):
    return lock.LOCK.read_text()


def test_every_rule_has_the_environment_of_a_group_and_every_group_serves_a_rule():
    scripts = {path.stem for path in (ROOT / "workflow/scripts").glob("*.py")}
    assert set(RULES) == scripts
    assert set(RULES.values()) == set(GROUPS)


def test_what_is_made_from_the_lock_is_as_make_lock_writes_it(lock, locked):
    for path, text in lock.made_from(locked).items():
        assert path.read_text() == text, f"{path.name} is not what the lock gives: change pyproject.toml and run make lock"


def test_another_version_in_the_lock_is_another_environment_and_another_recipe(lock, locked):
    other = lock.made_from(locked.replace("numpy==", "numpy==9."))
    assert [path for path in other if path.read_text() == other[path]] == []


def test_a_group_has_all_that_its_packages_need_and_nothing_else(lock):
    text = """\
a==1 ; sys_platform == 'linux' \\
    --hash=sha256:aa \\
    --hash=sha256:ab
    # via
    #   b
    #   dpvision (pyproject.toml)
b==2 \\
    --hash=sha256:bb
    # via torch
c==3 \\
    --hash=sha256:cc
    # via dpvision (pyproject.toml)
"""
    packages = lock.packages(text)
    assert [package.requirement for package in lock.needed(["torch"], packages)] == ["a==1 ; sys_platform == 'linux'", "b==2"]
    made = yaml.safe_load(lock.conda_environment("some", ["a"], packages))
    assert made["dependencies"][2:] == [{"pip": ["a==1 ; sys_platform == 'linux' --hash=sha256:aa --hash=sha256:ab"]}]
    made = yaml.safe_load(lock.conda_environment("other", ["c", "torch"], packages))
    assert [entry.split("==")[0] for entry in made["dependencies"][2]["pip"]] == ["a", "b", "c", "torch"]
    assert "--hash" not in str(made)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_has_the_locks_versions_and_hashes_and_python_from_conda(group, locked):
    text = " ".join(line.strip().removesuffix(" \\") for line in locked.splitlines() if not line.startswith("    #"))
    entries = environment(group)
    torch = [entry for entry in entries if entry.startswith("torch")]
    assert set(torch) <= set(PROJECT["project"]["dependencies"])
    for entry in set(entries) - set(torch):
        assert f" {entry}" in f" {text}"
        assert ("--hash=sha256:" in entry) == (not torch)
    made = yaml.safe_load((ROOT / f"envs/{group}.yaml").read_text())
    assert made["channels"] == ["conda-forge", "nodefaults"]
    assert made["dependencies"][:2] == ["python=3.11", "pip"]


def test_a_group_names_nothing_that_the_project_does_not():
    project = {re.match(r"[\w-]+", dependency)[0] for dependency in PROJECT["project"]["dependencies"]}
    assert {name for names in PROJECT["dependency-groups"].values() for name in names} <= project


@pytest.mark.parametrize("group", GROUPS)
def test_an_environment_has_whatever_its_packages_say_that_they_need(group):
    names = distributions(group)
    assert set().union(*map(needs_of, names)) - names - brought_by_torch() == set()


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_the_jobs_of_a_group_import_nothing_that_its_environment_does_not_have(group):
    done = import_with(group, distributions(group))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "package"),
    [
        ("data", "pillow"),
        ("data", "threadpoolctl"),
        ("train", "colorlog"),
        ("train", "optuna"),
        ("train", "timm"),
        ("train", "torchvision"),
        ("report", "kiwisolver"),
    ],
)
def test_a_package_that_an_environment_lacks_is_noticed(group, package):
    done = import_with(group, distributions(group) - {package})
    assert done.returncode
    assert "ModuleNotFoundError" in done.stderr


def test_the_recipe_installs_the_lock_by_its_hashes_and_torch_by_its_version(lock):
    recipe = (ROOT / "envs/dpvision.def").read_text()
    assert recipe.startswith("Bootstrap: docker\nFrom: python:3.11\n")
    (source, copy) = re.search(r"%files\n +(\S+) (\S+)\n", recipe).groups()
    assert ROOT / source == lock.LOCK
    by_hash, by_version = re.findall(r"^ +pip install (.*)", recipe, re.MULTILINE)
    assert by_hash.endswith(f"--require-hashes --no-deps -r {copy}")
    assert {pin for pin in by_version.split() if "==" in pin} == {
        pin for pin in PROJECT["project"]["dependencies"] if pin.startswith("torch")
    }


# --- where there is no conda ---


def planned(folder: Path) -> subprocess.CompletedProcess:
    """Make the SLURM profile's dry run with programs from this folder alone."""
    words = ["results/tables/table1.csv", "--profile", "slurm", "--dry-run", "--quiet"]
    command = [sys.executable, "-m", "snakemake", *words]
    environment = {**os.environ, "PATH": str(folder)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def with_programs(folder: Path, **programs: str) -> Path:
    for name in ("bash", "sh", "which"):
        (folder / name).symlink_to(shutil.which(name))
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.slow
def test_without_conda_the_slurm_profile_uses_the_environment_that_snakemake_runs_in_and_says_so(tmp_path):
    done = planned(with_programs(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "there is no conda here: jobs use the environment that snakemake runs in" in done.stderr


@pytest.mark.slow
def test_with_a_conda_the_slurm_profile_asks_it(tmp_path):
    done = planned(with_programs(tmp_path, conda="echo it was asked >&2; exit 3"))
    assert done.returncode == 1
    assert "it was asked" in done.stderr and "there is no conda" not in done.stderr
