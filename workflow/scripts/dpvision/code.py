"""Which code made this: a digest of a module's source and of all of dpvision that it imports."""

import ast
import functools
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parent


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
        if file not in seen:
            seen.add(file)
            waiting.extend(_imports(file))
    return seen


@functools.cache
def _imports(file: Path) -> list[Path]:
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
    return [_file_of(name) for name in names if name.split(".")[0] == "dpvision" and _file_of(name).exists()]


def _file_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
