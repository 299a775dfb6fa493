"""A table made again elsewhere may differ in the last digits of a number, and in nothing else."""

from types import SimpleNamespace

import pytest

from dpvision.verify.artifacts import _same


@pytest.mark.parametrize(
    ("there", "holds"),
    [
        ("epsilon,model\n6.880752389135857,a\n", True),
        ("epsilon,model\n6.880752389135855,a\n", True),
        ("epsilon,model\n6.8807524,a\n", False),
        ("epsilon,model\n6.880752389135857,b\n", False),
        ("epsilon,model\n,a\n", False),
        ("epsilon,model\n6.880752389135857,a\n\n", False),
    ],
)
def test_only_the_last_digits_of_a_number_may_differ(tmp_path, there, holds):
    for name, text in (("again.csv", "epsilon,model\n6.880752389135857,a\n"), ("there.csv", there)):
        (tmp_path / name).write_text(text)
    place = SimpleNamespace(name=lambda file: file.name)
    assert (not list(_same(place, tmp_path / "again.csv", tmp_path / "there.csv"))) == holds
