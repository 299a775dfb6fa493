"""A digest of the code that made a result: of a module and all of dpvision that it imports, of nothing else."""

import shutil
from pathlib import Path

import pytest

from dpvision import code
from dpvision.errors import UserError
from dpvision.plan import specs

REAL = code.PACKAGE


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """Make a package called dpvision: a module, one that others import, one that none does, and a subpackage."""
    folder = tmp_path / "dpvision"
    for name in ("__init__", "start", "wanted", "unrelated", "sub/__init__", "sub/start", "sub/wanted"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(f"thing = 'of {name}'\n")
    monkeypatch.setattr(code, "PACKAGE", folder)
    return folder


def digest(module: str) -> str:
    code.code_digest.cache_clear()
    return code.code_digest(module)


@pytest.fixture(autouse=True)
def fresh():
    yield
    code.code_digest.cache_clear()


def changes(file: Path, module: str) -> bool:
    """Say whether an edit of the file shows in the module's digest."""
    before = digest(module)
    file.write_text(file.read_text() + "# edited\n")
    return digest(module) != before


@pytest.mark.parametrize(
    "line",
    [
        "import dpvision.wanted",
        "import dpvision.wanted as w",
        "import os, dpvision.wanted",
        "from dpvision import wanted",
        "from dpvision import wanted as w",
        "from dpvision.wanted import thing",
        "from dpvision.wanted import *",
        "from . import wanted",
        "from .wanted import thing",
        "def later():\n    from dpvision.wanted import thing",
        "if True:\n    from dpvision.wanted import thing",
        "try:\n    import dpvision.wanted\nexcept ImportError:\n    pass",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import dpvision.wanted",
    ],
)
def test_whatever_way_a_module_is_imported_it_counts(line, package):
    (package / "start.py").write_text(f"{line}\n")
    assert changes(package / "wanted.py", "dpvision.start")
    assert not changes(package / "unrelated.py", "dpvision.start")


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("from . import wanted", "sub/wanted.py"),
        ("from .wanted import thing", "sub/wanted.py"),
        ("from .. import wanted", "wanted.py"),
        ("from ..wanted import thing", "wanted.py"),
        ("from . import thing", "sub/__init__.py"),
        ("import dpvision.sub", "sub/__init__.py"),
        ("from dpvision import sub", "sub/__init__.py"),
        ("from dpvision.sub import thing", "sub/__init__.py"),
        ("from dpvision.sub import wanted", "sub/wanted.py"),
    ],
)
def test_imports_within_and_of_packages_count(line, file, package):
    (package / "sub/start.py").write_text(f"{line}\n")
    assert changes(package / file, "dpvision.sub.start")
    for other in {"wanted.py", "sub/wanted.py", "unrelated.py"} - {file}:
        assert not changes(package / other, "dpvision.sub.start"), other


def test_a_package_s_own_file_counts_with_its_imports(package):
    (package / "sub/__init__.py").write_text("from dpvision.wanted import thing\n")
    assert changes(package / "wanted.py", "dpvision.sub")


def test_what_is_imported_by_imports_counts(package):
    (package / "start.py").write_text("from dpvision.sub import wanted\n")
    (package / "sub/wanted.py").write_text("from dpvision.wanted import thing\nfrom dpvision import start\n")
    assert changes(package / "wanted.py", "dpvision.start")


def test_what_is_imported_for_type_checkers_alone_does_not_count(package):
    (package / "start.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dpvision.wanted\n")
    assert not changes(package / "wanted.py", "dpvision.start")


def test_of_several_modules_each_counts(package):
    before = code.code_digest("dpvision.start", "dpvision.unrelated")
    assert digest("dpvision.start") != before
    (package / "unrelated.py").write_text("thing = 1\n")
    code.code_digest.cache_clear()
    assert code.code_digest("dpvision.start", "dpvision.unrelated") != before


def test_moving_code_between_files_shows(package):
    before = digest("dpvision.start")
    (package / "start.py").rename(package / "begin.py")
    assert digest("dpvision.begin") != before


def test_a_module_that_is_missing_has_no_digest(package):
    with pytest.raises(UserError, match=r"^there is no module dpvision\.gone .* MOVED in dpvision/code\.py needs a line"):
        digest("dpvision.gone")


def test_a_module_that_moved_is_found_by_its_old_name_too(package, monkeypatch):
    monkeypatch.setitem(code.MOVED, "dpvision.begin", "dpvision.start")
    assert digest("dpvision.begin") == digest("dpvision.start")


# --- the library's own stages ---


@pytest.fixture
def library(tmp_path, monkeypatch) -> Path:
    """Return a copy of the library, to be edited."""
    shutil.copytree(REAL, tmp_path / "dpvision", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code, "PACKAGE", tmp_path / "dpvision")
    return tmp_path / "dpvision"


@pytest.mark.parametrize(
    ("file", "stage", "counts"),
    [
        ("training/step.py", "training.run", True),
        ("privacy/noise.py", "training.run", True),
        ("models/layers.py", "training.run", False),
        ("models/resnet9/network.py", "training.run", False),
        ("models/resnet9/network.py", "models.resnet9.network", True),
        ("models/layers.py", "models.resnet9.network", True),
        ("models/resnet9/options.py", "models.resnet9.network", False),
        ("models/wrn/network.py", "models.resnet9.network", False),
        ("plan/specs.py", "training.run", True),
        ("config/papers.py", "training.run", False),
        ("plan/stages.py", "training.run", False),
        ("plan/checks/cells.py", "training.run", False),
        ("reporting/tables.py", "training.run", False),
        ("reporting/figures.py", "reporting.figures", True),
        ("reporting/figures.mplstyle", "reporting.figures", True),
        ("curvature/spectrum.py", "reporting.kinds.spectrum", True),
        ("curvature/spectrum.py", "reporting.figures", False),
        ("reporting/kinds/spectrum.py", "reporting.figures", False),
        ("reporting/kinds/spectrum.py", "reporting.kinds.curves", False),
        ("reporting/figures.py", "reporting.kinds.spectrum", True),
        ("reporting/figures.mplstyle", "reporting.tables", False),
        ("reporting/figures.py", "reporting.tables", False),
        ("training/step.py", "reporting.figures", False),
        ("training/step.py", "search.study", True),
    ],
)
def test_each_stage_rests_on_its_own_code(file, stage, counts, library):
    assert changes(library / file, f"dpvision.{stage}") == counts


def digest_of(run: specs.Spec) -> str:
    """Return the digest of a run's code, as a training's record has it."""
    code.code_digest.cache_clear()
    return code.code_digest("dpvision.training.run", *specs.modules_of(run))


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("training/step.py", True),
        ("training/optimizers/nadam.py", True),
        ("training/optimizers/sgd.py", False),
        ("training/optimizers/new.py", False),
        ("training/schedules/plateau.py", True),
        ("training/schedules/constant.py", False),
        ("training/schedules/new.py", False),
        ("training/initializations/xavier_uniform.py", False),
    ],
)
def test_a_training_rests_on_the_optimiser_and_the_schedule_that_it_has_and_on_no_other(file, counts, library, run_spec):
    before = digest_of(run_spec())
    with open(library / file, "a") as edited:
        edited.write("# edited\n")
    assert (digest_of(run_spec()) != before) == counts


def test_a_training_rests_on_the_initialisation_that_it_has(library, run_spec):
    run = run_spec({"recipe.initialization": {"name": "xavier_uniform", "gain": 1.0}})
    before = digest_of(run)
    with open(library / "training/initializations/xavier_uniform.py", "a") as edited:
        edited.write("# edited\n")
    assert digest_of(run) != before
