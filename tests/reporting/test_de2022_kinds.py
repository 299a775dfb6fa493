"""De et al.'s own kinds of artifact show what records, trials and print say, at every scale, and of a part of the records."""

import csv
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from copied import brought

from dpvision import plan
from dpvision.audit import attack
from dpvision.errors import UserError
from dpvision.files import write_json
from dpvision.models import build
from dpvision.models.count import parameter_count
from dpvision.plan import cost, specs
from dpvision.plan.artifact_state import artifact_state
from dpvision.privacy.accounting import Mechanism, epsilon_of, selection_rdp
from dpvision.privacy.audit.rates import Counts
from dpvision.privacy.mechanism import mechanism_of
from dpvision.reporting.claims import described, judged
from dpvision.reporting.figures import write_figure
from dpvision.reporting.kinds import KINDS, advice, noise
from dpvision.reporting.measures import at_epsilon
from dpvision.reporting.records import Records
from dpvision.reporting.so_far import draw_so_far
from dpvision.reporting.tables import write_table

RATE, STEPS = "recipe.optimizer.learning_rate", "recipe.steps"


def accuracy_of(run: specs.Spec, values: dict[str, Any]) -> float:
    """Return the accuracy of a made-up world in which the best rate is batch / 1,024, up to 4, and the best σ is 3."""
    batch = run["recipe"]["batch"]
    rate, best = values.get(RATE, 2.0), min(4.0, batch / 1024)
    sigma = run["budget"].get("sigma", 3.0) if run["budget"] else 3.0
    off = math.log2(rate / best) ** 2 + math.log2(sigma / 3) ** 2
    steps = values.get(STEPS, 2500) / (2500 * max(1, 2048 / batch))
    return 0.7 + 0.01 * math.log2(batch / 256) - 0.02 * off - 0.02 * math.log2(steps) ** 2


class World:
    """Records of all the work of a plan, made up."""

    def __init__(self, folder: Path, scale: str) -> None:
        self.folder, self.plan = folder, plan.load({"papers": ["de2022"], "scale": scale, "folders": brought()})

    def found(self, study: str) -> dict[str, Any]:
        """Return the values of the best trial of a search."""
        spec = self.plan.work["search", study]
        keys = list(spec["space"])
        combinations = [dict(zip(keys, values, strict=True)) for values in itertools.product(*spec["space"].values())]
        return max(combinations, key=lambda values: accuracy_of(spec["run"], values))

    def fill(self, file: Path) -> None:
        """Write what a record's file would say."""
        name = file.parent.name
        file.parent.mkdir(parents=True, exist_ok=True)
        getattr(self, f"_{file.stem}{file.suffix.replace('.', '_')}")(file, name)

    def _run(self, name: str) -> tuple[specs.Spec, dict[str, Any]]:
        run = self.plan.work["train", name]
        studies = set(specs.searched_keys(run).values())
        return run, self.found(studies.pop()) if studies else {RATE: run["recipe"]["optimizer"]["learning_rate"]}

    def _metrics_json(self, file: Path, name: str) -> None:
        run, values = self._run(name)
        value = accuracy_of(run, values) + 0.002 * run["seed"]
        views = (run["recipe"]["augmentation"] or {}).get("views", 0)
        value += {0: 0.0, 1: -0.02}.get(views, 0.01 * math.log2(max(views, 1)))
        of = {"validation": value, "train": value + 0.02, "test": value - 0.01}
        sets = {split: {"top1": top1, "top5": top1 + 0.1} for split, top1 in of.items()}
        averaged = {split: {"top1": top1 + 0.01, "top5": top1 + 0.11} for split, top1 in of.items()}
        write_json(file, {"last_step": sets, "averaged": averaged})

    def _ledger_json(self, file: Path, name: str) -> None:
        run, values = self._run(name)
        steps = values.get(STEPS) or run["recipe"].get("steps", 2479)
        said = {"noise_multiplier": (run["budget"] or {}).get("sigma", 3.0), "sampling_rate": specs.sampling_rate(run)}
        said |= {"examples": specs.training_count(run), "steps": {"planned": steps, "made": steps}}
        said |= {"epsilon": {"rdp": 7.99, "prv": 7.4}, "curve": {"mu": 4.0 / said["noise_multiplier"]}}
        simulated = specs.simulated(run) > 1
        write_json(file, {"epsilon": None, "simulated": said} if simulated else said)

    def _history_csv(self, file: Path, name: str) -> None:
        depth = self.plan.work["train", name]["model"]["depth"]
        rows = [
            {"epoch": e, "epsilon": 0.5 * 1.25**e, "averaged_validation_top1": 0.4 + 0.01 * e + depth / 1e4}
            for e in range(1, 23)
        ]
        pd.DataFrame(rows).to_csv(file, index=False)

    def _best_json(self, file: Path, name: str) -> None:
        spec, values = self.plan.work["search", name], self.found(name)
        from dpvision.plan import space

        found = {"study": name, "values": values, specs.objective(spec): 0.7, "trials": spec["trials"]}
        write_json(file, found | ({"edges": edges} if (edges := space.edges(spec["space"], values)) else {}))

    def _trials_csv(self, file: Path, name: str) -> None:
        spec = self.plan.work["search", name]
        keys, run = list(spec["space"]), spec["run"]
        rows = []
        for i, values in enumerate(itertools.product(*spec["space"].values())):
            here = dict(zip(keys, values, strict=True))
            value = accuracy_of(run, here)
            steps = here.get(STEPS, 2479)
            about = {"trial": i, "state": "complete", "validation_top1": value, "averaged_validation_top1": value + 0.01}
            about |= {"averaged_validation_loss": 1.0, "sampling_rate": specs.sampling_rate(run), "steps": steps}
            rows.append(about | here | {"sigma": run["budget"].get("sigma", 3.0), "epsilon": 7.99})
        pd.DataFrame(rows).to_csv(file, index=False)

    def _attack_json(self, file: Path, name: str) -> None:
        spec = self.plan.work["attack", name]
        mechanism = mechanism_of(spec["run"])
        assert mechanism is not None
        line = np.linspace(0, 1, 1000)
        seen = attack.Seen(line, line + 0.3, (0.8, 0.75), attack.Reserved(line[:100], line[:100]))
        best = attack.tried_settings(spec)[0]
        about = {"name": name, "by": spec["by"], "chosen": {"target": attack.called(best), "values": best["values"]}}
        views = (spec["run"]["recipe"]["augmentation"] or {"views": 1})["views"]
        about |= {"examples": specs.training_count(spec["run"]), "views": views}
        write_json(file, about | attack.found(seen, spec, mechanism))

    def _tried_csv(self, file: Path, name: str) -> None:
        tried = attack.tried_settings(self.plan.work["attack", name])
        fits = {"mean_out": 0.0, "std_out": 1.0, "mean_inside": 1.0, "std_inside": 1.0}
        for row in tried if len(tried) > 1 else []:
            row |= fits | {"total_variation": 0.5 if attack.called(row) == "blank as 9" else 0.3}
        pd.DataFrame([attack.flat(row) for row in tried]).to_csv(file, index=False)

    def _provenance_json(self, file: Path, name: str) -> None:
        stage = {"runs": "dpvision.training.run", "studies": "dpvision.search.study"}.get(
            file.parts[-3], "dpvision.data.prepare"
        )
        about = {"code": "c0de", "commit": "f00d", "lock": "10c", "data": "da7a", "stage": stage}
        write_json(file, about | {"sessions": [about | {"seconds": 20.0 if "nonprivate" in name else 25.0}]})

    def _dataset_json(self, file: Path, name: str) -> None:
        data = self.plan.work["data", name]
        write_json(file, {"train": data["train"], "test": data["test"]})

    def _spec_json(self, file: Path, name: str) -> None:
        write_json(file, self.plan.work["train", name])

    def make(self, name: str) -> tuple[list[dict[str, str]], str]:
        """Return the rows of an artifact's CSV, and the text of its Markdown or SVG."""
        spec = self.plan.artifacts[name]
        inputs = {key: [str(self.folder / file) for file in files] for key, files in self.plan.inputs_of(name).items()}
        for file in {Path(file) for files in inputs.values() for file in files}:
            self.fill(file)
        csv_file = self.folder / f"{name}.csv"
        is_table = "tables" in KINDS[spec["kind"]].Options.FILES[0]
        (write_table if is_table else write_figure)(spec, self.plan.labels[name], inputs, csv_file)
        with open(csv_file, encoding="utf-8", newline="") as rows:
            return list(csv.DictReader(rows)), csv_file.with_suffix(".md" if is_table else ".svg").read_text("utf-8")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], World]:
    found: dict[str, World] = {}

    def of(scale: str = "paper") -> World:
        return found.setdefault(scale, World(tmp_path_factory.mktemp(scale), scale))

    return of


def of(rows: list[dict[str, str]], **values: str) -> list[dict[str, str]]:
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


# --- tables ---


def test_each_rung_of_the_ablation_stands_beside_the_printed_number_of_its_split(world):
    rows, text = world().make("de2022_table2")
    printed = [row for row in rows if row["published"]]
    rungs = {
        "baseline": (50.8, 51.2),
        "group normalisation": (66.3, 67.9),
        "larger batch": (70.0, 73.4),
        "weight standardisation": (71.2, 74.7),
        "augmentation multiplicity": (78.4, 79.4),
        "parameter averaging": (79.7, 81.5),
    }
    weights = {rung: "averaged" if rung == "parameter averaging" else "last_step" for rung in rungs}
    assert [(row["ladder"], row["weights"], row["split"], float(row["published"])) for row in printed] == [
        (rung, weights[rung], split, value)
        for rung, values in rungs.items()
        for split, value in zip(("validation", "train"), values, strict=True)
    ]
    assert {row["n"] for row in rows} == {"5"}
    assert "79.7 ± 0.2" in text and "search" not in text.splitlines()[2]


def test_both_readings_of_a_printed_row_stand_side_by_side(world):
    rows, text = world().make("de2022_table3")
    heads = ["1", "1.93", "2", "3", "4", "4.21", "6", "7.42", "7.5", "8"]
    assert f"| model | recipe | {' | '.join(f'ε in print {head}' for head in heads)} |" in text
    lines = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    found = {(line[0], line[1]): line[2:] for line in lines[2:]}
    solved, printed = found["WRN-16-4", "steps solved"], found["WRN-16-4", "steps as printed"]
    assert solved[-1].endswith("/ 79.5 ± 0.7") and "/" not in printed[-1]
    assert [text for text in found["Tramèr and Boneh 2021", "–"] if text != "–"] == ["60.3", "67.2", "69.3"]
    assert len(of(rows, model="wrn16_4", recipe="as_printed")) == 6


def test_the_splits_are_those_of_the_data_less_what_is_held_out(world):
    rows, text = world().make("de2022_table12")
    ours = {row["metric"]: row["ours"] for row in of(rows, dataset="cifar10")}
    assert {key: float(value) for key, value in ours.items()} == {
        "train_validation": 50_000,
        "test": 10_000,
        "train": 45_000,
        "validation": 5_000,
    }
    assert "| cifar10 | 45,000 / 45,000 | 5,000 / 5,000 | 50,000 / 50,000 | 10,000 / 10,000 |" in text
    assert "| imagenet | – / 1,271,167 |" in text


def test_a_table_of_hyperparameters_says_which_row_spends_something_else(world):
    rows, text = world().make("de2022_table13")
    assert len(rows) == 12 and "N = 50,000: ε (RDP)" in text
    assert "ε = 8 at N = 50,000: 7.05" in text
    (eight,) = of(rows, printed_epsilon="8.0", examples="50000")
    assert int(eight["most_steps"]) == 3066


def test_the_noise_of_an_update_is_that_of_the_training_and_of_its_simulation(world):
    (row, *_), text = world("simulate").make("de2022_table3_noise")
    assert float(row["ratio"]) == pytest.approx(10 * math.sqrt(int(row["parameters"]) / 4096))
    assert float(row["ratio_simulated"]) == pytest.approx(float(row["ratio"]) / math.sqrt(32))
    assert "σ √(d / B)" in text


def test_the_parameters_that_noise_is_added_to_are_those_of_the_network_though_its_weights_are_not_kept(world):
    here = world("simulate")
    (row, *_), text = here.make("de2022_table3_noise")
    cell = here.plan.artifacts["de2022_table3_noise"]["cells"][0]
    run = here.plan.work["train", cell["work"]["train"]["0"]]
    whole = parameter_count(build(run["model"], 10, 3))
    assert 0.95 * whole < int(row["parameters"]) <= whole  # norms and biases are left out, and the note says so
    assert "norms and biases" in text and not list(here.folder.rglob("weights.safetensors"))


def test_parameters_that_nobody_counted_are_no_zero(world, monkeypatch):
    monkeypatch.setattr(cost, "counts_of", lambda run: cost.UNCOUNTED)
    (row, *_), text = world("simulate").make("de2022_table3_noise")
    assert row["parameters"] == row["ratio"] == row["ratio_simulated"] == ""
    assert "| 0 |" not in text and "| – |" in text


def test_parameters_that_are_frozen_are_not_taken_for_noisy_ones(world):
    run = next(iter(world("simulate").plan.runs.values()))
    assert noise.parameters(run) and noise.parameters(run | {"train": "head"}) is None
    assert noise.parameters(run | {"train": "head", "data": run["data"] | {"kind": "features"}})


def test_bounds_of_attacks_stand_beside_print_and_what_so_many_models_can_prove(world):
    rows, text = world().make("de2022_table9")
    assert len(rows) == 9 * 4 and {row["state"] for row in rows} == {"run"}
    (bound,) = of(rows, recipe="attacked", epsilon="8.0", metric="lower_bound")
    assert (float(bound["published"]), bound["by"], float(bound["examples"])) == (4.327, "models", 100)
    assert float(bound["perfect_attack"]) == pytest.approx(4.8655577, abs=1e-6)
    assert float(bound["ours"]) == Counts(1000, 1000, 500, 200).bounds(0.999).epsilon(0.01)
    assert [row["published"] for row in of(rows, recipe="attacked_views")] == [""] * 4
    assert text.count("| canaries |") == 8 and "no network was trained" in text  # the method, and z
    assert "models, 16 views" in text and "0.279" in text
    assert "More than is claimed" not in text


def test_a_bound_above_the_claim_is_said_first(world):
    here = world()
    spec = here.plan.artifacts["de2022_table9"]
    files = [here.folder / file for file in here.plan.inputs_of("de2022_table9")["attack"]]
    for file in files:
        here.fill(file)
    frame = KINDS["attack"].frame(spec, {"attack": list(map(str, files))})
    frame.loc[(frame["metric"] == "lower_bound") & (frame["epsilon"] == 2), "ours"] = 3.0
    assert KINDS["attack"].notes(spec, {}, frame)[0].startswith("More than is claimed: ε = 2, seed 0")


def test_settings_of_attacks_have_the_noise_and_the_spending_of_each_length(world):
    rows, text = world().make("de2022_table8")
    small = of(rows, recipe="attacked", epsilon="8.0")
    assert [int(row["recipe.steps"]) for row in small] == [50, 100]
    assert float(small[0]["budget.sigma"]) == pytest.approx(2.11536, abs=1e-4)
    assert float(small[0]["epsilon_rdp"]) == pytest.approx(8, abs=1e-3) and float(small[0]["epsilon_tightest"]) < 7
    assert (small[0]["best_z"], float(small[0]["best_variation"])) == ("blank as 9", 0.5)
    assert [row["best_z"] for row in of(rows, by="canaries")] == [""] * 4
    assert "noise as 9, blank as 9, 7 as 8, 6 as 7, 0 as 1" in text


def test_the_claims_of_the_audit_are_decided_by_bounds_and_by_phase_one(world):
    here = world()
    page = here.plan.artifacts["de2022_claims"]
    page = {**page, "claims": [claim for claim in page["claims"] if claim["section"] == "A.2"]}
    files = [
        str(here.folder / f"{here.plan.folder(key)}/{file}")
        for key in here.plan.work
        if key[0] == "attack"
        for file in ("attack.json", "tried.csv")
    ]
    for file in map(Path, files):
        here.fill(file)
    found = {one.claim["name"]: one for one in judged(page, Records({"records": files}))}
    assert found["audit_finds_no_violation"].verdict == "supported"
    assert found["small_data_give_twice_the_bound"].verdict == "not run"
    assert [round(one.published, 2) for one in found["small_data_give_twice_the_bound"].outcomes] == [1.84, 2.16, 2.01]
    assert found["blank_image_is_best"].outcomes[0].values == {"0": pytest.approx(0.2)}
    said = [described(one.comparison, here.plan.labels["de2022_claims"]) for one in found["audit_finds_no_violation"].outcomes]
    whole = "of this program's engine: bounds above the claim, canaries: ε = 1, q = 0.06827, 500 steps, 60,000 examples"
    assert whole in said and not any("LeNet" in text for text in said if "60,000" in text)
    assert found["views_change_the_bound_hardly"].outcomes[0].values == {"0": 0.0}
    about = json.loads(Path(files[0]).read_text())
    for file in (file for file in files if file.endswith(".json")):
        write_json(Path(file), json.loads(Path(file).read_text()) | {"lower_bound": 9.0})
    assert about["lower_bound"] < 9
    again = {one.claim["name"]: one.verdict for one in judged(page, Records({"records": files}))}
    assert again["audit_finds_no_violation"] == "contradicted"


def test_what_a_scale_tries_of_all_z_decides_its_part_of_the_sentence_alone(world):
    here = world("simulate")
    page = here.plan.artifacts["de2022_claims"]
    (blank,) = (claim for claim in page["claims"] if claim["name"] == "blank_image_is_best")
    files = [here.folder / f"{here.plan.folder(key)}/tried.csv" for key in here.plan.work if key[0] == "attack"]
    for file in files:
        here.fill(file)
    (found,) = judged({**page, "claims": [blank]}, Records({"records": list(map(str, files))}))
    by_other = {one.comparison["other"]: one.verdict for one in found.outcomes if one.comparison["sides"][0]["work"]}
    assert by_other == {"noise": "not run", "mislabelled": "undecided"}


def lines_of(text: str) -> dict[tuple[str, ...], list[str]]:
    """Return a table's lines by their first two texts."""
    lines = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return {(line[0], line[1]): line[2:] for line in lines}


def test_accuracies_after_jft_stand_in_rows_of_their_own(world):
    _, text = world().make("de2022_table6")
    found = lines_of(text)
    assert found["NFNet-F3 from JFT-4B", "–"][-1] in ("88.5", "98.7")
    ours = found["Classifier layer", "NFNet-F3, Places-365 in JFT's place"]
    assert len(ours) == 8 and not any("/" in place for place in ours[1:]) and ours[-1] == "–"
    _, text = world().make("de2022_table7")
    places = [line for line in text.splitlines() if "55.1" in line]
    assert len(places) == 1 and "NF-ResNet-50 from JFT-300M" in places[0] and "(1)" not in places[0]


def test_the_summary_has_the_printed_number_beside_the_network_that_it_is_of(world):
    _, text = world().make("de2022_table1")
    printed = {
        (line.split("|")[1].strip(), part.split("/ ")[1].strip())
        for line in text.splitlines()
        for part in line.split("|")
        if "/ " in part and "ours" not in line.lower()
    }
    assert {("WRN-16-4", "56.8"), ("WRN-40-4", "81.4"), ("WRN-28-10", "94.7"), ("NF-ResNet-50", "32.4")} <= printed


def test_two_parts_of_a_network_at_one_printed_epsilon_are_two_rows(world):
    _, text = world().make("de2022_table23")
    found = lines_of(text)
    assert found["all layers", "8"][3:5] == ["1", "223939"]
    assert found["classifier layer", "8"][3:5] == ["2", "1374116"]
    assert ("fine-tuned", "ε in print") not in lines_of(world().make("de2022_table16")[1])


# --- figures ---


def test_networks_on_an_axis_are_called_by_what_they_saw(world):
    rows, drawn = world().make("de2022_figure4")
    ours = of(rows, of="ours", name="top1")
    assert [row["x"] for row in ours] == [f"places_nf_resnet{depth}" for depth in (50, 101, 152, 200)] * 2
    assert all(f"NF-ResNet-{depth} from Places-365" in drawn for depth in (50, 101, 152, 200))
    assert {(row["x"], row["value"]) for row in of(rows, of="other work", name="top1")} == {
        ("places_nf_resnet50", "75.4"),
        ("places_nf_resnet200", "79.9"),
    }


def test_a_sweep_has_the_mean_and_the_standard_error_of_five_trainings_at_each_point(world):
    rows, _ = world().make("de2022_figure2")
    assert [float(row["x"]) for row in of(rows, split="validation")] == [256, 512, 1024, 2048, 4096, 8192, 16384]
    first = rows[0]
    assert (first["n"], first["of"]) == ("5", "ours")
    assert float(first["value"]) == pytest.approx(100 * (0.7 - 0.02 * math.log2(20000 / 20000) ** 2 + 0.004 + 0.01), abs=0.2)
    assert float(first["spread"]) == pytest.approx(0.2 * math.sqrt(2.5 / 5), rel=1e-6)


def test_the_curve_stands_beside_printed_numbers_and_other_works(world):
    rows, text = world().make("de2022_figure1")
    assert len(of(rows, of="ours")) == 12 and len(of(rows, of="in print")) == 12
    assert [float(row["x"]) for row in of(rows, of="other work")] == [1, 2, 3, 1.93, 4.21, 7.42, 7.5]
    assert "Tramèr and Boneh 2021" in text


def test_views_begin_with_none(world):
    rows, text = world().make("de2022_figure3")
    assert [float(row["x"]) for row in of(rows, split="train")] == [0, 1, 2, 4, 8, 16, 32]
    assert ">none<" in text


def test_a_sweep_over_noise_is_drawn_by_the_steps_too(world):
    rows, _ = world().make("de2022_figure6")
    assert sorted({row["panel"] for row in rows}) == ["sigma", "steps"]
    assert {float(row["x"]) for row in of(rows, panel="sigma")} == {1.5, 2, 2.5, 3, 3.5, 4, 5, 6}
    assert {float(row["x"]) for row in of(rows, panel="steps")} == {2479}


def test_best_settings_are_read_off_the_trials_alone(world):
    assert not world().plan.runs_of("de2022_figure7")
    rows, _ = world().make("de2022_figure7")
    found = {int(row["x"]): (float(row["steps"]), float(row["learning_rate"]), row["edges"]) for row in rows}
    assert found[256] == (20000, 0.25, "")
    assert found[512][1] == 0.5 and found[1024][1] == 1.0 and found[16384][:2] == (2500, 4.0)
    for row in rows:
        assert float(row["epochs"]) == pytest.approx(float(row["steps"]) * float(row["x"]) / 45000)


def test_a_map_has_a_field_for_each_pair(world):
    rows, text = world().make("de2022_figure8")
    assert len(rows) == 35 and {row["n"] for row in rows} == {"5"}
    best = max(rows, key=lambda row: float(row["value"]))
    assert float(best["x"]) == 4.0
    assert "clipping norm C 100" in text


def test_a_training_is_read_at_the_last_epoch_within_each_level(world):
    rows, _ = world().make("de2022_figure9")
    epochs = {level: max(e for e in range(1, 23) if 0.5 * 1.25**e <= level) for level in (1, 2, 4, 8, 16, 32, 64)}
    shallow = [row for row in rows if row["line"] == "16" and row["panel"] == "0"]
    found = {float(row["level"]): float(row["value"]) for row in shallow}
    assert found == pytest.approx({level: 100 * (0.4 + 0.01 * epoch + 16 / 1e4) for level, epoch in epochs.items()})
    assert len(rows) == 18 * 7


def test_a_level_that_a_training_never_came_near_is_not_made_up():
    history = [{"epsilon": "1.0", "validation_top1": "0.4"}, {"epsilon": "2.0", "validation_top1": "0.5"}]
    assert at_epsilon(history, "validation_top1", 2.1) == 0.5
    assert at_epsilon(history, "validation_top1", 1.9) == 0.4
    assert at_epsilon(history, "validation_top1", 8.0) is None
    assert at_epsilon(history, "validation_top1", 0.5) is None
    assert at_epsilon(history, "averaged_validation_top1", 2.1) is None


# --- advice ---


def test_the_advice_is_the_best_point_of_each_batch_and_what_the_points_say_of_the_findings(world):
    rows, text = world().make("de2022_advice")
    assert not world().plan.runs_of("de2022_advice")
    (line,) = [line for line in text.splitlines() if line.startswith("| cifar10 | WRN-16-4 | 8 | – | 256 |")]
    assert "| 20000 |" in line and "| 0.25 |" in line
    assert "an optimal noise multiplier" in text and "holds at batch 4096" in text
    assert len(rows) == 36


def points(batches: list[int], **settings: list[float]) -> pd.DataFrame:
    about = {"dataset": "d", "model": "m", "epsilon": 8.0, "recipe.augmentation.views": None, "accuracy": 70.0}
    about |= {"varied_sigma": False, "best_sigma": 3.0}
    rows = [
        about | {"recipe.batch": batch, **{key: values[i] for key, values in settings.items()}}
        for i, batch in enumerate(batches)
    ]
    return pd.DataFrame(rows)


def test_findings_are_judged_by_the_powers_of_the_batch():
    sizes = [256, 512, 1024, 2048, 4096, 8192]
    grows_then_stays, stays_then_grows = [0.25, 0.5, 1, 2, 2, 2], [100, 100, 100, 100, 200, 400]
    said = dict(advice.judged(points(sizes, best_rate=grows_then_stays, best_epochs=stays_then_grows)))
    assert "holds, powers of the batch 1.00 and 0.00" in said["the rate follows the batch, then stays"]
    assert "holds, powers of the batch 0.00 and 1.00" in said["epochs grow with the batch"]
    said = dict(advice.judged(points(sizes, best_rate=stays_then_grows, best_epochs=grows_then_stays)))
    assert all("does not hold" in said[key] for key in ("epochs grow with the batch", "the rate follows the batch, then stays"))
    said = dict(advice.judged(points(sizes[:2], best_rate=[1, 2], best_epochs=[1, 2])))
    assert "undecided, 2 batch sizes" in said["epochs grow with the batch"]


@pytest.mark.parametrize("scale", ["demo", "simulate"])
def test_every_artifact_of_a_scale_is_made(world, scale):
    here = world(scale)
    for name in (name for name, spec in here.plan.artifacts.items() if spec["kind"] != "claims"):
        rows, text = here.make(name)
        assert rows and text


# --- claims ---


def test_every_claim_is_measured_once_all_its_records_are_there(world):
    here = world()
    files = [here.folder / file for file in here.plan.inputs_of("de2022_claims")["records"]]
    for file in files:
        here.fill(file)
    page = here.plan.artifacts["de2022_claims"]
    found = {of.claim["name"]: of.outcomes for of in judged(page, Records({"": list(map(str, files))}))}
    not_run = [name for name, outcomes in found.items() if "not run" in {outcome.verdict for outcome in outcomes}]
    assert not_run == ["small_data_give_twice_the_bound"]  # of 60,000 examples there are bounds by canaries, another attack
    decided = {name: outcomes for name, outcomes in found.items() if name not in not_run}
    effects = {name: [outcome.found.effect for outcome in outcomes] for name, outcomes in decided.items()}
    assert effects["an_optimal_noise_multiplier"] == pytest.approx([2, 2])  # 0.02 by the square of a doubling
    assert effects["best_steps_fall_then_stay"] == pytest.approx([-1, 0], abs=1e-6)
    assert effects["averaging_helps"] == pytest.approx([1, 1])
    assert effects["deeper_is_worse_without_views"] == pytest.approx([0.12, 0.24, 0.48, 0.84])


# --- of a part of the records ---


@pytest.fixture
def half(tmp_path: Path) -> World:
    """A world with the searches of three batch sizes, and of one of them a training."""
    found = World(tmp_path, "paper")
    cells = found.plan.artifacts["de2022_figure2"]["cells"][:3]
    for cell in cells:
        for study in cell["work"]["search"].values():
            for name in ("best.json", "trials.csv", "provenance.json"):
                found.fill(tmp_path / found.plan.folder(("search", study)) / name)
    run = cells[0]["work"]["train"]["3"]
    for name in ("metrics.json", "ledger.json"):
        found.fill(tmp_path / found.plan.folder(("train", run)) / name)
    return found


def test_figure_of_the_points_so_far_is_out_of_date(half):
    write_json(half.folder / half.plan.spec_file("de2022_figure2"), half.plan.artifacts["de2022_figure2"], sort_keys=False)
    assert draw_so_far(half.plan, "de2022_figure2", half.folder) == "1 of 7 cells, so far"
    drawn = half.folder / "results/figures/de2022_figure2.csv"
    rows = pd.read_csv(drawn)
    assert rows[["x", "n"]].drop_duplicates().values.tolist() == [[256, 1]]
    assert "(1 of 7 cells, so far)" in drawn.with_suffix(".svg").read_text("utf-8")
    assert artifact_state(half.plan, "de2022_figure2", half.folder) == "out of date"
    assert not (half.folder / half.plan.spec_file("de2022_figure2")).exists()
    assert draw_so_far(half.plan, "de2022_figure7", half.folder) == "3 of 7 cells, so far"
    assert draw_so_far(half.plan, "de2022_advice", half.folder) == "3 of 36 cells, so far"


def test_of_no_record_nothing_is_drawn(half):
    with pytest.raises(UserError, match="de2022_figure8: none of its 35 cells has a record yet"):
        draw_so_far(half.plan, "de2022_figure8", half.folder)
    with pytest.raises(UserError, match="de2022_claims is a page of claims: python -m dpvision claims writes it"):
        draw_so_far(half.plan, "de2022_claims", half.folder)


def test_over_mu_a_printed_number_stands_where_the_trainings_of_its_cell_do(world):
    rows, _ = world().make("de2022_mu")
    ours = {row["budget.nominal"]: row["x"] for row in of(rows, of="ours", model="wrn16_4")}
    printed = {row["budget.nominal"]: row["x"] for row in of(rows, of="in print", model="wrn16_4")}
    assert printed == ours and len(ours) == 6
    assert float(ours["8.0"]) == pytest.approx(4 / 3)
    assert not of(rows, of="other work")  # nobody trained these here, and no μ of them is known


def test_the_price_of_searches_is_by_the_accountants_of_covered_ones_and_of_the_plan_alone(world):
    rows, text = world("demo").make("de2022_search_price")
    assert [row["search"] for row in rows] == ["tune_256", "tune"] and all(row["trials"] == "2" for row in rows)
    row = rows[0]
    trial = Mechanism(float(row["sampling_rate"]), float(row["sigma"]), int(row["steps"]))
    assert float(row["epsilon_run"]) == pytest.approx(trial.epsilon(1e-4)) == pytest.approx(8, abs=1e-3)
    run, composed, covered = (float(row[f"epsilon_{name}"]) for name in ("run", "all_composed", "covered"))
    assert 3 * run > composed > run and covered > run
    assert composed >= Mechanism(trial.q, trial.sigma, 3 * trial.steps).epsilon(1e-4)
    assert covered >= epsilon_of(selection_rdp(trial.rdp(), 2) + trial.rdp(), 1e-4)
    assert covered < 1.02 * epsilon_of(selection_rdp(trial.rdp(), 2) + trial.rdp(), 1e-4)
    assert "| digits | tune_256 | 2 |" in text and "theorem 2" in text
    assert not any(world("demo").plan.work_of("de2022_search_price"))
