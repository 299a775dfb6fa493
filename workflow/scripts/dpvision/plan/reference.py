"""config/README.md: every key of the configuration with its description, as a page that people read."""

import json
from collections.abc import Iterator
from typing import Any

from dpvision.config.base import NAME

SECTIONS = {  # sections of the page, in this order: a file below config/, and the schema that it follows
    "config.yaml": "config.json",
    "papers/NAME/paper.yaml": "paper.json",
    "papers/NAME/published.yaml": "published.json",
    "papers/NAME/claims.yaml": "claims.json",
    "datasets.yaml": "datasets.json",
    "weights.yaml": "weights.json",
    "features.yaml": "features.json",
    "scales/NAME.yaml": "scale.json",
    "devices.yaml": "devices.json",
}
BEGINNING = """# Configuration

Every file in this folder, every key, its default and what it means. `make schema` makes this page from the models in
`workflow/scripts/dpvision/config/`: do not edit it here. Editors that know YAML schemas show the same while you type. How to
change something, and what runs again: [docs/configuration.md](../docs/configuration.md).

A file `papers/NAME/SCALE.yaml` has the keys of `paper.yaml`, none of them required. It is laid over `paper.yaml` at that scale:
lists are replaced whole, and an artifact that is `null` is left out. A folder in a paper's folder is a part of the paper: it
has files of the same names, and of `paper.yaml` the keys models, recipes, searches, cells and artifacts.
"""
BOUNDS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
TYPES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true` or `false`", "null": "`null`"}


def reference(schemas: dict[str, dict]) -> str:
    """Return the page of these schemas, which are named like their files in config/schema."""
    return "\n".join([BEGINNING, *(line for file, name in SECTIONS.items() for line in _section(file, schemas[name]))])


def _section(file: str, schema: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a file: its own keys, then those of every mapping in it."""
    yield f"## `{file}`\n"
    if "properties" in schema:
        yield from _keys(schema, schema)
    else:
        below = schema.get("items") or next(iter(schema["patternProperties"].values()))
        many = "A list; each entry is" if "items" in schema else "Entries by their names; each is"
        yield f"{many} {_value(below, schema)}.\n"
    for part in schema.get("$defs", {}).values():
        yield f"### {_title(part)}\n"
        yield from _keys(part, schema)


def _keys(part: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    """Yield the description of a mapping, and a table of its keys."""
    yield f"{part.get('description', '')}\n".replace("*", r"\*")
    yield "| key | value | default | what it is |\n| --- | --- | --- | --- |"
    for key, one in part["properties"].items():
        cells = (f"`{key}`", _value(one, schema), _default(one), one.get("description", _referred(one, schema)))
        yield "| " + " | ".join(" ".join(text.split()).replace("|", r"\|") for text in cells) + " |"
    yield ""


def _default(one: dict[str, Any]) -> str:
    """Say what a key has where the file leaves it out."""
    if "default" not in one:
        return "required"
    default = one["default"]
    return "its own defaults" if default and "$ref" in one else f"`{json.dumps(default, ensure_ascii=False)}`"


def _referred(one: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the description of what a key refers to; it has none of its own."""
    return schema["$defs"][one["$ref"].rsplit("/", 1)[-1]].get("description", "") if "$ref" in one else ""


def _title(part: dict[str, Any]) -> str:
    """Call a mapping as its section is called: by its class, or by the key and the value that tell it from others."""
    if part["title"] != "Options":
        return str(part["title"])
    key, value = next((key, one["const"]) for key, one in part["properties"].items() if "const" in one)
    return f"{key}: {value}"


def _value(one: dict[str, Any], schema: dict[str, Any]) -> str:
    """Say in a few words what a key may have."""
    if "$ref" in one:
        title = _title(schema["$defs"][one["$ref"].rsplit("/", 1)[-1]])
        return f"[{title}](#{title.lower().replace(' ', '-').replace(':', '')})"
    if "const" in one:
        return f"`{one['const']}`"
    if "enum" in one:
        return " or ".join(f"`{value}`" for value in one["enum"])
    if choices := one.get("anyOf") or one.get("oneOf"):
        return " or ".join(dict.fromkeys(_value(choice, schema) for choice in choices))
    if one.get("type") == "array":
        item = _value(one["items"], schema) if one.get("items") else ""
        return f"list of ({item})" if " or " in item else f"list of {item}" if item else "list"
    if one.get("type") == "object":
        below = next(iter(one.get("patternProperties", {}).values()), one.get("additionalProperties"))
        return f"mapping of names to {_value(below, schema)}" if below and below is not True else "mapping"
    if one.get("pattern") == NAME:
        return "name"
    bounds = " and ".join(f"{sign} {one[bound]}" for bound, sign in BOUNDS.items() if bound in one)
    return " ".join(filter(None, [TYPES.get(one.get("type", ""), "anything"), bounds]))
