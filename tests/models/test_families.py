"""A family is found by its folder; its light part is light, and its name is all that a spec says of its code."""

import subprocess
import sys

import pytest

from dpvision.code import code_digest
from dpvision.errors import UserError
from dpvision.models import build
from dpvision.models.found import FAMILIES
from dpvision.plan.specs import network_module


def test_a_family_that_is_not_there_is_answered_with_those_that_there_are():
    with pytest.raises(UserError) as raised:
        build({"family": "resnet101"}, 10, 3)
    says = "no family of networks is called 'resnet101'; there are: backbone, lenet, linear, "
    says += "resnet50, resnet9, smoothnet, torchvision, wrn. "
    assert says in str(raised.value)


def test_importing_the_networks_imports_no_family_and_no_torch():
    say = "import dpvision.models, sys; print([m for m in sys.modules if m == 'torch' or m.startswith('dpvision.models.')])"
    assert subprocess.run([sys.executable, "-c", say], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_runs_code_is_that_of_its_family(family):
    module = network_module({"model": {"family": family}})
    assert module == f"dpvision.models.{family}.network"
    assert code_digest("dpvision.training.run", module) != code_digest("dpvision.training.run")
