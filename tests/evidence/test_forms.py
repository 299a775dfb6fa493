"""The leaderboard's entries, the checklist and the appendix say what the kept records bear, for as much as they bear it."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from remade import planned, written

from dpvision.errors import UserError

ALL_LAYERS = "transfer/runs/cifar10-wrn16-4-eps1-seed0-b03e51450d58"
HEAD = "transfer/runs/cifar10_256-linear-head-eps1-seed0-643c962d18ab"


def claims(kept: Path, scale: str) -> list[dict[str, Any]]:
    """Return the claims of the paper that has a scale of its own."""
    titles = {of["paper"] for of in json.loads((kept / scale / "labels.json").read_text()).values()}
    (entry,) = (entry for entry in yaml.safe_load(written(kept, "leaderboard.yaml")) if entry["name"] in titles)
    return entry["claims"]


def ledger(kept: Path, run: str) -> dict[str, Any]:
    return json.loads((kept / run / "ledger.json").read_text())


def answers(kept: Path, scale: str) -> dict[str, str]:
    """Return the checklist's answers for a scale."""
    part = written(kept, "CHECKLIST.md").partition(f"## Scale `{scale}`")[2].partition("\n## ")[0]
    return dict(line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| "))


def table(kept: Path, heading: str) -> list[list[str]]:
    """Return the rows of the table below a heading of the appendix, without its head."""
    part = written(kept, "ARTIFACT-APPENDIX.md").partition(f"## {heading}")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][2:]


def test_an_entry_says_how_many_examples_its_epsilon_covers(kept):
    for scale, run in (("transfer", HEAD), ("transfer", ALL_LAYERS)):
        said = {claim["epsilon_covers"] for claim in claims(kept, scale)}
        assert said == {f"{ledger(kept, run)['examples']:,} of the 50,000 training examples"}
    assert {claim["epsilon_covers"] for claim in claims(kept, "laptop")} == {"50,000 of the 50,000 training examples"}


def test_an_entry_lists_what_its_ledger_does_not_account_for(kept):
    outside = claims(kept, "transfer")[-1]["not_in_epsilon"]
    choice, *rest = ledger(kept, ALL_LAYERS)["not_accounted"]
    assert choice.startswith("validation examples") and set(rest) <= set(outside)
    assert "5,000 of the 50,000 training examples were held out. No ε covers them." in outside
    assert not any("trials" in said for said in outside)  # nothing was searched for all layers


def test_what_held_out_examples_chose_is_said_as_the_recipe_does_it(kept):
    for claim in claims(kept, "transfer"):
        (said,) = (said for said in claim["not_in_epsilon"] if said.startswith("validation examples"))
        assert "steers no learning rate" in said  # its rate is constant, whatever ledgers of old say


def test_epsilon_with_all_trials_covers_what_no_search_held_out(kept):
    (together,) = (search["epsilon_all_composed"] for search in ledger(kept, HEAD)["searches"])
    for scale in ("laptop", "transfer"):
        (of_one,) = (claim for claim in claims(kept, scale) if claim["epsilon"] == 1.0 and "head" in claim["model"])
        outside = of_one["not_in_epsilon"]
        assert f"With all trials ε = {together:.2f}. This ε covers 45,000 examples." in outside
        assert any("scored on 5,000 held-out examples" in said and "No ε with the trials covers" in said for said in outside)
        again = "Afterwards the training was on 5,000 of these held-out examples too."
        assert (again in outside) is (scale == "laptop")  # a laptop's head trains on all 50,000


def test_a_search_that_is_planned_no_more_is_an_error_that_says_what_to_do(kept):
    file = kept / HEAD / "spec.json"
    spec = json.loads(file.read_text())
    file.write_text(json.dumps(spec | {"found_by": dict.fromkeys(spec["found_by"], "gone")}))
    with pytest.raises(UserError, match=r"values of gone, a search that its scale plans no more; take the folders of"):
        written(kept)


def test_a_model_of_an_entry_is_understood_by_itself(kept):
    models = {claim["model"] for scale in ("laptop", "transfer") for claim in claims(kept, scale)}
    assert not any(re.search(r"\bthat\b", model) for model in models)


def test_the_spread_is_given_where_seeds_were_repeated(kept):
    runs = [folder.name for folder in (kept / "simulate/runs").iterdir()]
    specs = [json.loads((kept / "simulate/runs" / run / "spec.json").read_text()) | {"seed": None} for run in runs]
    single = sum(specs.count(spec) == 1 for spec in specs)
    said = answers(kept, "simulate")["Is the spread over seeds given?"]
    assert f"Yes for {len(runs) - single} of {len(runs)} trainings" in said
    assert f"No for {single} of {len(runs)} trainings" in said
    assert "No for" not in answers(kept, "laptop")["Is the spread over seeds given?"]


def test_what_searches_held_out_is_said_beside_what_trainings_did(kept):
    said = answers(kept, "laptop")["Which data, divided how?"]
    assert "30 trainings hold out 0, 6 searches hold out 5,000" in said
    assert "Afterwards the training was on 5,000" in answers(kept, "laptop")["Is the search accounted for?"]
    assert "Afterwards" not in answers(kept, "transfer")["Is the search accounted for?"]


def test_searches_are_counted_by_the_trainings_that_they_chose_for(kept):
    found = answers(kept, "transfer")
    assert "6 searches chose values for 30 of 32 trainings" in found["How were settings chosen?"]
    assert "Nothing was searched for 2 of 32 trainings" in found["How were settings chosen?"]
    assert found["Is the search accounted for?"].startswith("Nothing was searched (1 of 26)")


def test_what_is_not_accounted_for_is_counted_by_trainings(kept):
    said = answers(kept, "transfer")["What else is not accounted for?"].split("<br>")
    assert sum("the weights that it began with" in line and line.endswith("(1 of 26)") for line in said) == 1
    assert sum("steers no learning rate" in line and line.endswith("(26 of 26)") for line in said) == 1


def test_local_changes_are_counted_and_what_nobody_knows_is_said(kept):
    changed = "Was it changed locally?"
    assert answers(kept, "laptop")[changed] == "no for 30 of 30 trainings"
    assert answers(kept, "transfer")[changed].startswith("yes for 32 of 32 trainings")
    file = kept / ALL_LAYERS / "provenance.json"
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_text()).items() if key != "dirty"}))
    assert answers(kept, "transfer")[changed].endswith("; not known for 1 of 32 trainings")


def test_simulated_trainings_are_counted_apart_from_private_ones(kept):
    all_of_it = len(list((kept / "simulate/runs").iterdir()))
    said = answers(kept, "simulate")["How many trainings are private?"]
    assert said == f"0 of {all_of_it}; {all_of_it} of {all_of_it} are simulated"
    assert answers(kept, "transfer")["How many trainings are private?"] == "26 of 32; 0 of 32 are simulated"


def test_claims_are_results_of_ours_with_n_and_how_they_came_about(kept):
    found = table(kept, "Claims that the kept records bear")
    assert [row[0] for row in found] == [f"C{i}" for i in range(1, len(found) + 1)]
    (head,) = (row for row in found if row[1] == "CIFAR-10, head on MobileNetV2, ε = 8")
    assert head[2:4] == ["82.33 % of test examples, median", "5"] and head[4].startswith("private, N = 50,000: [laptop_table]")
    assert not any("simulated" in row[4] and row[3] == "1" for row in found)
    assert not any(f"in print: {number}" in row for row in found for number in (71.8, 81.4))


def test_an_experiment_is_named_by_each_claim_of_its_scale(kept):
    page = written(kept, "ARTIFACT-APPENDIX.md")
    numbers = dict(re.findall(r"\*\*\((E\d)\) Scale `(\w+)`", page))
    assert sorted(numbers.values()) == sorted(folder.parent.name for folder in kept.glob("*/labels.json"))
    for row in table(kept, "Claims that the kept records bear"):
        assert f"]({numbers[row[5]]}/" in row[4]


def test_a_lower_bound_above_the_claim_is_counted(kept):
    (file,) = (kept / "simulate/audits").glob("*/audit.json")
    about = json.loads(file.read_text())
    about["bounds"][0]["lower_bound"] = about["bounds"][0]["claimed"] + 1
    file.write_text(json.dumps(about | {"verdict": "refuted"}))
    (row,) = (row for row in table(kept, "Claims that the kept records bear") if row[1].startswith("The engine under attack"))
    assert row[1].endswith("*refuted*") and row[2].startswith(f"1 of {len(about['bounds'])} lower bounds")


def test_an_effect_is_a_claim_where_its_comparison_is_decided(kept):
    found = {row[1]: row[4] for row in table(kept, "Claims that the kept records bear")}
    compared = [row for row in csv.DictReader((kept / "simulate/smoothnets_claims.csv").open(encoding="utf-8")) if row["low"]]
    assert {row["verdict"] for row in compared} == {"supported", "undecided"}
    for row in compared:
        said = found.get(f"Remerscheid et al. 2022, supported: {row['comparison']}", "")
        assert said.startswith("simulated: [") is (row["verdict"] == "supported")
    assert "intervals that decide nothing: " in written(kept, "ARTIFACT-APPENDIX.md")


@pytest.mark.parametrize("number", ["CIFAR-10, ε = 7.42, with ScaleNorm", "CIFAR-10, ε = 8, WRN-40-4"])
def test_a_number_in_print_has_a_status_and_the_hours_of_its_artifact(kept, number):
    rows = [row for row in table(kept, "Numbers in print") if row[1] == number]
    simulated = "ScaleNorm" in number
    assert len(rows) == (2 if simulated else 1)  # the protocols of ScaleNorm, in rows of their own
    for row in rows:
        assert row[3].startswith("simulated, by 8") if simulated else row[3:6] == ["not run", "–", "0"]
        assert float(row[7].replace(",", "")) > 0


def test_a_number_that_cannot_be_run_says_why_and_has_no_hours(kept):
    for row in (row for row in table(kept, "Numbers in print") if "JFT" in row[1]):
        assert row[3] == "cannot be run: JFT is not public" and row[7] == "–"


def test_each_number_in_print_is_counted_once_by_its_status(kept):
    rows = {row[1]: row for row in table(kept, "Numbers in print")}
    counts = [
        sum(row[3].startswith(status) for row in rows.values()) for status in ("private", "simulated", "not run", "cannot")
    ]
    words = "Of {} numbers {} are private, {} are simulated, {} are not run, {} cannot be run."
    assert words.format(len(rows), *counts) in written(kept, "ARTIFACT-APPENDIX.md")


def test_a_scale_without_trainings_says_what_is_kept_of_it(kept):
    tables = len(list((kept / "paper/tables").glob("*.csv")))
    said = f"Scale `paper`**: only what follows without a training is kept: {tables} tables; 0 of {len(planned('paper').runs)}"
    assert f"{said} trainings." in written(kept, "ARTIFACT-APPENDIX.md")
