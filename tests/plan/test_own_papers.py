"""Papers in own/: commands that name them find them, and nobody else's work has to do with them."""

import shutil
from pathlib import Path

import pytest
import yaml
from copied import copy_configuration

from dpvision import plan
from dpvision.errors import UserError
from dpvision.plan import own

DATASET = {
    "title": "Pictures of pets",
    "licence": "yours",
    "reader": "folder",
    "files": {"pictures.zip": "0" * 32},
    "classes": 2,
    "shape": [3, 32, 32],
    "train": 90,
    "test": 20,
    "validation": 9,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
}
PAPER = {
    "title": "Pets",
    "seeds": [0],
    "models": {"head": {"family": "linear", "label": "head"}},
    "recipes": {"head": {"optimizer": {"name": "sgd", "learning_rate": 1.0}, "batch": "all", "steps": 3, "clip": 0.3}},
    "cells": {"head": {"dataset": "pets_seen", "models": ["head"], "recipe": "head", "epsilons": [1.0], "delta": 1.0e-5}},
    "artifacts": {"pets_table": {"kind": "accuracy", "title": "Accuracy", "cells": ["head"]}},
}
PAPER["recipes"]["head"] |= {"schedule": {"name": "constant"}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with ScaleNorm and the own paper pets."""
    copy_configuration(tmp_path)
    write_own(tmp_path, "pets")
    return tmp_path


def write_own(project: Path, name: str) -> None:
    """Write an own paper, with its data set and features."""
    features = {"title": "Pets seen", "of": name, "weights": "mobilenet_v2", "size": 96, "shape": [1280]}
    paper = yaml.safe_load(yaml.safe_dump(PAPER).replace("pets", name))
    files = {
        "datasets": {name: DATASET},
        "features": {f"{name}_seen": features},
        "folders": {name: "/pictures"},
        "paper": paper,
    }
    for file, content in files.items():
        (project / own.FOLDER / name).mkdir(parents=True, exist_ok=True)
        (project / own.FOLDER / name / f"{file}.yaml").write_text(yaml.safe_dump(content))


def planned(project: Path, *words: str, **settings: object) -> plan.Plan:
    """Return the plan of a command with these words."""
    shipped = {"papers": ["scalenorm"]} | settings
    return plan.load(shipped | own.settings_for(own.own_papers_in(words, project)), project)


@pytest.mark.parametrize("word", ["pets", "pets_table", "results/own/tables/pets_table.md"])
def test_a_command_that_names_an_own_paper_plans_it(project, word):
    of_pets = planned(project, word, "--cores", "all")
    assert (of_pets.scale, of_pets.results, list(of_pets.artifacts)) == ("own", "results/own", ["pets_table"])
    assert of_pets.folders == {"pets": "/pictures"}
    assert of_pets.own == {"pets"}


def test_other_commands_know_nothing_of_own_papers(project):
    before = planned(project)
    shutil.rmtree(project / own.FOLDER)
    assert planned(project) == before
    assert before.own == set()
    assert "pets" not in before.sources


def test_an_own_paper_that_is_listed_is_built_with_the_others(project):
    both = planned(project, papers=["scalenorm", "pets"])
    assert {*both.papers} == {"scalenorm", "pets"}
    assert both.own == {"pets"}


def test_an_own_paper_without_a_file_stops_no_other(project):
    write_own(project, "cats")
    (project / "own/pets/features.yaml").unlink()
    assert list(planned(project, "cats").papers) == ["cats"]
    assert list(planned(project).papers) == ["scalenorm"]
    with pytest.raises(UserError, match=r"own/pets/features\.yaml.*missing.*try PICTURES --name pets.*try --remove pets"):
        planned(project, "pets")


def test_own_names_are_no_shipped_ones(project):
    entries = project / "own/pets/datasets.yaml"
    entries.write_text(entries.read_text().replace("pets:", "cifar10:"))
    with pytest.raises(UserError, match=r"own/pets/datasets\.yaml: cifar10.*config/datasets\.yaml has"):
        planned(project, "pets")
    write_own(project, "scalenorm")
    with pytest.raises(UserError, match=r"own/scalenorm: config/papers has .* Rename"):
        planned(project, "scalenorm")


def test_the_scale_of_own_papers_says_how_to_get_one(project):
    shutil.rmtree(project / own.FOLDER)
    with pytest.raises(UserError, match="dpvision try"):
        planned(project, scale="own")
