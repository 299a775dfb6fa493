"""JSON schemas of the files in config/, generated from the models so that editors complete and check them."""

from typing import Any

from pydantic import TypeAdapter

from dpvision.plan.config import Config, Dataset, Paper, Published, Scale

FILES: dict[str, Any] = {
    "config": Config,
    "datasets": dict[str, Dataset],
    "paper": Paper,
    "published": list[Published],
    "scale": Scale,
}


def schemas() -> dict[str, dict]:
    """File name in config/schema -> schema."""
    made = {f"{name}.json": TypeAdapter(kind).json_schema() for name, kind in FILES.items()}
    _lay_over_papers(made["scale.json"], made["paper.json"])
    return made


def _lay_over_papers(scale: dict, paper: dict) -> None:
    """What a scale lays over a paper has the paper's keys, none of them required."""
    scale["$defs"] |= {name: _optional(schema) for name, schema in paper["$defs"].items()}
    scale["$defs"]["PaperPart"] = _optional({key: value for key, value in paper.items() if key != "$defs"})
    scale["properties"]["papers"]["additionalProperties"] = {"$ref": "#/$defs/PaperPart"}


def _optional(schema: dict) -> dict:
    return {key: value for key, value in schema.items() if key != "required"}
