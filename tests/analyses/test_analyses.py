"""An analysis is given a trained network with its data, and leaves its record with what made it."""

import csv

import pytest
import torch
from torch import nn

from dpvision.analyses.activations import around_addition, histograms
from dpvision.analyses.run import analyse
from dpvision.code import code_digest
from dpvision.errors import UserError
from dpvision.files import digest, read_json
from dpvision.plan.stages import ANALYSES, STAGES
from dpvision.training.run import train

SPECS = {
    "hessian": {"examples": 64, "iterations": 2, "tolerance": 1e-3, "lanczos_steps": 3, "seed": 0},
    "activations": {"examples": 32, "bins": 5},
    "by_class": {},
}


@pytest.fixture(scope="module")
def trained(digits, run_spec, tmp_path_factory):
    """Train a run of one epoch and return its record."""
    folder = tmp_path_factory.mktemp("trained")
    record = folder / "record"
    train(run_spec({"recipe.epochs": 1}), digits, [], record, folder / "checkpoint", folder / "choices", 512, 1000, 0.0)
    return record


def test_every_analysis_is_tried_here():
    assert set(SPECS) == set(ANALYSES)


@pytest.mark.parametrize("stage", SPECS)
def test_it_leaves_its_record_and_names_its_own_code_the_network_s_and_the_data(stage, trained, digits, tmp_path):
    spec = {"kind": stage, "run": "a-run"} | SPECS[stage]
    analyse(STAGES[stage].job, spec, trained, digits, tmp_path, 16, 1000)
    assert {file.name for file in tmp_path.iterdir()} == set(STAGES[stage].record)
    made = read_json(tmp_path / "provenance.json")
    job = STAGES[stage].job.split(":")[0]
    assert made["stage"].split() == [job, "dpvision.analyses.run", "dpvision.models.resnet9.network"]
    assert made["code"] == code_digest(*made["stage"].split())
    assert (made["spec"], made["data"]) == (digest(spec), read_json(trained / "provenance.json")["data"])


def test_the_physical_batch_makes_no_difference_to_a_hessian(trained, digits, tmp_path):
    spec = {"kind": "hessian", "run": "a-run"} | SPECS["hessian"]
    for size in (64, 10):
        analyse(STAGES["hessian"].job, spec, trained, digits, tmp_path / str(size), size, 1000)
    one, other = (read_json(tmp_path / size / "hessian.json") for size in ("64", "10"))
    assert one["examples"] == other["examples"] == 64
    assert one["trace"] == pytest.approx(other["trace"], rel=1e-3)


def test_histograms_are_of_every_place_with_as_many_bins_as_asked_for(trained, digits, tmp_path):
    spec = {"kind": "activations", "run": "a-run"} | SPECS["activations"]
    analyse(STAGES["activations"].job, spec, trained, digits, tmp_path, 16, 1000)
    rows = list(csv.DictReader((tmp_path / "histograms.csv").open()))
    assert [row["place"] for row in rows] == [place for place in ("V_R", "V_F", "V_A", "V_A^S") for _ in range(5)]


def test_all_but_two_thousandths_lie_in_the_bins_and_all_count_in_the_moments():
    values = torch.cat([torch.linspace(0, 1, 9_990), torch.full((10,), 100.0)])
    rows = histograms({"V_A": values}, 4)
    assert sum(row["density"] * (row["right"] - row["left"]) for row in rows) == pytest.approx(0.998, abs=1e-3)
    assert rows[0]["mean"] == pytest.approx(values.double().mean().item())
    assert rows[-1]["right"] < 2


def test_the_sum_is_of_both_paths_and_networks_of_another_kind_are_refused_by_name(narrow):
    seen = around_addition(narrow(dtype=torch.float32).eval(), torch.randn(2, 1, 8, 8))
    assert torch.allclose(seen["V_R"] + seen["V_F"], seen["V_A"])
    with pytest.raises(UserError, match="of the residual blocks of ResNet-9, not of Linear"):
        around_addition(nn.Linear(2, 2), torch.zeros(1, 2))
