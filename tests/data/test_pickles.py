"""Pickles of arrays are read without running anything: other names than those of arrays and mappings are refused."""

import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from haiku_like import dumps

from dpvision.data import pickles


def read(content: bytes) -> Any:
    return pickles.read(io.BytesIO(content))


HELD = {
    "images": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "swapped": np.arange(3, dtype=">i4"),
    "scalar": np.float32(1.5),
    "labels": [1, 2, 3],
    "inside": OrderedDict(name="x", pair=(None, True, b"raw")),
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("core", [b"numpy._core", b"numpy.core"])
def test_arrays_and_containers_come_back_from_every_protocol(protocol, core):
    content = pickle.dumps(HELD, protocol)
    found = read(content if protocol > 3 else content.replace(b"numpy._core", core))  # as before numpy 2
    for name in ("images", "columns", "swapped"):
        assert np.array_equal(found[name], HELD[name]), name
    assert found["images"].dtype == np.uint8
    assert found["scalar"] == 1.5
    assert found["labels"] == [1, 2, 3]
    assert found["inside"]["pair"][:2] == (None, True)


def test_what_python_2_wrote_is_read():
    written = b"(dp0\nS'labels'\np1\n(lp2\nI3\naI4\nas."
    assert read(written) == {"labels": [3, 4]}


class Harm:
    """A value whose pickle makes a folder when it is loaded in the ordinary way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_would_run_code_is_refused_by_name(tmp_path, protocol):
    with pytest.raises(pickle.UnpicklingError, match=r"it names \w+\.mkdir, which is no array"):
        read(pickle.dumps({"params": Harm(tmp_path / "harm")}, protocol))
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"cnumpy\nndarray\n}b.", "change a function"),  # would give the stand-in another behaviour
        (b"cnumpy\nndarray\n.", "holds a Maker"),
        (b"c_codecs\nencode\n(Vabc\nVrot13\ntR.", "encodes a text as rot13"),
        (b"cnumpy\ndtype\n(VO8\ntR.", "only numbers are read"),
        (pickle.dumps(np.array([{}], object)), "only numbers are read"),
        (pickle.dumps({1, 2}), "holds a set"),
        (b"", "damaged or no pickle"),
        (pickle.dumps(HELD)[:-40], "truncated"),
        (b"\x00hello", "invalid load key"),
    ],
)
def test_what_is_more_than_arrays_or_damaged_is_said(content, says):
    with pytest.raises(pickle.UnpicklingError, match=says):
        read(content)


def test_mappings_of_haiku_and_arrays_of_jax_are_read_without_either():
    found = read(dumps({"net/layer": {"w": np.arange(4.0)}}))
    assert found["params"]["net/layer"]["w"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert found["network_state"] == {}


def test_a_list_that_holds_itself_many_times_over_is_refused_soon(monkeypatch):
    monkeypatch.setattr(pickles, "MOST_VALUES", 1000)
    doubled = b"".join(b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(26))
    with pytest.raises(pickle.UnpicklingError, match="more than 1,000 values"):
        read(b"]q\x00" + doubled + b".")
    assert read(pickle.dumps(list(range(999)))) == list(range(999))
