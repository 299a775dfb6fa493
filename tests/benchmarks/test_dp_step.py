"""The benchmark's methods compute the same sum, its arithmetic and its table are right. No time is asked for."""

import copy
import json
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dp_step
from dp_step import FULL, METHODS, OUR_PLAIN, QUICK, REFERENCES, Case, Measured, OurPlain, columns, rows_of, table
from dpvision.models import build
from dpvision.models.resnet9.options import Options as ResNet9
from dpvision.models.wrn.options import Options as WideResNet
from dpvision.privacy.clipping import OpacusHooks, Plain
from dpvision.privacy.fast import UNTIMED
from networks import NETWORKS, Network

WRN = WideResNet(family="wrn", label="tiny WRN", depth=10, width=1)
TINY = Network("tiny", lambda: build(ResNet9(family="resnet9", label="tiny", width=1 / 16, groups=4).model_dump(), 10, 3))
KEYS = {"network", "shape", "threads", "views", "batch", "precision", "method", "ms_per_image", "ms_per_image_best"}
KEYS |= {"ratio_to_plain", "ratio_to_quickest_plain", "ratio_to_hooks", "peak_mb", "ratio_of_peaks"}
KEYS |= {"deciding_seconds", "deciding_plain_steps", "note"}

TIMES = {
    "plain": [1.0, 2.0, 1.0],
    "plain, channels last": [2.0, 1.0, 4.0],  # the faster of both: always 1 second
    "opacus hooks": [6.0, 12.0],  # in the first two rounds alone
    "vmap": [9.0, 9.0],
    "ours": [1.5, 2.0, 1.0],
    "plain, our tricks": [0.5, 2.0, 0.5],  # quicker in two rounds
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
    case = Case("resnet9", 1, 64)
    peaks = {"plain": 24.68, "plain, channels last": 30.0} | dict.fromkeys([m for m in TIMES if "plain" not in m], 12.34)
    rows = rows_of(case, Measured(TIMES | changes, NOTES, {}, 40.0), peaks)
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
    monkeypatch.setitem(NETWORKS, "resnet9", TINY)

    class Wrong(OpacusHooks):
        def __call__(self, images: Tensor, labels: Tensor) -> Any:
            found = super().__call__(images, labels)
            torch._foreach_mul_(found.sums, 1.1)
            return found

    monkeypatch.setitem(METHODS, "vmap", Wrong)
    monkeypatch.setattr(dp_step, "SHORT", 0)
    rounds = dict.fromkeys([*METHODS, OUR_PLAIN], 3) | {"opacus hooks": 2}
    measured = dp_step.measure(Case("resnet9", 1, 64), rounds)
    assert {method: len(times) for method, times in measured.times.items()} == {
        "plain": 3,
        "plain, channels last": 3,
        "opacus hooks": 2,
        "opacus ghost": 3,
        "plain, our tricks": 3,
        "ours": 3,
    }
    assert measured.notes["vmap"].startswith("wrong: ") and set(measured.notes) == {"vmap"}


@pytest.mark.parametrize("views", [1, 3])
def test_plain_with_our_tricks_computes_the_plain_gradient(views, tiny):
    images, labels = torch.randn(7, *([views] if views > 1 else []), 3, 8, 8, dtype=torch.float64), torch.randint(3, (7,))
    choices = UNTIMED | {"workers": 2, "images": 2 * views, "memory_format": "channels last", "mish": "pieces"}
    expected, found = (way(images, labels).sums for way in (Plain(tiny["resnet9"]), OurPlain(tiny["resnet9"], choices)))
    torch.testing.assert_close(vector(found), vector(expected), rtol=1e-9, atol=1e-9)


def test_what_another_method_refuses_is_a_note_and_what_ours_refuses_an_error(monkeypatch):
    def refuses(network: nn.Module, clip: float) -> Any:
        raise NotImplementedError("no such layer\nand more")

    monkeypatch.setitem(NETWORKS, "resnet9", TINY)
    monkeypatch.setattr(dp_step, "SHORT", 0)
    monkeypatch.setitem(METHODS, "vmap", refuses)
    rounds = dict.fromkeys([*METHODS, OUR_PLAIN], 1)
    measured = dp_step.measure(Case("resnet9", 1, 64), rounds)
    assert measured.notes == {"vmap": "no such layer"}
    assert {"plain", "ours", OUR_PLAIN} <= set(measured.times)
    monkeypatch.setitem(METHODS, "ours", refuses)
    with pytest.raises(NotImplementedError):
        dp_step.measure(Case("resnet9", 1, 64), rounds)


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
    assert Case("resnet18", 1, 64).methods() == ["plain", "plain, channels last", "opacus hooks", "ours"]
    assert Case("head", 1, 64).methods() == ["plain", "opacus hooks", "ours"]
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
    assert list(rows) == [*METHODS, OUR_PLAIN]
    assert all(set(row) == KEYS for row in rows.values())
    json.dumps(list(rows.values()), allow_nan=False)


def test_times_are_of_one_image():
    row = made_up_rows()["ours"]
    assert (row["ms_per_image"], row["ms_per_image_best"]) == (23.4375, 15.625)
    case = Case("resnet9", 4, 10)
    assert rows_of(case, Measured(TIMES, {}, {}, 1.0), {})[-2]["ms_per_image"] == 37.5


def test_ratios_are_medians_of_the_ratios_within_a_round():
    rows = made_up_rows()
    assert rows["ours"]["ratio_to_plain"] == 1.5  # of 1.5, 2 and 1, to the faster plain call of each round
    assert rows["ours"]["ratio_to_quickest_plain"] == 2.0  # of 3, 2 and 2
    assert rows["ours"]["ratio_of_peaks"] == 0.5
    assert (rows["ours"]["deciding_seconds"], rows["ours"]["deciding_plain_steps"]) == (40.0, 40.0)
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
    measured = Measured({m: TIMES[m] for m in ("plain", "plain, channels last", "ours")}, {}, {}, 1.0)
    rows = rows_of(Case("resnet9", 1, 10, "bfloat16"), measured, {})
    assert [row["ratio_to_hooks"] for row in rows] == [None] * 4


def test_the_tables_show_every_case_and_every_method():
    lines = table(made_up_result(list(made_up_rows().values()))).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    name = "ResNet-9, 3 x 32 x 32, 1 x 64, float32"
    assert rows[2] == [name, "1.50", "2.00", "9.00", "0.50", "40.0 s, 40 steps"]
    assert [row[1] for row in rows[5:]] == [*METHODS, OUR_PLAIN]
    assert rows[-2] == [name, "ours", "23.44", "1.50", "5.00", "12"]
    assert rows[8][2:] == ["–"] * 4
    assert f"{name}, opacus ghost: cannot." in lines
    assert "median of 3 rounds (vmap: 2)" in lines[0] and "a processor, 2 threads, torch 2.0." in lines[0]


def test_results_of_several_machines_stand_side_by_side(tmp_path):
    for name, device in (("a.json", "a processor"), ("b.json", "another")):
        result = made_up_result(list(made_up_rows().values()))
        result["machine"]["device"] = device
        (tmp_path / name).write_text(json.dumps(result))
    lines = columns([tmp_path / "a.json", tmp_path / "b.json"]).splitlines()
    assert lines[0] == "| ratio to plain | a processor, torch 2.0 | another, torch 2.0 |"
    assert lines[2:] == ["| ResNet-9, 3 x 32 x 32, 1 x 64, float32 | 1.50 | 1.50 |"]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [["quick"], ["only", "wrn16-4", "--processor-time"]], ids=" ".join)
def test_a_run_writes_its_files(tmp_path, monkeypatch, capsys, asked):
    monkeypatch.setitem(NETWORKS, "wrn16-4", Network("tiny WRN", lambda: build(WRN.model_dump(), 10, 3), threads=1))
    cases = [Case("wrn16-4", 1, 3), Case("wrn16-4", 2, 2, "bfloat16")]
    monkeypatch.setattr(dp_step, "QUICK", cases)
    monkeypatch.setattr(dp_step, "FULL", [Case("resnet9", 1, 64), *cases])
    monkeypatch.setattr(dp_step, "OUT", tmp_path)
    monkeypatch.setattr(dp_step, "SHORT", 0)
    monkeypatch.setattr(dp_step, "in_a_process_of_its_own", lambda function, *arguments: 1.0)
    monkeypatch.setattr(sys, "argv", ["dp_step.py", *asked])
    dp_step.main()
    result = json.loads((tmp_path / "dp_step.json").read_text())
    assert len(result["rows"]) == 5 + 4 and result["quick"] == (asked == ["quick"])
    assert not any(row["note"] for row in result["rows"])
    assert set(result["choices"]) == {"wrn16-4/1/3/float32", "wrn16-4/2/2/bfloat16"}
    shown = capsys.readouterr()
    assert shown.out == (tmp_path / "dp_step.md").read_text() + "\n"
    assert "2 of 2: wrn16-4/2/2/bfloat16" in shown.err
    assert "<svg" in (tmp_path / "dp_step.svg").read_text()
