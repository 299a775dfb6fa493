"""A copy of the configuration to spoil, and of the project to run."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from copied import brought, copy_configuration, copy_parts

from dpvision import plan
from dpvision.errors import UserError
from dpvision.plan.reading import read_yaml


class Configuration:
    """The project's config/ with one paper, the tests' small one, in a folder of its own."""

    def __init__(self, root: Path, small: bool = True) -> None:
        self.root = root
        copy_configuration(root, small)

    def append(self, file: str, text: str) -> "Configuration":
        with (self.root / "config" / file).open("a", encoding="utf-8") as end:
            end.write(text)
        return self

    def change(self, file: str, old: str, new: str) -> "Configuration":
        path = self.root / "config" / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return self

    def plan(self, **settings: Any) -> plan.Plan:
        content = read_yaml(self.root, "config/config.yaml").content
        return plan.load(content | settings if settings else content, self.root)

    def complaints(self, **settings: Any) -> list[str]:
        with pytest.raises(UserError) as raised:
            self.plan(**settings)
        return str(raised.value).splitlines()


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    return Configuration(tmp_path)


@pytest.fixture
def as_shipped(tmp_path: Path) -> Configuration:
    """Return the configuration with ScaleNorm as it is."""
    return Configuration(tmp_path, small=False)


class Project(Configuration):
    """A copy of all that a command needs."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        copy_parts(root, "Snakefile", "workflow", "profiles", "envs")

    def run(self, *words: str, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess:
        """Run `python -m` with these words."""
        # unbuffered output would hide what a reader that goes away does to buffered output
        environment = {**os.environ, "PYTHONPATH": str(self.root / "workflow/scripts"), "PYTHONUNBUFFERED": ""}
        options = {"capture_output": True, "text": True, "env": environment, "cwd": cwd or self.root} | options
        return subprocess.run([sys.executable, "-m", *words], **options)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture(scope="module")
def shipped(request: pytest.FixtureRequest) -> Callable[[str], plan.Plan]:
    """Return the plan of a scale, of the paper that the test's file names as PAPER, as it is shipped."""

    @functools.cache
    def load(scale: str) -> plan.Plan:
        content = read_yaml(plan.ROOT, "config/config.yaml").content
        return plan.load(content | {"papers": [request.module.PAPER], "scale": scale, "folders": brought()}, plan.ROOT)

    return load
