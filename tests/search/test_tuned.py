"""A group of cells that a search tunes, from its configuration to its table, with workers killed at any moment."""

import csv
import json
import random
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import jobs
import pytest

from dpvision.plan import specs
from dpvision.privacy.accounting import calibrate
from dpvision.reporting.keep import keep
from dpvision.search.study import conclude
from dpvision.verify import records
from dpvision.verify.place import opened

KEYS = ["model.groups", "recipe.clip", "recipe.epochs", "recipe.optimizer.learning_rate"]


@pytest.fixture(scope="session")
def study(made) -> tuple[str, specs.Spec]:
    """Return the name and the spec of the search that tunes."""
    ((name, spec),) = ((name, spec) for name, spec in made.plan.of("search").items() if sorted(spec["space"]) == KEYS)
    return name, spec


def rows(file: Path) -> list[dict[str, str]]:
    with open(file, encoding="utf-8", newline="") as lines:
        return [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(lines)]


def test_each_trial_has_its_own_values_noise_and_steps_at_one_epsilon(made, study):
    name, spec = study
    trials = rows(made.root / made.plan.folder(("search", name)) / "trials.csv")
    q = specs.sampling_rate(specs.with_values(spec["run"], {"recipe.batch": 256}))
    for trial in trials:
        assert 1e-3 <= float(trial["recipe.optimizer.learning_rate"]) <= 1e-2
        assert 0.5 <= float(trial["recipe.clip"]) <= 3.0
        steps = int(int(trial["recipe.epochs"]) / q)
        assert (int(trial["steps"]), float(trial["sigma"])) == (steps, calibrate(7.42, 1e-4, q, steps))
        assert 7.4 < float(trial["epsilon"]) <= 7.42
    assert len({trial["recipe.clip"] for trial in trials}) == len(trials) == 3


def test_the_trainings_have_what_the_trial_of_least_loss_had(made, study):
    name, _ = study
    folder = made.root / made.plan.folder(("search", name))
    best, trials = json.loads((folder / "best.json").read_text()), rows(folder / "trials.csv")
    least = min(trials, key=lambda trial: float(trial["validation_loss"]))
    assert {key: str(value) for key, value in best["values"].items()} == {key: least[key] for key in KEYS}
    assert best["validation_loss"] == float(least["validation_loss"])
    for cell in made.plan.artifacts["tuned"]["cells"]:
        for run in cell["work"]["train"].values():
            trained = json.loads((made.root / made.plan.folder(("train", run)) / "spec.json").read_text())
            assert {key: specs.value_at(trained, key) for key in KEYS} == best["values"]
            assert trained["found_by"] == dict.fromkeys(KEYS, name)


def test_the_table_has_the_best_trial_and_the_ten_best_beside_the_trainings(made, study):
    trials = rows(made.root / made.plan.folder(("search", study[0])) / "trials.csv")
    accuracies = [100 * float(trial["validation_top1"]) for trial in sorted(trials, key=lambda t: float(t["validation_loss"]))]
    (row,) = rows(made.root / "results/tiny/tables/tuned.csv")
    assert float(row["best_trial"]) == pytest.approx(accuracies[0])
    assert (float(row["ten_best"]), row["ten_best_n"]) == (pytest.approx(sum(accuracies) / 3), "3")
    assert (row["statistic"], row["n"], row["spread_is"]) == ("mean", "2", "standard_deviation")
    text = (made.root / "results/tiny/tables/tuned.md").read_text()
    assert "by their loss on the held-out examples" in text and "mean of the ten best" in text


@pytest.mark.parametrize("missing", [0, 1])
def test_the_table_is_made_of_the_trainings_that_are_there_and_their_search(made, study, tmp_path, missing):
    (cell,) = made.plan.artifacts["tuned"]["cells"]
    shown = replace(made.plan, artifacts={"tuned": made.plan.artifacts["tuned"]})
    for key in shown.work_of("tuned"):
        shutil.copytree(made.root / made.plan.folder(key), tmp_path / made.plan.folder(key))
    for run in list(cell["work"]["train"].values())[:missing]:
        shutil.rmtree(tmp_path / made.plan.folder(("train", run)))
    assert keep(shown, tmp_path, tmp_path / "kept") == ["tuned"]
    (kept,), (whole,) = (rows(folder / "tables/tuned.csv") for folder in (tmp_path / "kept", made.root / "results/tiny"))
    assert kept["n"] == str(2 - missing)
    assert [kept[key] for key in ("best_trial", "ten_best", "found")] == [
        whole[key] for key in ("best_trial", "ten_best", "found")
    ]


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("validation_loss", 0.125, "validation_loss by trials.csv: expected"),
        ("edges", [], "edges by the spec: expected"),
        ("trials", 7, "trials by trials.csv: expected 3"),
    ],
)
def test_a_change_of_what_it_found_is_noticed(unpacked, study, key, value, problem):
    name, _ = study
    file = unpacked / f"results/tiny/studies/{name}/best.json"
    with opened(unpacked) as place:
        assert list(records.study(place, ("search", name))) == []
        file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
        assert problem in " ".join(map(str, records.study(place, ("search", name))))


@pytest.mark.slow
def test_killed_at_any_moment_it_comes_to_the_same_trials(made, study, tmp_path):
    name, spec = study
    undisturbed, here = made.root / made.plan.folder(("search", name)), tmp_path / name
    data, choices = made.root / made.plan.data_of(("search", name)), made.root / "results/tiny/choices"
    chance, ends = random.Random(0), []
    while not ends or ends[-1]:
        arguments = (spec, data, here, here / "workers/0.json", choices, 512, 1000)
        job = jobs.Job(tmp_path / f"{len(ends)}.log", jobs.work_until_moment, chance.randint(8, 40), *arguments)
        ends.append(job.end())
    assert ends.count(-signal.SIGKILL) == len(ends) - 1 >= 2
    conclude(spec, here, here / "best.json", here / "trials.csv", here / "provenance.json")
    assert (here / "best.json").read_bytes() == (undisturbed / "best.json").read_bytes()
    assert rows(here / "trials.csv") == rows(undisturbed / "trials.csv")
    for number in range(3):
        histories = [rows(folder / f"trials/{number}/history.csv") for folder in (here, undisturbed)]
        assert histories[0] == histories[1]
