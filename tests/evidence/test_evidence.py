"""The page of all evidence, and the forms that others ask for, follow from the kept records; nothing is said beyond them."""

import csv
import json
import re
import statistics
from pathlib import Path

import pandas as pd
import pytest
import yaml
from opacus.accountants import RDPAccountant
from opacus.accountants.utils import get_noise_multiplier
from remade import KEPT, planned, written

from dpvision import plan
from dpvision.errors import UserError
from dpvision.evidence.write import write_evidence
from dpvision.files import write_json


def row(page: str, number: str) -> list[str]:
    """Return the cells of a number's row by the protocol `clean`."""
    (line,) = (line for line in page.splitlines() if f"| {number} |" in line and "authors' protocol" not in line)
    return [cell.strip() for cell in line.strip("|").split("|")]


def entries(kept: Path) -> dict[str, dict]:
    """Return what the leaderboard has of the papers, by the scale that each has of its own."""
    found = {entry["name"]: entry for entry in yaml.safe_load(written(kept, "leaderboard.yaml"))}
    scales = {
        "laptop": "A private head on public weights, on a laptop",
        "transfer": "A network of one's own, from CIFAR-100 to CIFAR-10",
    }
    assert found.keys() <= set(scales.values())
    return {scale: found[title] for scale, title in scales.items() if title in found}


@pytest.mark.parametrize("name", ["README.md", "leaderboard.yaml", "ARTIFACT-APPENDIX.md", "CHECKLIST.md"])
def test_what_the_repository_shows_follows_from_its_records(kept, name):
    assert written(kept, name) == (KEPT / name).read_text(encoding="utf-8")


def test_a_number_stands_beside_ours_with_n_and_how_it_came_about(kept):
    found = row(written(kept), "CIFAR-10, ε = 7.42, with ScaleNorm")
    table = (kept / "simulate/tables/table1.csv").read_text().splitlines()
    ours = next(line for line in table if line.startswith("cifar10,scaleresnet9") and ",clean," in line and ",7.42," in line)
    assert found[2] == "71.8" and found[3] in ours and found[4] == "3"
    assert found[6] == "test, last step" and found[7].startswith("simulated, by 8, N = 45,000: [table1]")


def test_an_effect_that_no_paper_prints_stands_beside_ours_with_the_place_that_it_has(kept):
    file = kept / "simulate/smoothnets_claims.csv"
    rows = pd.read_csv(file)
    there = rows.index[(rows["row"] == "comparison") & (rows["n"] > 0)][:2]
    rows.loc[there, "published"], rows["source"] = [1.25, 2.5], None
    rows.loc[there[0], "source"] = "the authors' notebook"
    rows.to_csv(file, index=False)
    page = written(kept)
    assert "; in the authors' notebook +1.25 points" in page and "; in print +2.50 points" in page


def test_the_authors_protocol_has_a_row_of_its_own_beside_a_number_in_print(kept):
    (line,) = (
        line for line in written(kept).splitlines() if "| CIFAR-10, ε = 7.42, with ScaleNorm |" in line and "authors'" in line
    )
    assert "| 71.8 | 70.78 | 1 | – | test, best epoch | simulated, by 8, N = 50,000, authors' protocol: [table1]" in line


def test_a_number_without_a_training_is_not_run(kept):
    assert row(written(kept), "CIFAR-10, ε = 8, WRN-40-4")[3:] == ["–", "0", "–", "–", "not run"]


def test_a_row_without_trainings_is_not_run(kept):
    table = kept / "simulate/tables/table1.csv"
    table.write_text(table.read_text().replace(",run,", ",not run,"))
    assert row(written(kept), "CIFAR-10, ε = 7.42, with ScaleNorm")[7] == "not run"


def test_another_network_in_the_place_of_the_papers_is_said(kept):
    labels = json.loads((kept / "simulate/labels.json").read_text())
    labels["table1"]["models"]["scaleresnet9"] = "narrow"
    (kept / "simulate/labels.json").write_text(json.dumps(labels))
    assert "stand-in narrow" in row(written(kept), "CIFAR-10, ε = 7.42, with ScaleNorm")[7]


def test_the_leaderboard_has_private_trainings_alone(kept):
    found = entries(kept)
    assert [entry["private_data"] for entry in found.values()] == ["CIFAR-10", "CIFAR-10"]
    claims = found["laptop"]["claims"]
    assert [claim["epsilon"] for claim in claims] == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert all("ImageNet-1k" in claim["public_data"] for claim in claims)


def test_an_entry_names_the_data_that_a_network_of_ones_own_was_trained_on(kept):
    assert {claim["public_data"] for claim in entries(kept)["transfer"]["claims"]} == {"CIFAR-100"}


def test_a_ledger_that_is_not_private_keeps_a_row_off_the_leaderboard(kept):
    for file in (kept / "laptop/runs").glob("*-eps8-*/ledger.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"private": False}))
    assert 8.0 not in [claim["epsilon"] for claim in entries(kept)["laptop"]["claims"]]


def test_a_paper_none_of_whose_ledgers_is_private_has_no_entry(kept):
    for file in (kept / "laptop/runs").glob("*/ledger.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"private": False}))
    assert list(entries(kept)) == ["transfer"]


def test_settings_in_print_that_spend_another_epsilon_are_listed(kept):
    assert "at N = 50,000 | 8 | 7.05 | 6.54 |" in written(kept)


def test_audits_are_shown_with_their_verdicts_each_with_a_table(kept):
    bound = {"setting": "made up", "delta": 0.01, "claimed": 2.0, "lower_bound": 1.25, "expected": 1.5, "perfect_attack": 4.0}
    about = {"verdict": "consistent", "confidence": 0.999, "tests": [1, 2], "bounds": [bound]}
    for name in ("one", "other"):
        write_json(kept / "simulate/audits" / name / "audit.json", about)
    page = written(kept)
    made_up = "| made up, δ = 0.01 | 2.00 | 1.25 | 1.50 | 4.00 |"
    assert f"{made_up}\n\n**consistent** at 99.9%, by 2 tests: [record](simulate/audits/other/" in page
    assert page.count("| made up, δ = 0.01 |") == 2


def test_what_is_planned_for_the_page_does_not_depend_on_whose_data_are_here():
    assert plan.load({"papers": ["transfer"], "scale": "transfer"}).artifacts == {}  # nobody brought CIFAR-100 as pictures
    whole = planned("transfer")
    assert len(whole.artifacts) == 4
    assert (whole.wanting, len(planned("paper").wanting)) == ({}, 0)
    assert whole.asked_by() == "--config scale=transfer 'folders={cifar100_pictures: /your/copy}'"


def test_a_folder_without_results_is_an_error_that_says_how_to_fill_it(tmp_path):
    with pytest.raises(UserError, match=r"no results are kept in .*: python -m dpvision keep"):
        write_evidence(tmp_path, planned)


@pytest.mark.parametrize(
    ("paper", "name"), [("ScaleNorm (Klause et al. 2022)", "claims"), ("(De et al. 2022)", "de2022_claims")]
)
def test_sentences_of_each_paper_stand_below_its_title_and_link_to_its_own_page(kept, paper, name):
    (part,) = (part for part in written(kept).split("\n### ") if part.partition("\n")[0].endswith(paper))
    assert f"(simulate/{name}.md)" in part and f"(simulate/{name}.md#" in part


def test_what_was_measured_stands_below_each_sentence_with_what_was_not(kept):
    page, claims = written(kept), csv.DictReader((kept / "simulate/claims.csv").open(encoding="utf-8"))
    rows = [row for row in claims if row["row"] == "comparison" and row["claim"] == "better_on_all_tasks"]
    (run,) = (row for row in rows if float(row["n"] or 0))
    below = page.partition("claims.md#better_on_all_tasks)")[2].split("\n- ")[0].splitlines()[1:]
    assert (
        below[0].startswith(f"  - {run['comparison']}: **{float(run['effect']):+.2f} points [")
        and ", n = 3; in print" in below[0]
    )
    assert below[1] == f"  - {len(rows) - 1} comparisons of it not run"


def section(page: str, name: str) -> list[list[str]]:
    """Return the rows of the table below a bold name, without its head."""
    lines = page.partition(f"**{name}.**")[2].split("\n**")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("|")][2:]


def test_what_a_choice_by_the_test_set_gains_is_of_every_training_of_a_paper_once(kept):
    best = {}
    for file in (kept / "laptop/runs").glob("*/history.csv"):
        course = [100 * float(row["test_top1"]) for row in csv.DictReader(file.open())]
        best[file] = max(course) - course[-1]
    (found,) = (row for row in section(written(kept), "To the test set") if "(laptop)" in row[0])
    assert found[1:] == ["2 to 4", str(len(best)), f"{statistics.median(best.values()):.2f}", f"{max(best.values()):.2f}"]


def test_cells_in_both_protocols_are_compared_by_the_seeds_that_both_have(kept):
    reached: dict[str, dict[int, list[float]]] = {"clean": {}, "paper": {}}
    for file in (kept / "simulate/runs").glob("cifar10-scaleresnet9-*/metrics.json"):
        spec, metrics = (json.loads((file.parent / name).read_text()) for name in ("spec.json", "metrics.json"))
        last, best = (100 * metrics[name]["test"]["top1"] for name in ("last_step", "best_epoch"))
        reached["paper" if "protocol" in spec else "clean"][spec["seed"]] = (
            [best, best - last] if "protocol" in spec else [last]
        )
    less = [
        f"{reached['paper'][seed][0] - reached['clean'][seed][0]:+.2f}" for seed in (34, 50, 113) if seed in reached["paper"]
    ]
    best = statistics.mean(of_it for _, of_it in reached["paper"].values())
    (found,) = (row for row in section(written(kept), "To the authors' protocol") if "ScaleResNet-9, CIFAR-10" in row[0])
    assert len(less) > 0 and [*found[1:3], found[4]] == [", ".join(less), str(len(less)), f"{best:.2f}"]


def test_the_searches_of_the_papers_are_priced_by_what_is_planned(kept):
    table = list(csv.DictReader((kept / "paper/tables/de2022_search_price.csv").open()))
    found = next(
        row
        for row in section(written(kept), "To the search")
        if row[0].startswith("De et al. 2022: CIFAR-10, as planned here: 25 trials")
    )
    together = sorted(f"{float(row['epsilon_all_composed']):.2f}" for row in table)
    assert found[1:3] == ["8.00", f"{together[0]} to {together[-1]}"] and f" in each of {len(table)} searches" in found[0]


def test_a_search_that_its_sampler_covers_is_priced_by_that(kept):
    for file in (kept / "laptop/runs").glob("*-eps8-*/ledger.json"):
        ledger = json.loads(file.read_text())
        ledger["searches"][0] = {"study": ledger["searches"][0]["study"], "trials": 9, "epsilon_covered": 12.5}
        file.write_text(json.dumps(ledger))
    assert "| head on MobileNetV2, CIFAR-10 (laptop) | 8.00 | 12.50 | train, too |" in written(kept)
    assert "by a random number of trials" in written(kept, "CHECKLIST.md")
    assert any("With all trials ε = 12.50." in said for said in entries(kept)["laptop"]["claims"][-1]["not_in_epsilon"])


def test_an_epsilon_that_sigma_and_steps_spend_is_the_ledger_s(kept):
    table, plan_of = kept / "laptop/tables/laptop_table.csv", kept / "laptop/plan/laptop_table.json"
    header, *rows = csv.reader(table.open())
    column = header.index("epsilon")
    rows = [[*row[:column], "solve" if row[column] == "8.0" else row[column], *row[column + 1 :], "3.0"] for row in rows]
    table.write_text("\n".join(",".join(row) for row in [[*header, "sigma"], *rows]))
    plan_of.write_text(plan_of.read_text().replace('"epsilon": 8.0', '"epsilon": "solve"'))
    assert "| head on MobileNetV2, CIFAR-10, σ = 3 | 82.33 | 5 |" in written(kept)
    assert entries(kept)["laptop"]["claims"][-1]["epsilon"] == pytest.approx(8, abs=1e-3)


def test_a_number_that_a_paper_prints_twice_stands_with_both(kept):
    assert row(written(kept), "ImageNette, ε = 7, SmoothNet, best trial by validation")[2] == "69.7 (69.2 in the abstract)"


def test_trainings_that_a_paper_chose_among_are_priced_as_their_composition(kept):
    searched = planned("paper").practices["ScaleNorm (Klause et al. 2022)"]["searched"][0]
    accountant = RDPAccountant()
    q, steps = searched["batch"] / searched["examples"], searched["epochs"] * searched["examples"] // searched["batch"]
    sigma = get_noise_multiplier(
        target_epsilon=searched["epsilon"], target_delta=searched["delta"], sample_rate=q, steps=steps, accountant="rdp"
    )
    accountant.history = [(sigma, q, steps * searched["trainings"])]
    (found,) = (row for row in section(written(kept), "To the search") if searched["what"] in row[0])
    assert float(found[1]) == searched["epsilon"] == 7.42 and searched["trainings"] == 36
    assert float(found[2]) == pytest.approx(accountant.get_epsilon(searched["delta"]), rel=0.01)


def test_values_found_at_an_end_of_what_was_tried_are_said_once_with_their_number(kept):
    page = written(kept)
    (line,) = (line for line in page.splitlines() if line.startswith("In 5 of 6 searches the best lies at an end"))
    assert "recipe.steps = 120 is at the upper end of what was searched, 30 to 120 (4)" in line


def test_numbers_of_other_works_stand_below_a_table_of_its_own(kept):
    (line,) = (
        line for line in written(kept).splitlines() if line.startswith("In print: WRN-16-4 from scratch (De et al.): 56.8")
    )
    assert "head on WRN-28-10 from ImageNet-32 (De et al.): 93.1 at ε = 1" in line


def test_a_bound_by_canaries_stands_beside_no_bound_by_models(kept):
    rows = [line for line in written(kept).splitlines() if re.search(r"\d (canaries|models) \|", line)]
    assert len(rows) == 5
    assert all((" canaries | – | " in row) != (" models | 4.327 | " in row) for row in rows)
