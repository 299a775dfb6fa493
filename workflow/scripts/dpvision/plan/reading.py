"""The way from YAML files to validated models, with errors that name file, key, value and what is allowed."""

import difflib
import functools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from dpvision.config.base import PATTERNS
from dpvision.errors import UserError

Loaded = TypeVar("Loaded")
KINDS = ("name", "kind", "family")  # keys that say which of several things a mapping is
MISSING = object()
TYPES = {"integer": "a whole number", "number": "a number", "string": "text", "null": "null", "boolean": "true or false"}
BOUNDS = {"exclusiveMinimum": "above", "minimum": "of at least", "exclusiveMaximum": "below", "maximum": "of at most"}


class Document(NamedTuple):
    """Content of a file, or of a part of it: (papers, scalenorm) of a scale."""

    file: str
    content: Any
    part: tuple = ()


Documents = list[Document]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A loader of YAML as people mean it: 1e-5 is a number (YAML 1.1 takes it for text), a key stands once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen: set = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f'the key "{key.value}" is given twice', key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d[\d_]*)(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read_yaml(root: Path, file: str) -> Document:
    try:
        text = (root / file).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: this file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not text in UTF-8: {error.reason} at byte {error.start}") from None
    try:
        return Document(file, yaml.load(text, _Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = mark.line if mark else 0
        line = [*text.splitlines(), ""][at]
        raise UserError(f"{file}, line {at + 1}: {error.problem}: {_yaml(line.rstrip())}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{file}: {error}") from None


def merged(under: Any, over: Any) -> Any:
    """Return `over` laid over `under`: mappings key by key, all else replaced whole.

    A mapping that names another kind (name, kind, family) is another thing, and replaces the one below it.
    """
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return over
    if any(isinstance(over.get(key), str) and under.get(key) != over[key] for key in KINDS):
        return over
    return under | {key: merged(under[key], value) if key in under else value for key, value in over.items()}


def validated(kind: type[Loaded] | Any, documents: Documents) -> Loaded:
    """Return the documents, each laid over those before it, validated as `kind`."""
    content = functools.reduce(merged, (document.content for document in documents))
    adapter = TypeAdapter(kind)
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        problems = _by_place(error, content).items()
        schema = adapter.json_schema()
        lines = [complaint(documents, p, _expectation(p, problem, content, schema), _at(content, p)) for p, problem in problems]
        raise UserError("\n".join(lines)) from None


def laid_over(adapter: TypeAdapter, options: BaseModel | None, over: dict[str, Any], part: str) -> Any:
    """Return options with other values laid over them; what is wrong is an error that names the keys below `part`."""
    content = merged(options.model_dump() if options else {}, over)
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        schema, problems = adapter.json_schema(), _by_place(error, content).items()
        lines = [(_key((part, *p)), _at(content, p), _expectation(p, problem, content, schema)) for p, problem in problems]
    raise UserError("; ".join(f"{key}{'' if value is MISSING else f' = {_yaml(value)}'}: {must}" for key, value, must in lines))


def refuse(problems: Iterable[str]) -> None:
    """Raise all problems at once, one a line, if there are any."""
    if text := "\n".join(dict.fromkeys(problems)):
        raise UserError(text)


def complaint(documents: Documents, path: tuple, expectation: str, value: Any = MISSING) -> str:
    """Return one line that says what is wrong, where, and what is allowed."""
    document = _document_of(path, documents)
    shown = "" if value is MISSING or isinstance(value, dict | BaseModel) else f" = {_yaml(value)}"
    return f"{document.file}: {_key(document.part + path)}{shown}: {expectation}"


def unknown(
    documents: Documents, path: tuple, what: str, name: str, allowed: list[str], value: Any = MISSING, among: str = ""
) -> str:
    """Return a complaint about a name that stands for nothing, or for nothing among some of what there is."""
    there = ", ".join(map(str, allowed)) or "there is none"
    return complaint(documents, path, f'there is no {what} "{name}"{among}.{nearest(name, allowed)} Allowed: {there}', value)


def plain_values(kind: Any, key: str) -> str:
    """Describe the values that a key may have in words; mappings are left out."""
    schema = TypeAdapter(kind).json_schema()
    places = _schemas(schema, (key,), {})
    return " or ".join(dict.fromkeys(_words(place) for place in places if place.get("type") != "object"))


def nearest(name: Any, allowed: list[str], cutoff: float = 0.5) -> str:
    near = difflib.get_close_matches(str(name).lower(), map(str, allowed), n=1, cutoff=cutoff)
    return f' Did you mean "{near[0]}"?' if near else ""


def _by_place(error: ValidationError, content: Any) -> dict[tuple, dict]:
    """Return one problem for each place. Of the members of a union, take the one that was meant: whose problems lie inside
    the value, or which is of its type and says in words what is wrong with it."""
    found: dict[tuple, dict] = {}
    for problem in error.errors(include_url=False):
        path = _path(problem, content)
        if path not in found or problem["type"] == "value_error":
            found[path] = dict(problem)
    outer = {path[:depth] for path in found for depth in range(len(path))}
    return {path: problem for path, problem in found.items() if path not in outer or _is_key(problem)}


def _path(problem: Any, content: Any) -> tuple:
    """Return pydantic's location without the names of union members that it puts in between."""
    path: tuple = ()
    for part in problem["loc"]:
        if _at(content, (*path, part)) is not MISSING:
            path += (part,)
    if problem["type"] == "missing":
        return (*path, problem["loc"][-1])
    if problem["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return (*path, problem["ctx"]["discriminator"].strip("'"))
    return path


def _is_key(problem: dict) -> bool:
    return problem["loc"][-1:] == ("[key]",)


def _expectation(path: tuple, problem: dict, content: Any, schema: dict) -> str:
    if problem["type"] in ("extra_forbidden", "invalid_key"):
        allowed = [key for place in _schemas(schema, path[:-1], content) for key in place.get("properties", {})]
        return f"unknown key.{nearest(path[-1], allowed)} Allowed here: {', '.join(allowed)}"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    if problem["type"] == "finite_number":
        return "must be finite"
    if _is_key(problem):
        return f"must be {PATTERNS.get(problem.get('ctx', {}).get('pattern'), 'text')}"
    places = _schemas(schema, path, content)
    must = f"must be {' or '.join(dict.fromkeys(map(_words, places)))}"
    value = _at(content, path)
    if value is MISSING:
        about = next((place["description"].split("\n")[0] for place in places if "description" in place), "")
        missing = f"this key is missing; it {must}" + (f" ({about.rstrip('.')})" if about else "")
        # without it, no other key can be told from one that nothing has: not even itself, mistyped
        there = list(_at(content, path[:-1])) if problem["type"] == "union_tag_not_found" else []
        mistyped = difflib.get_close_matches(path[-1], list(map(str, there)), n=1)
        return f'{missing}. Is "{mistyped[0]}" meant to be it?' if mistyped else missing
    words = [word for place in places for word in (place["enum"] if "enum" in place else [place.get("const")]) if word]
    near = nearest(value, words) if isinstance(value, str) and len(places) + len(words) > 2 else ""
    return f"{must}.{near}" if near else must


def _words(schema: dict) -> str:
    """Describe in words what a schema allows."""
    if "const" in schema or "enum" in schema:
        return " or ".join(_yaml(value) for value in schema.get("enum", [schema.get("const")]))
    if "pattern" in schema:
        return PATTERNS.get(schema["pattern"], f"text that matches {schema['pattern']}")
    kind = schema.get("type", "")
    if kind == "array":
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        size = f" of {most} values" if least == most else f" of at least {least} value{'s' * (least > 1)}" if least else ""
        return f"a list{size}"
    if kind == "object":
        required = ", ".join(schema.get("required", [])) or ("at least one entry" if schema.get("minProperties") else "")
        return f"a mapping with {required}" if required else "a mapping"
    bounds = " and ".join(f"{words} {schema[key]}" for key, words in BOUNDS.items() if key in schema)
    return f"{TYPES.get(kind, 'something else')} {bounds}".rstrip()


def _yaml(value: Any) -> str:
    """Return a value much as it stands in the file."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _key(path: tuple) -> str:
    if path and isinstance(path[0], int):
        return f"entry {path[0] + 1}: {_key(path[1:])}" if path[1:] else f"entry {path[0] + 1}"
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).removeprefix(".") or "the file"


def _at(value: Any, path: tuple) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def _document_of(path: tuple, documents: Documents) -> Document:
    """Return the last document that says something there. If none does, return the one that should have said it:
    the last that names a kind (the others only change some of its values), else the first."""
    for depth in range(len(path), 0, -1):
        there = [document for document in documents if _at(document.content, path[:depth]) is not MISSING]
        if there and depth == len(path):
            return there[-1]
        if there:
            names_kind = [d for d in there if any(_at(d.content, (*path[:depth], key)) is not MISSING for key in KINDS)]
            return names_kind[-1] if names_kind else there[0]
    return documents[0] if path else documents[-1]


def _schemas(root: dict, path: tuple, content: Any) -> list[dict]:
    """Return the schemas of a place: several where it may be one of several things, and does not say which."""
    here = _alternatives(root, root)
    for depth, part in enumerate((*path, None)):
        value = _at(content, path[:depth])
        here = [schema for schema in here if _may_be(schema, value)] or here
        if part is not None:
            here = [s for schema in here if (below := _below(schema, part)) for s in _alternatives(below, root)]
    return here


def _may_be(schema: dict, value: Any) -> bool:
    constants = {key: below["const"] for key, below in schema.get("properties", {}).items() if "const" in below}
    return all(_at(value, (key,)) == constant for key, constant in constants.items())


def _below(schema: dict, part: Any) -> dict:
    if isinstance(part, int):
        return schema.get("items", {})
    named = schema.get("properties", {}).get(part)
    others = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
    return named or next((s for s in others if isinstance(s, dict)), {})


def _alternatives(schema: dict, root: dict) -> list[dict]:
    text = {"description": schema["description"]} if "description" in schema else {}
    if "$ref" in schema:
        return _alternatives(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]] | text, root)
    members = schema.get("anyOf") or schema.get("oneOf")
    return [s for member in members for s in _alternatives(member | text, root)] if members else [schema]
