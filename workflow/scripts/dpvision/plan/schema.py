"""JSON schemas of the files in config/, generated from the models so that editors complete and check them."""

from typing import Any

from pydantic import TypeAdapter

from dpvision.config.base import Name
from dpvision.config.claims import Claim
from dpvision.config.datasets import Dataset
from dpvision.config.papers import Paper
from dpvision.config.published import Published
from dpvision.config.scales import Scale
from dpvision.config.settings import Config, Device
from dpvision.config.weights import Features, Weights
from dpvision.plan.resources import OTHERS
from dpvision.plan.stages import STAGES

FILES: dict[str, Any] = {
    "claims": dict[Name, Claim],
    "config": Config,
    "datasets": dict[Name, Dataset],
    "features": dict[Name, Features],
    "devices": list[Device],
    "paper": Paper,
    "published": list[Published],
    "scale": Scale,
    "weights": dict[Name, Weights],
}


def schemas() -> dict[str, dict]:
    """Return the schemas by their file's name in config/schema."""
    made = {f"{name}.json": _closed(TypeAdapter(kind).json_schema()) for name, kind in FILES.items()}
    jobs = [*OTHERS, *(name for name, stage in STAGES.items() if stage.cost)]
    made["scale.json"]["properties"]["resources"]["propertyNames"] = {"enum": jobs}
    made["overlay.json"] = _overlay(made["paper.json"])
    return dict(sorted(made.items()))


def _closed(schema: Any) -> Any:
    """Return a schema with nothing allowed beside keys of a pattern: pydantic refuses others, but does not say so."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    return closed | {"additionalProperties": False} if "patternProperties" in schema else closed


def _overlay(paper: dict) -> dict:
    """Return the schema of what a scale lays over a paper: the paper's keys, none of them required."""
    part = _optional(paper)
    artifacts = part["properties"]["artifacts"]["patternProperties"]
    for name, artifact in artifacts.items():
        artifacts[name] = {"anyOf": [artifact, {"type": "null"}]}  # left out
    return part | {"description": "What differs at a scale: the same keys and names, laid over the paper's."}


def _optional(schema: Any) -> Any:
    """Return a schema with nothing required; without a kind that says which of several things it is, a part may be of any."""
    if isinstance(schema, list):
        return [_optional(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    left = {key: value for key, value in schema.items() if key not in ("required", "discriminator")}
    return {"anyOf" if key == "oneOf" else key: _optional(value) for key, value in left.items()}
