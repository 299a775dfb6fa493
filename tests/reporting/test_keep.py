"""Small results come together in a folder piece by piece, and what is shown there is made of the records there."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from dpvision import plan
from dpvision.errors import UserError
from dpvision.reporting.keep import keep
from dpvision.verify.verdict import verify

PROVENANCE = {"stage": "train", "code": "c", "commit": "f", "lock": "l", "sessions": [{"code": "c", "seconds": 1}]}
HISTORY = "epoch,step,epsilon,simulated_epsilon,validation_top1,test_top1\n1,10,,3,0.5,0.5\n2,20,,7,0.6,0.6\n"


@pytest.fixture(scope="module")
def planned() -> plan.Plan:
    return plan.load({"papers": ["scalenorm"], "scale": "simulate"})


def of(planned: plan.Plan, model: str, seed: int) -> str:
    """Return the name of the model's run of that seed at ε = 7.42."""
    runs = planned.runs.items()
    return next(name for name, run in runs if name.startswith(f"cifar10-{model}-eps7.42") and run["seed"] == seed)


def record(root: Path, planned: plan.Plan, run: str, top1: float) -> None:
    folder = root / planned.results / "runs" / run
    folder.mkdir(parents=True)
    test = {"test": {"top1": top1, "top5": 1.0}}
    contents = {"spec": planned.runs[run], "ledger": {"epsilon": None}, "provenance": PROVENANCE}
    contents["metrics"] = {"last_step": test, "best_epoch": test}
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "history.csv").write_text(HISTORY)
    (folder / "weights.safetensors").write_bytes(b"large")


def row(folder: Path, model: str) -> dict[str, str]:
    rows = csv.DictReader((folder / "tables/table1.csv").open())
    return next(row for row in rows if row["model"] == model and row["epsilon"] == "7.42" and row["dataset"] == "cifar10")


def test_records_are_kept_without_weights_and_shown(planned, tmp_path):
    run = of(planned, "resnet9", 34)
    record(tmp_path, planned, run, 0.7)
    assert "table1" in keep(planned, tmp_path, tmp_path / "kept")
    there = {file.name for file in (tmp_path / "kept/runs" / run).iterdir()}
    assert there == {"spec.json", "metrics.json", "history.csv", "ledger.json", "provenance.json"}
    assert (row(tmp_path / "kept", "resnet9")["ours"], row(tmp_path / "kept", "resnet9")["n"]) == ("70.0", "1")


def test_what_another_machine_made_joins_what_is_there(planned, tmp_path):
    for machine, model, seed, top1 in [("a", "resnet9", 34, 0.7), ("b", "resnet9", 50, 0.8), ("b", "scaleresnet9", 34, 0.75)]:
        record(tmp_path / machine, planned, of(planned, model, seed), top1)
    for machine in "ab":
        keep(planned, tmp_path / machine, tmp_path / "kept")
    plain = row(tmp_path / "kept", "resnet9")
    assert (plain["ours"], plain["seed_34"], plain["seed_50"], plain["n"]) == ("75.0", "70.0", "80.0", "2")
    assert row(tmp_path / "kept", "scaleresnet9")["n"] == "1"
    claims = list(csv.DictReader((tmp_path / "kept/claims.csv").open()))
    (budget,) = (claim for claim in claims if claim["claim"] == "saves_budget" and "cifar10" in claim.values())
    assert (budget["n"], budget["verdict"]) == ("1", "undecided")


def test_how_much_is_missing_is_said(planned, tmp_path):
    record(tmp_path, planned, of(planned, "resnet9", 34), 0.7)
    keep(planned, tmp_path, tmp_path / "kept")
    page = (tmp_path / "kept/README.md").read_text()
    assert f"1 of {len(planned.runs)} trainings are here" in page
    assert "`python -m dpvision plan --scale simulate`" in page


def test_what_follows_from_the_configuration_alone_is_kept_without_any_training(tmp_path):
    assert "de2022_table13" in keep(plan.load({"papers": ["de2022"], "scale": "paper"}), tmp_path, tmp_path / "kept")
    assert (tmp_path / "kept/tables/de2022_table13.csv").exists()
    assert verify(tmp_path / "kept").holds


def test_tables_are_made_anew_from_the_records_in_the_folder_alone(planned, tmp_path):
    record(tmp_path, planned, of(planned, "resnet9", 34), 0.7)
    keep(planned, tmp_path, tmp_path / "kept")
    before = (tmp_path / "kept/tables/table1.csv").read_bytes()
    (tmp_path / "kept/tables/table1.csv").write_text("dataset\nforged\n")
    shutil.rmtree(tmp_path / planned.results)
    keep(planned, tmp_path, tmp_path / "kept")
    assert (tmp_path / "kept/tables/table1.csv").read_bytes() == before


def test_half_a_record_is_left_where_it_is(planned, tmp_path):
    whole, half = of(planned, "resnet9", 34), of(planned, "resnet9", 50)
    for run in (whole, half):
        record(tmp_path, planned, run, 0.7)
    (tmp_path / planned.results / "runs" / half / "ledger.json").unlink()
    keep(planned, tmp_path, tmp_path / "kept")
    assert [folder.name for folder in (tmp_path / "kept/runs").iterdir()] == [whole]


def test_without_any_record_there_is_an_error_that_says_where_it_looked(planned, tmp_path):
    with pytest.raises(UserError, match=r"no whole record of scale simulate, neither in .*results/simulate nor in .*kept"):
        keep(planned, tmp_path, tmp_path / "kept")


def test_what_is_shown_is_verified_by_the_records_though_most_are_missing(planned, tmp_path):
    for model in ("resnet9", "scaleresnet9"):
        record(tmp_path, planned, of(planned, model, 34), 0.7)
    kept = tmp_path / "kept"
    keep(planned, tmp_path, kept)

    def shown_wrongly() -> set[str]:
        places = {problem["where"] for problem in verify(kept).problems}
        return {place for place in places if not place.startswith("runs/")}  # these records are of a few words

    assert shown_wrongly() == set()
    changes = {"claims.csv": ("undecided", "supported"), "claims.md": ("? undecided", "✔ supported")}
    changes["tables/table1.md"] = ("70.00", "75.00")
    for file, (old, new) in changes.items():
        text = (kept / file).read_text()
        assert old in text
        (kept / file).write_text(text.replace(old, new, 1))
    assert shown_wrongly() == set(changes)


def test_a_folder_of_something_else_is_not_written_over(planned, tmp_path):
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match="holds something else than kept results"):
        keep(planned, tmp_path, tmp_path)
    with pytest.raises(UserError, match="holds something else than kept results"):
        keep(planned, tmp_path, tmp_path / "README.md")
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "mine"
