"""From YAML files to validated models, with errors that name file, key, value and what is allowed."""

import difflib
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from dpvision.errors import UserError

Loaded = TypeVar("Loaded")
Document = tuple[str, Any]  # the file's name, as messages show it, and what it says


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as people mean it: 1e-5 is a number (YAML 1.1 takes it for text), a key stands once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [key.value for key, _ in node.value]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f'the key "{twice[0]}" stands there twice', node.start_mark)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d[\d_]*)(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read_yaml(path: Path, shown: str) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except FileNotFoundError:
        there = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml"))) or "nothing"
        hint = _nearest(path.stem, [p.stem for p in path.parent.glob("*.yaml")])
        raise UserError(f"{shown}: there is no such file;{hint} in its folder there is: {there}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise UserError(f"{shown}{where}: {getattr(error, 'problem', error)}") from None


def merged(under: Any, over: Any) -> Any:
    """`over` laid over `under`: mappings key by key, all else replaced whole.

    A mapping that names another kind (name, kind, family) is another thing, and replaces the one below it.
    """
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return over
    if any(key in over and under.get(key) != over[key] for key in ("name", "kind", "family")):
        return over
    return under | {key: merged(under[key], value) if key in under else value for key, value in over.items()}


def validated(kind: type[Loaded] | Any, documents: list[Document]) -> Loaded:
    """The documents, each laid over those before it, as `kind`."""
    document = documents[0][1]
    for _, over in documents[1:]:
        document = merged(document, over)
    adapter = TypeAdapter(kind)
    try:
        return adapter.validate_python(document)
    except ValidationError as error:
        schema = adapter.json_schema()
        found: dict[tuple, list[dict]] = {}
        for problem in error.errors(include_url=False):
            found.setdefault(_path(problem["loc"], document, schema), []).append(dict(problem))
        raise UserError("\n".join(_line(path, them, document, documents, schema) for path, them in found.items())) from None


def complain(documents: list[Document], path: tuple, expectation: str) -> UserError:
    """An error about a value that is right in itself and wrong beside others."""
    value = documents[0][1]
    for _, over in documents[1:]:
        value = merged(value, over)
    return UserError(f"{_file_of(path, documents)}: {_key(path)}{_shown(_at(value, path))}: {expectation}")


def unknown(documents: list[Document], path: tuple, name: str, allowed: list[str]) -> UserError:
    hint = _nearest(name, allowed)
    return complain(documents, path, f'there is no "{name}";{hint} allowed: {", ".join(sorted(allowed)) or "nothing"}')


_MISSING = object()


def _line(path: tuple, problems: list[dict], document: Any, documents: list[Document], schema: dict) -> str:
    kind = problems[0]["type"]
    where = f"{_file_of(path, documents)}: {_key(path)}"
    if kind == "extra_forbidden":
        allowed = _keys(_schema_at(schema, path[:-1]), schema)
        return (
            f"{where}{_shown(_at(document, path))}: unknown key;{_nearest(str(path[-1]), allowed)} "
            f"allowed here: {', '.join(allowed)}"
        )
    if kind == "missing":
        here = _schema_at(schema, path)
        return f"{where}: this key is missing ({_description(here)})" if _description(here) else f"{where}: missing"
    wanted = dict.fromkeys(_expectation(problem) for problem in problems)
    return f"{where}{_shown(_at(document, path))}: {'; or '.join(wanted)}"


def _expectation(problem: dict) -> str:
    text: str = problem["msg"]
    if problem["type"] == "string_pattern_mismatch":
        return f"must match {problem['ctx']['pattern']}"
    for old, new in (("Input should be", "must be"), ("Value error, ", ""), ("Input tag", "the name")):
        text = text.replace(old, new)
    return text


def _shown(value: Any) -> str:
    if value is _MISSING or isinstance(value, dict):
        return ""
    text = repr(value)
    return f" = {text if len(text) <= 60 else text[:57] + '...'}"


def _key(path: tuple) -> str:
    return re.sub(r"\.\[", "[", ".".join(f"[{p}]" if isinstance(p, int) else str(p) for p in path)) or "the file"


def _nearest(name: str, allowed: list[str]) -> str:
    near = difflib.get_close_matches(name, allowed, n=1, cutoff=0.5)
    return f' did you mean "{near[0]}"?' if near else ""


def _at(value: Any, path: tuple) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return value


def _file_of(path: tuple, documents: list[Document]) -> str:
    """The last file that says something there, or that holds the place where something is missing."""
    for depth in range(len(path), 0, -1):
        for name, document in reversed(documents):
            if _at(document, path[:depth]) is not _MISSING:
                return name
    return documents[0][0]


def _path(location: tuple, document: Any, schema: dict) -> tuple:
    """Pydantic's location without the names of union members that it puts in between."""
    path: tuple = ()
    for i, part in enumerate(location):
        here = _at(document, path)
        last = i == len(location) - 1
        is_key = isinstance(here, dict) and (part in here or (last and part in _keys(_schema_at(schema, path), schema)))
        if is_key or (isinstance(here, list) and isinstance(part, int)):
            path += (part,)
    return path


def _alternatives(schema: dict, root: dict) -> list[dict]:
    if "$ref" in schema:
        return _alternatives(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root)
    members = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    return [s for member in members for s in _alternatives(member, root)] if members else [schema]


def _schema_at(root: dict, path: tuple) -> dict:
    """The schema of a place; alternatives side by side under anyOf."""
    here = _alternatives(root, root)
    for part in path:
        below = []
        for schema in here:
            if isinstance(part, int):
                below.append(schema.get("items"))
            else:
                below.append(schema.get("properties", {}).get(part, schema.get("additionalProperties")))
        here = [s for schema in below if isinstance(schema, dict) for s in _alternatives_with_text(schema, root)]
    return {"anyOf": here}


def _alternatives_with_text(schema: dict, root: dict) -> list[dict]:
    text = {"description": schema["description"]} if "description" in schema else {}
    return [s | text for s in _alternatives(schema, root)]


def _keys(schema: dict, root: dict) -> list[str]:
    return sorted({key for s in schema.get("anyOf", [schema]) for key in s.get("properties", {})})


def _description(schema: dict) -> str:
    return next((s["description"].split("\n")[0] for s in schema.get("anyOf", []) if "description" in s), "")
