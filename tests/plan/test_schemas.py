"""Editors complete and check the configuration by schemas that are generated from the models."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dpvision import plan
from dpvision.plan.reading import read_yaml
from dpvision.plan.reference import SECTIONS, reference
from dpvision.plan.schema import schemas

FOLDER = plan.ROOT / "config"
FILES = sorted(file.relative_to(plan.ROOT).as_posix() for file in FOLDER.rglob("*.yaml"))


def schema_of(file: str) -> dict[str, Any]:
    """Return the schema that the file's first line names."""
    path = plan.ROOT / file
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    return json.loads((path.parent / first.split("=")[1]).read_text(encoding="utf-8"))


def errors(content: Any, schema: dict[str, Any]) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(content)]


def properties(schema: Any, root: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every property of a schema and of its definitions, with the text of what it refers to."""
    for key, below in schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ():
        if key == "properties":
            for name, one in below.items():
                referred = root["$defs"][one["$ref"].rsplit("/", 1)[-1]] if "$ref" in one else {}
                yield f"{path}/{name}", referred | one
        yield from properties(below, root, f"{path}/{key}")


@pytest.mark.parametrize("name", schemas())
def test_the_schemas_are_those_of_the_models(name):
    there = json.loads((FOLDER / "schema" / name).read_text(encoding="utf-8"))
    assert there == schemas()[name], f"config/schema/{name} is not what the models say: run make schema"


def test_the_page_of_the_configuration_is_that_of_the_models():
    there = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert there == reference(schemas()), "config/README.md is not what the models say: run make schema"


def test_the_page_has_every_file_and_every_key():
    assert set(SECTIONS.values()) == schemas().keys() - {"overlay.json"}
    page = reference(schemas())
    for schema in (schemas()[name] for name in SECTIONS.values()):
        for path, one in properties(schema, schema):
            assert f"| `{path.rsplit('/', 1)[-1]}` |" in page, path
            assert " ".join(one["description"].split()).replace("|", r"\|") in page, path


def test_every_link_of_the_page_leads_to_one_of_its_sections():
    page = reference(schemas())
    sections = {head.lower().replace(" ", "-").replace(":", "") for head in re.findall(r"^### (.+)$", page, re.M)}
    assert set(re.findall(r"\]\(#(.+?)\)", page)) <= sections


def test_no_schema_is_left_over():
    assert {file.name for file in (FOLDER / "schema").iterdir()} == set(schemas()), "run make schema, delete what is left over"


@pytest.mark.parametrize("name", schemas())
def test_every_schema_is_a_valid_json_schema(name):
    jsonschema.Draft202012Validator.check_schema(schemas()[name])


@pytest.mark.parametrize("name", schemas())
def test_every_key_is_described(name):
    schema = schemas()[name]
    found = dict(properties(schema, schema))
    assert len(found) > 2
    assert [path for path, one in found.items() if not one.get("description")] == []


@pytest.mark.parametrize("file", FILES)
def test_every_file_holds_by_the_schema_that_it_names(file):
    assert errors(read_yaml(plan.ROOT, file).content, schema_of(file)) == []


def overlay(part: dict[str, Any]) -> list[str]:
    return errors(part, schemas()["overlay.json"])


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"seeds": [1]},
        {"models": {"resnet9": {"width": 0.125}}},
        {"models": {"resnet9": {"groups": {"search": "groups"}}}},
        {"models": {"wrn16": {"depth": 16}}},
        {"recipes": {"resnet9": {"optimizer": {"learning_rate": 0.1}, "schedule": {"patience": 5}}}},
        {"recipes": {"resnet9": {"schedule": {"name": "constant"}}}},
        {"searches": {"groups": {"trials": 2}}},
        {"cells": {"cifar10": {"dataset": "digits"}}},
        {"artifacts": {"table1": {"statistic": "best"}}},
        {"artifacts": {"table1": {"statistic": "mean", "spread": "standard_error"}}},
        {"hessian": {"examples": 10}, "activations": {"bins": 10}},
    ],
    ids=str,
)
def test_what_a_scale_lays_over_a_paper_needs_no_other_key(part):
    assert overlay(part) == []


@pytest.mark.parametrize(
    "part",
    [
        {"seed": [1]},
        {"models": {"resnet9": {"widht": 0.125}}},
        {"models": {"wrn16": {"depht": 16}}},
        {"models": {"wrn16": {"depth": 16, "order": "norm-activation"}}},
        {"models": {"ResNet9": {}}},
        {"recipes": {"resnet9": {"optimizer": {"learning_rate": "high"}}}},
        {"recipes": {"resnet9": {"schedule": {"patiense": 5}}}},
        {"cells": {"cifar10": {"epsilons": [0]}}},
        {"cells": {"cifar10": {"epsilons": [1, 1]}}},
        {"artifacts": {"table1": {"statistic": "middle"}}},
        {"artifacts": {"table1": {"spread": "variance"}}},
    ],
    ids=str,
)
def test_what_a_scale_lays_over_a_paper_has_the_paper_s_keys_and_types(part):
    assert len(overlay(part)) == 1


def test_every_key_of_a_paper_is_one_of_a_scale_s():
    part, paper = schemas()["overlay.json"], schemas()["paper.json"]
    assert part["properties"].keys() == paper["properties"].keys()


def test_schemas_lie_where_the_files_look_for_them():
    papers = {folder.name for folder in (FOLDER / "papers").iterdir()}
    parts = {folder.parent.name for name in papers for folder in (FOLDER / "papers" / name).glob("*/paper.yaml")}
    assert {Path(file).parent.name for file in FILES} == {"config", "scales", *papers, *parts}
