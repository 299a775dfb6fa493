"""Copies of the project for tests to change and to run, with ScaleNorm as their only paper: so that nothing that tests count
or spoil there depends on which papers config/config.yaml lists, or on how many folders config/papers has.
"""

import re
import shutil
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
SMALL = ROOT / "tests/config"  # ScaleNorm with one data set and two models, and scales for it
PAPER = "scalenorm"


def copy_configuration(to: Path, small: bool = False) -> None:
    """Copy config/ into the folder `to`; `small`: with the tests' small paper in the place of ScaleNorm."""
    shutil.copytree(ROOT / "config", to / "config")
    for folder in (to / "config/papers").iterdir():
        if folder.name != PAPER:
            shutil.rmtree(folder)
    if small:
        shutil.copytree(SMALL, to / "config", dirs_exist_ok=True)
    settings = to / "config/config.yaml"
    text, found = re.subn(r"^papers: \[.*\]", f"papers: [{PAPER}]", settings.read_text(encoding="utf-8"), flags=re.M)
    assert found == 1, "config/config.yaml lists no papers"
    settings.write_text(text, encoding="utf-8")


def copy_parts(to: Path, *parts: str) -> None:
    """Copy files and folders of the project into the folder `to`."""
    for part in parts:
        (to / part).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, to / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / part, to / part)


def copy_project(to: Path, small: bool = False) -> None:
    """Copy all that Snakemake needs into the folder `to`."""
    copy_parts(to, "Snakefile", "workflow", "profiles", "envs")
    copy_configuration(to, small)


def brought() -> dict[str, str]:
    """Return a folder for each data set that nobody can download, so that plans have the work that rests on it."""
    datasets = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())
    return {name: "somewhere" for name, dataset in datasets.items() if not dataset.get("sources")}
