"""Which code made this: a digest of a module's source and of all of dpvision that it imports."""

import ast
import functools
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parent


@functools.cache
def code_digest(*modules: str) -> str:
    """Of the modules' files and of every file of dpvision that they import, directly or through others."""
    text = hashlib.sha256()
    for file in sorted(set().union(*(_closure(_file_of(module)) for module in modules))):
        text.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
        if file.with_suffix(".mplstyle").exists():
            text.update(file.with_suffix(".mplstyle").read_bytes())
    return text.hexdigest()[:12]


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
    """The files of dpvision that a file imports; not those of the packages that they lie in, if it takes nothing from there."""
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
