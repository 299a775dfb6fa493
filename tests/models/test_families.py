"""A family is found by its folder; its light part is light, and its name is all that a spec says of its code."""

import subprocess
import sys

import pytest

from dpvision.code import code_digest
from dpvision.errors import UserError
from dpvision.models import build
from dpvision.models.catalogue import MODELS
from dpvision.models.count import count
from dpvision.models.found import FAMILIES
from dpvision.models.options import counts_of_layers
from dpvision.plan.specs import network_module


def test_a_family_that_is_not_there_is_answered_with_those_that_there_are():
    with pytest.raises(UserError) as raised:
        build({"family": "resnet101"}, 10, 3)
    assert f"no family of networks is called 'resnet101'; there are: {', '.join(sorted(FAMILIES))}. " in str(raised.value)


def test_importing_the_networks_imports_no_family_and_no_torch():
    say = "import dpvision.models, sys; print([m for m in sys.modules if m == 'torch' or m.startswith('dpvision.models.')])"
    assert subprocess.run([sys.executable, "-c", say], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_runs_code_is_that_of_its_family(family):
    module = network_module({"model": {"family": family}})
    assert module == f"dpvision.models.{family}.network"
    assert code_digest("dpvision.training.run", module) != code_digest("dpvision.training.run")


@pytest.mark.parametrize("name", ["nf_resnet14, width 1/8", "nf_resnet50", "nfnet_f0, width 1/8", "resnet50"])
@pytest.mark.parametrize("shape", [[3, 8, 8], [1, 33, 47], [3, 224, 224]], ids=str)
def test_the_layers_that_a_family_says_are_those_that_are_there(name, shape):
    model = MODELS[name].model_dump()
    found, said = count(model, shape, 7), counts_of_layers(FAMILIES[model["family"]].layers(model, shape, 7))
    assert (found.multiply_adds, found.outputs, found.largest) == (said.multiply_adds, said.outputs, said.largest)
