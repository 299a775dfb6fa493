"""The benchmark's methods compute the same sum, its arithmetic and its table are right. No time is asked for."""

import copy
import json
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dp_step
from dp_step import FULL, METHODS, QUICK, REFERENCES, Case, rows_of, table
from dpvision.models import build
from dpvision.models.resnet9.options import Options as ResNet9
from dpvision.models.wrn.options import Options as WideResNet
from dpvision.privacy.clipping import OpacusHooks

WRN = WideResNet(family="wrn", label="tiny WRN", depth=10, width=1)
KEYS = {"model", "views", "batch", "precision", "method", "ms_per_image", "ms_per_image_best"}
KEYS |= {"ratio_to_plain", "ratio_to_hooks", "peak_mb", "note"}

TIMES = {
    "plain": [1.0, 2.0, 1.0],
    "plain, channels last": [2.0, 1.0, 4.0],  # the faster of both: always 1 second
    "opacus hooks": [6.0, 12.0],  # in the first two rounds alone
    "vmap": [9.0, 9.0],
    "ours": [1.5, 2.0, 1.0],
}
NOTES = {"opacus ghost": "cannot"}


@pytest.fixture(autouse=True)
def one_stream_of_random_numbers():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


@pytest.fixture
def tiny(narrow) -> dict[str, nn.Module]:
    return {"resnet9": narrow(channels=3), "wrn": build(WRN.model_dump(), 3, 3).double().train()}


def vector(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


def made_up_rows(**changes: Any) -> dict[str, dict[str, Any]]:
    case = Case("resnet9", 1, 10)
    rows = rows_of(case, TIMES | changes, dict.fromkeys(TIMES, 12.34), NOTES)
    return {row["method"]: row for row in rows}


def made_up_result(rows: list[dict[str, Any]]) -> dict[str, Any]:
    machine = {"device": "a processor", "threads": 2, "torch": "2.0"}
    return {"rows": rows, "machine": machine, "rounds": 3, "reference_rounds": {"vmap": 2}, "quick": True, "choices": {}}


# --- methods ---


@pytest.mark.parametrize("network", ["resnet9", "wrn"])
@pytest.mark.parametrize("views", [1, 3])
@pytest.mark.parametrize("method", METHODS)
def test_a_method_computes_what_opacus_hooks_compute(method, views, network, tiny):
    images, labels = torch.randn(5, *([views] if views > 1 else []), 3, 8, 8, dtype=torch.float64), torch.randint(3, (5,))
    images *= torch.tensor([0.001, 0.1, 1.0, 3.0, 30.0]).view(-1, *[1] * (images.dim() - 1))
    hooks = OpacusHooks(copy.deepcopy(tiny[network]), 1.0)
    clip = hooks(images, labels).norms.median().item()
    way = METHODS[method](copy.deepcopy(tiny[network]), clip)
    if method == "opacus ghost" and views > 1:
        with pytest.raises(NotImplementedError, match="every view by itself"):
            way(images, labels)
        return
    hooks.clip = 1e9 if method.startswith("plain") else clip
    expected, found = hooks(images, labels), way(images, labels)
    torch.testing.assert_close(vector(found.sums), vector(expected.sums), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.losses, expected.losses)
    if found.norms is not None:
        torch.testing.assert_close(found.norms.double(), expected.norms)


def test_a_method_that_is_wrong_is_not_timed(monkeypatch):
    monkeypatch.setitem(dp_step.MODELS, "resnet9", ResNet9(family="resnet9", label="tiny", width=1 / 16, groups=4))

    class Wrong(OpacusHooks):
        def __call__(self, images: Tensor, labels: Tensor) -> Any:
            found = super().__call__(images, labels)
            found.sums[0] *= 1.1
            return found

    monkeypatch.setitem(METHODS, "vmap", Wrong)
    times, notes, _ = dp_step.seconds(Case("resnet9", 2, 3), dict.fromkeys(METHODS, 3) | {"opacus hooks": 2})
    assert {method: len(rounds) for method, rounds in times.items()} == {
        "plain": 3,
        "plain, channels last": 3,
        "opacus hooks": 2,
        "ours": 3,
    }
    assert notes["vmap"].startswith("wrong: ") and set(notes) == {"vmap", "opacus ghost"}


def test_channels_last_is_so_in_memory():
    seen: list[Tensor] = []

    class Watched(nn.Linear):
        def forward(self, images: Tensor) -> Tensor:
            seen.append(images)
            return super().forward(images.flatten(1))

    for shape in [(2, 3, 4, 4), (2, 5, 3, 4, 4)]:
        dp_step.ChannelsLast(Watched(48, 10))(torch.randn(shape), torch.zeros(2, dtype=torch.long))
        assert seen.pop().is_contiguous(memory_format=torch.channels_last)


# --- cases ---


def test_the_quick_cases_are_a_part_of_the_full_ones():
    assert set(QUICK) < set(FULL)
    assert len(set(FULL)) == len(FULL)


def test_references_run_in_float32_alone():
    assert Case("resnet9", 1, 64).methods() == list(METHODS)
    assert not set(REFERENCES) & set(Case("resnet9", 1, 64, "bfloat16").methods())


def test_every_method_gets_the_same_weights_and_images():
    case = Case("resnet9", 2, 3)
    assert all(torch.equal(*pair) for pair in zip(case.data(), case.data(), strict=True))
    ways = [METHODS[method](case.network(), 1.0) for method in ("opacus hooks", "vmap")]
    assert dp_step.distance(*[way(*case.data()).sums for way in ways]) < dp_step.TOLERANCE


# --- memory ---


@pytest.mark.skipif(sys.platform != "linux" or torch.cuda.is_available(), reason="measures a processor's, on Linux")
def test_the_peak_is_that_of_the_call():
    torch.zeros(2**25).sum()  # 128 MB, before
    assert 60 < dp_step.peak_of(lambda: torch.ones(2**24).sum()) < 80  # 64, but the system counts pages in bundles


# --- rows and table ---


def test_a_row_for_every_method_with_all_keys():
    rows = made_up_rows()
    assert list(rows) == list(METHODS)
    assert all(set(row) == KEYS for row in rows.values())
    json.dumps(list(rows.values()), allow_nan=False)


def test_times_are_of_one_image():
    row = made_up_rows()["ours"]
    assert (row["ms_per_image"], row["ms_per_image_best"]) == (150, 100)
    case = Case("resnet9", 4, 10)
    assert rows_of(case, TIMES, {}, {})[-1]["ms_per_image"] == 37.5


def test_ratios_are_medians_of_the_ratios_within_a_round():
    rows = made_up_rows()
    assert rows["ours"]["ratio_to_plain"] == 1.5  # of 1.5, 2 and 1, to the faster plain call of each round
    assert rows["plain"]["ratio_to_plain"] == 1.0
    assert rows["plain, channels last"]["ratio_to_plain"] == 2.0
    assert rows["opacus hooks"]["ratio_to_plain"] == 9.0  # of 6 and 12
    assert rows["ours"]["ratio_to_hooks"] == 5.0  # of 4 and 6; the third round had no hooks
    assert rows["opacus hooks"]["ratio_to_hooks"] == 1.0


def test_what_was_not_measured_is_null():
    row = made_up_rows()["opacus ghost"]
    assert row["note"] == "cannot"
    measured = ("ms_per_image", "ms_per_image_best", "ratio_to_plain", "ratio_to_hooks", "peak_mb")
    assert [row[key] for key in measured] == [None] * 5
    rows = rows_of(Case("resnet9", 1, 10, "bfloat16"), {m: TIMES[m] for m in ("plain", "plain, channels last", "ours")}, {}, {})
    assert [row["ratio_to_hooks"] for row in rows] == [None] * 3


def test_the_table_shows_every_row():
    lines = table(made_up_result(list(made_up_rows().values()))).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert {len(row) for row in rows} == {8}
    assert [row[3] for row in rows[2:]] == list(METHODS)
    assert rows[-1] == ["ResNet-9", "1 x 10", "float32", "ours", "150.000", "1.50", "5.00", "12"]
    assert rows[5][4:] == ["–"] * 4
    assert "ResNet-9, 1 x 10, opacus ghost: cannot." in lines
    assert "median of 3 rounds (vmap: 2)" in lines[0] and "a processor, 2 threads, torch 2.0." in lines[0]


def test_a_run_writes_both_files(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(dp_step.MODELS, "wrn16-4", WRN)
    monkeypatch.setattr(dp_step, "QUICK", [Case("wrn16-4", 1, 3), Case("wrn16-4", 2, 2, "bfloat16")])
    monkeypatch.setattr(dp_step, "OUT", tmp_path)
    monkeypatch.setattr(dp_step, "in_a_process_of_its_own", lambda function, *arguments: 1.0)
    monkeypatch.setattr(sys, "argv", ["dp_step.py", "quick"])
    dp_step.main()
    result = json.loads((tmp_path / "dp_step.json").read_text())
    assert len(result["rows"]) == len(METHODS) + 3 and result["quick"]
    assert not any(row["note"] for row in result["rows"])
    assert set(result["choices"]) == {"wrn16-4/1/3/float32", "wrn16-4/2/2/bfloat16"}
    shown = capsys.readouterr()
    assert shown.out == (tmp_path / "dp_step.md").read_text() + "\n"
    assert "2 of 2: wrn16-4/2/2/bfloat16" in shown.err
