"""A digest of the code that made a result: of a module's source and of all of dpvision that it imports."""

import ast
import functools
import hashlib
from pathlib import Path

from dpvision.errors import UserError

PACKAGE = Path(__file__).parent

MOVED: dict[str, str] = {"dpvision.reporting.activations": "dpvision.analyses.activations"}
"""Modules that records of old name by other names, and what they are called now. A name in a record is for ever."""


@functools.cache
def code_digest(*modules: str) -> str:
    """Return the digest of the modules' files and of every file of dpvision that they import, directly or through others."""
    text = hashlib.sha256()
    for file in sorted(set().union(*(_closure(_start(module)) for module in modules))):
        text.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
        if file.with_suffix(".mplstyle").exists():
            text.update(file.with_suffix(".mplstyle").read_bytes())
    return text.hexdigest()[:12]


def _start(module: str) -> Path:
    """Find the file of a module, by whatever name it had."""
    file = _file_of(MOVED.get(module, module))
    if not file.exists():
        raise UserError(
            f"there is no module {module} whose code could have made this; if it was moved, MOVED in {PACKAGE.name}/code.py "
            "needs a line with its old and its new name"
        )
    return file


def _closure(start: Path) -> set[Path]:
    seen: set[Path] = set()
    waiting = [start]
    while waiting:
        file = waiting.pop()
        if file not in seen and file.exists():
            seen.add(file)
            waiting.extend(_imports(file))
    return seen


def _imports(file: Path) -> list[Path]:
    """Return the files of dpvision that a file imports; not the packages they lie in, if it takes nothing from those."""
    package = ["dpvision", *file.relative_to(PACKAGE).parent.parts]
    names: list[str] = []
    waiting: list[ast.AST] = [ast.parse(file.read_bytes())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            below = [f"{module}.{alias.name}" for alias in node.names]
            names += [name if _file_of(name).exists() else module for name in below]
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            waiting += node.orelse  # the rest never runs
        else:
            waiting += ast.iter_child_nodes(node)
    return [_file_of(name) for name in names if name.split(".")[0] == "dpvision"]


def _file_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
