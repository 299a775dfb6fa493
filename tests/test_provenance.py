"""A record says of which code it is; a changed configuration is no changed code."""

import pytest

from dpvision import provenance
from dpvision.source import Source


@pytest.mark.parametrize(
    ("changed", "dirty"),
    [
        ([], False),
        (["config/config.yaml", "config/papers/scalenorm/paper.yaml"], False),  # the spec says what came of it
        (["config/config.yaml", "workflow/scripts/train.py"], True),
        (["envs/requirements.lock"], True),
    ],
)
def test_a_tree_is_dirty_by_its_code_and_not_by_its_configuration(monkeypatch, changed, dirty):
    monkeypatch.setattr(provenance, "source", lambda: Source("c0de", "2026-11-20", [], changed))
    origin = provenance.Origin("dpvision.files")
    assert (origin.dirty, origin.commit) == (dirty, "c0de+" if dirty else "c0de")


def test_what_is_no_checkout_is_of_no_known_commit(monkeypatch):
    monkeypatch.setattr(provenance, "source", lambda: None)
    assert provenance.Origin("dpvision.files").commit is None
