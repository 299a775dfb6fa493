"""A copy of the results in the repository, to be changed and read again."""

import shutil
from pathlib import Path

import pytest
from remade import KEPT


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return a copy of the results in the repository, without what is made of all of them."""
    shutil.copytree(KEPT, tmp_path / "results", ignore=lambda folder, _: ["README.md"] if Path(folder) == KEPT else [])
    return tmp_path / "results"
