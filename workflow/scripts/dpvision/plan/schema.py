"""JSON schemas of the files in config/, generated from the models so that editors complete and check them."""

from typing import Any

from pydantic import TypeAdapter

from dpvision.plan.config import Claim, Config, Dataset, Device, Name, Paper, Published, Scale

FILES: dict[str, Any] = {
    "claims": dict[Name, Claim],
    "config": Config,
    "datasets": dict[Name, Dataset],
    "devices": list[Device],
    "paper": Paper,
    "published": list[Published],
    "scale": Scale,
}


def schemas() -> dict[str, dict]:
    """File name in config/schema -> schema."""
    made = {f"{name}.json": _closed(TypeAdapter(kind).json_schema()) for name, kind in FILES.items()}
    _lay_over_papers(made["scale.json"], made["paper.json"])
    return made


def _closed(schema: Any) -> Any:
    """With nothing allowed beside keys of a pattern: pydantic refuses others, but does not say so."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    return closed | {"additionalProperties": False} if "patternProperties" in schema else closed


def _lay_over_papers(scale: dict, paper: dict) -> None:
    """What a scale lays over a paper has the paper's keys, none of them required."""
    part = _optional(paper)
    artifacts = part["properties"]["artifacts"]["patternProperties"]
    for name, artifact in artifacts.items():
        artifacts[name] = {"anyOf": [artifact, {"type": "null"}]}  # left out
    scale["$defs"] |= part.pop("$defs") | {"PaperPart": part}
    papers = scale["properties"]["papers"]
    papers["patternProperties"] = {names: {"$ref": "#/$defs/PaperPart"} for names in papers["patternProperties"]}


def _optional(schema: Any) -> Any:
    """Without a kind that says which of several things it is, a part may be of any."""
    if isinstance(schema, list):
        return [_optional(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    left = {key: value for key, value in schema.items() if key not in ("required", "discriminator")}
    return {"anyOf" if key == "oneOf" else key: _optional(value) for key, value in left.items()}
