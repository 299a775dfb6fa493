"""Write the lock, and what is made from it: what `make lock` runs.

envs/requirements.lock  all that pyproject.toml asks for and all they need, with hashes, for every Python from 3.11 on
envs/GROUP.yaml         what a dependency group of pyproject.toml needs of it, for conda: Python from conda, the rest by pip
envs/dpvision.def       all of it, as a recipe for Apptainer
Torch and torchvision are not in the lock: pyproject.toml pins them, and the machine chooses the build.
"""

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from install import torch_pins

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "envs" / "requirements.lock"
PYTHON = "3.11"


class Package(NamedTuple):
    requirement: str
    """Version and marker: numpy==2.4.6 ; python_full_version < '3.12'"""
    hashes: list[str]
    needed_by: set[str]

    @property
    def name(self) -> str:
        return self.requirement.split("==")[0]


def packages(lock: str) -> list[Package]:
    blocks = re.split(r"\n(?=[a-z0-9])", lock.strip())
    return [
        Package(
            block.splitlines()[0].removesuffix(" \\"),
            re.findall(r"--hash=\S+", block),
            set(re.findall(r"^    #(?: via|  ) (\S+)", block, re.MULTILINE)),
        )
        for block in blocks
    ]


def needed(names: list[str], locked: list[Package]) -> list[Package]:
    """Return the packages of these names and all that they need."""
    wanted = set(names)
    while more := {package.name for package in locked if package.needed_by & wanted} - wanted:
        wanted |= more
    return [package for package in locked if package.name in wanted]


def conda_environment(group: str, names: list[str], locked: list[Package]) -> str:
    torch = [pin for pin in torch_pins() if pin.split("==")[0] in names]
    header = """\
# Written by `make lock` from pyproject.toml and requirements.lock: change the first and run that.
# The packages stand here, not in a file beside: Snakemake copies this file elsewhere before conda reads it, and makes
# an environment anew when this text changes, not when a file does that it names.
"""
    if torch:
        header += """\
# No hashes: pip takes them for all or for none, and which build of torch is right is a matter of the machine. PyPI's for
# Linux brings CUDA; another index for pip gives others (docs/environments.md).
"""
    pip = [[package.requirement, *([] if torch else package.hashes)] for package in needed(names, locked)]
    pip += [[pin] for pin in torch]
    lines = [f"name: dpvision-{group}", "channels: [conda-forge, nodefaults]", "dependencies:"]
    lines += [f"  - python={PYTHON}", "  - pip", "  - pip:"]
    # YAML joins the lines of an entry by spaces
    lines += ["      - " + "\n        ".join(words) for words in pip]
    return header + "\n".join(lines) + "\n"


def apptainer_recipe(lock: str) -> str:
    return f"""\
Bootstrap: docker
From: python:{PYTHON}
# Written by `make lock` from pyproject.toml and requirements.lock: change the first and run that.
# How to build and use it: docs/environments.md. The base image has git, which provenance.json takes the commit from.

%files
    envs/requirements.lock /opt/dpvision/requirements.lock

%labels
    requirements.lock sha256:{hashlib.sha256(lock.encode()).hexdigest()}

%post
    pip install --no-cache-dir --require-hashes --no-deps -r /opt/dpvision/requirements.lock
    pip install --no-cache-dir {" ".join(torch_pins())}

%environment
    # packages of the user's own (~/.local), which the container sees, must not come before its own
    export PYTHONNOUSERSITE=1
    # the library is the checkout's: commands are given in its folder
    export PYTHONPATH=workflow/scripts

%test
    pip check
"""


def made_from(lock: str) -> dict[Path, str]:
    locked = packages(lock)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    made = {ROOT / "envs" / f"{group}.yaml": conda_environment(group, names, locked) for group, names in groups.items()}
    return made | {ROOT / "envs" / "dpvision.def": apptainer_recipe(lock)}


def resolved() -> str:
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--universal", "--python-version", PYTHON]
    command += ["--extra", "dev", "--generate-hashes", "--no-header", "--quiet"]
    command += ["--no-emit-package", "torch", "--no-emit-package", "torchvision"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lock: uv could not resolve pyproject.toml:\n{done.stderr}")
    return done.stdout


def main() -> None:
    lock = resolved()
    LOCK.write_text(lock)
    for path, text in made_from(lock).items():
        path.write_text(text)


if __name__ == "__main__":
    main()
