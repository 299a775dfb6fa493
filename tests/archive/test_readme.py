"""Somebody who has an archive alone reads in its README what it is, how to verify it, and how to make it again."""

import csv
import json
import shutil
from pathlib import Path

from dpvision.archive.contents import MANIFEST, about
from dpvision.archive.readme import readme
from dpvision.files import read_json, write_json
from dpvision.source import source


def test_readme_says_what_there_is_how_to_check_it_and_what_is_missing(made, unpacked):
    text = (unpacked / "README.md").read_text()
    for name in made.plan.artifacts:
        assert f"| `{name}` |" in text
    with open(unpacked / made.plan.targets("claims")[0], newline="") as file:
        claims = sum(row["row"] == "claim" for row in csv.DictReader(file))
    for words in (
        f"judges {claims} sentences",
        "python -m dpvision verify",
        "make reproduce ARCHIVE=",
        read_json(unpacked / "archive.json")["commit"],
        "the data set Optical recognition of handwritten digits",
        "The source is as committed",
    ):
        assert words in text
    assert "$" not in text
    assert "  README.md\n" in (unpacked / MANIFEST).read_text()
    crate = json.loads((unpacked / "ro-crate-metadata.json").read_text())
    assert "README.md" in {entity["@id"] for entity in crate["@graph"]}


def test_times_and_machines_are_those_of_the_records(made, tmp_path):
    root = Path(shutil.copytree(made.root / "results", tmp_path / "results")).parent
    run = root / made.plan.folder(("train", made.plan.runs_of("table1")[0])) / "provenance.json"
    provenance = read_json(run)
    provenance["sessions"][0]["seconds"] = 7200 * 100
    provenance["machine"]["gpu"] = "A card"
    write_json(run, provenance)
    text = readme(made.plan, root, about(made.plan, source(made.project))).decode()
    (row,) = [line for line in text.splitlines() if line.startswith("| `table1` |")]
    assert row.endswith("| 8.3 days |")
    assert "A card" in text
