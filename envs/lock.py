"""Write the lock, and the conda environment that is made from it: what `make lock` runs.

envs/requirements.lock  all that pyproject.toml asks for and all they need, with hashes, for every Python from 3.11 on
envs/dpvision.yaml      the same versions for conda: Python from conda, the packages by pip
Torch and torchvision are in neither's resolution: pyproject.toml pins them, and the machine chooses the build.
"""

import re
import subprocess
import sys
from pathlib import Path

from install import torch_pins

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "envs" / "requirements.lock"
CONDA = ROOT / "envs" / "dpvision.yaml"


def compiled(*options: str) -> str:
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--universal", "--python-version", "3.11"]
    command += ["--no-header", "--quiet", "--no-emit-package", "torch", "--no-emit-package", "torchvision"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"lock: uv could not resolve pyproject.toml:\n{done.stderr}")
    return done.stdout


def conda_environment(pins: list[str]) -> str:
    lines = ["# Written by `make lock`; change pyproject.toml and run that.", "name: dpvision"]
    lines += ["channels: [conda-forge, nodefaults]", "dependencies:", "  - python=3.11", "  - pip", "  - pip:"]
    return "\n".join(lines + [f"      - {pin}" for pin in pins]) + "\n"


def main() -> None:
    LOCK.write_text(compiled("--extra", "dev", "--generate-hashes"))
    run_time = compiled("--constraint", str(LOCK), "--no-annotate")
    pins = [line.strip() for line in run_time.splitlines() if re.match(r"[a-z0-9]", line)]
    CONDA.write_text(conda_environment(sorted([*pins, *torch_pins()])))


if __name__ == "__main__":
    main()
