"""Every change in an archive or in results is found and named, and what was not changed is found to hold."""

import csv
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

import pytest

from dpvision.archive.contents import MANIFEST
from dpvision.errors import UserError
from dpvision.files import file_digest, read_json, write_json, write_text
from dpvision.plan import specs
from dpvision.plan.stages import STAGES
from dpvision.privacy.accounting import Mechanism, prv_epsilon
from dpvision.privacy.ledger import without_curve
from dpvision.source import ROOT
from dpvision.verify.again import comparison
from dpvision.verify.job import write_verdict
from dpvision.verify.verdict import verify

WORDS = {name: stage.words for name, stage in STAGES.items()}

# Of a process that may have neither torch nor snakemake.
WITHOUT = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "snakemake", "optuna", "rocrate"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refused())
from dpvision.__main__ import main
sys.argv[0] = "dpvision"
main()
"""


class Damaged:
    """An unpacked archive, its files by what they are."""

    def __init__(self, folder: Path, plan) -> None:
        self.folder, self.plan = folder, plan
        self.results = folder / plan.results
        kinds = {
            "private": lambda spec: spec["budget"] and not spec["recipe"]["simulate"],
            "simulated": lambda spec: spec["recipe"]["simulate"],
            "plain": lambda spec: spec["budget"] is None,
        }
        self.runs = {what: next(run for run, spec in plan.runs.items() if is_it(spec)) for what, is_it in kinds.items()}

    def run(self, name: str, what: str = "private") -> Path:
        return self.results / "runs" / self.runs[what] / name

    def edit(self, file: Path, *keys, to) -> None:
        """Change the JSON value at these keys; `to` is the new one, or a function of what was there."""
        whole = value = json.loads(file.read_text())
        for key in keys[:-1]:
            value = value[key]
        value[keys[-1]] = to(value[keys[-1]]) if callable(to) else to
        file.write_text(json.dumps(whole))

    def edit_csv(self, file: Path, row: int, column: str, to: str) -> None:
        with open(file, newline="") as opened:
            rows = list(csv.DictReader(opened))
        rows[row][column] = to
        with open(file, "w", newline="") as opened:
            writer = csv.DictWriter(opened, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    def forge(self) -> None:
        """Make the manifest fit what is there now."""
        files = sorted(file for file in self.folder.rglob("*") if file.is_file() and file.name != MANIFEST)
        text = "".join(f"{file_digest(file)}  {file.relative_to(self.folder).as_posix()}\n" for file in files)
        write_text(self.folder / MANIFEST, text)

    def problems(self) -> list[str]:
        self.forge()
        return [f"{p['where']}: {p['what']}: {p['expected']} | {p['found']}" for p in verify(self.folder).problems]


@pytest.fixture
def damaged(unpacked, made):
    return Damaged(unpacked, made.plan)


ELSEWHERE = ("audit", "weights", "features", "by_class", "attack")  # made on demand, and of papers on public weights


@pytest.mark.slow
def test_an_archive_holds_packed_or_not_and_so_does_a_folder_of_results(made, archive, unpacked):
    looked_at = Counter(WORDS[stage][1] for stage, _ in made.plan.kept())
    for place in (archive, unpacked, made.root / made.plan.results):
        verdict = verify(place)
        assert verdict.problems == []
        assert set(looked_at) == {words[1] for stage, words in WORDS.items() if stage not in ELSEWHERE}
        assert looked_at.items() <= verdict.checked.items()
        assert verdict.checked["artifacts"] == len(made.plan.artifacts)
    assert any("a folder of results has no manifest" in text for text in verdict.not_checked)


@pytest.mark.slow
def test_the_pipeline_writes_the_verdict_and_stops_where_something_does_not_hold(archive, damaged, tmp_path):
    out, none, log = (tmp_path / name for name in ("verified.txt", "none.txt", "log"))
    write_verdict(str(archive), str(out), str(log))
    assert out.read_text() == log.read_text() == f"{verify(archive)}\n"
    damaged.run("ledger.json").unlink()
    with pytest.raises(UserError, match=r"ledger\.json: file missing"):
        write_verdict(str(damaged.folder), str(none), str(log))
    assert "DOES NOT HOLD" in log.read_text() and not none.exists()


@pytest.mark.slow
def test_it_needs_no_torch_and_no_snakemake_and_prints_for_programs_too(archive):
    words = [sys.executable, "-c", WITHOUT, "verify", str(archive), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=archive.parent)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["holds"] is True


@pytest.mark.slow
def test_what_does_not_hold_is_an_exit_code_and_a_line_that_names_it(damaged):
    damaged.edit(damaged.run("ledger.json"), "epsilon", "rdp", to=0.5)
    done = subprocess.run([sys.executable, "-m", "dpvision", "verify", str(damaged.folder)], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"DOES NOT HOLD  {damaged.plan.results}/runs/{damaged.runs['private']}/ledger.json: SHA-256" in done.stdout
    assert "epsilon.rdp, recomputed: expected" in done.stdout


# --- with the manifest as it was ---


def test_a_flipped_byte_is_found_in_the_folder_and_in_the_file(damaged, archive, tmp_path):
    weights = damaged.run("weights.safetensors")
    bits = bytearray(weights.read_bytes())
    bits[-1] ^= 1
    weights.write_bytes(bits)
    assert {(p["where"].rsplit("/", 1)[1], p["what"]) for p in verify(damaged.folder).problems} == {
        ("weights.safetensors", "SHA-256"),
        ("weights.safetensors", "SHA-256 by provenance.json"),
    }
    bits = bytearray(archive.read_bytes())
    with ZipFile(archive) as packed:
        bits[packed.getinfo("source/Snakefile").header_offset + 200] ^= 1
    (tmp_path / "flipped.zip").write_bytes(bits)
    found = verify(tmp_path / "flipped.zip").problems
    assert ("source/Snakefile", "the archive is damaged there") in {(p["where"], p["what"]) for p in found}


def test_a_file_taken_away_and_a_file_too_many_are_found(damaged):
    damaged.run("ledger.json").unlink()
    write_text(damaged.folder / "results/more.txt", "more\n")
    found = {(p["where"], p["what"]) for p in verify(damaged.folder).problems}
    assert (f"{damaged.plan.results}/runs/{damaged.runs['private']}/ledger.json", "file missing") in found
    assert ("results/more.txt", "file that the manifest does not name") in found


def test_a_packed_file_that_was_cut_short_or_has_no_plan_cannot_be_verified(archive, tmp_path):
    (tmp_path / "cut.zip").write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(UserError, match="cut.zip is not an archive that can be opened"):
        verify(tmp_path / "cut.zip")
    with ZipFile(tmp_path / "other.zip", "w", ZIP_STORED) as other:
        other.writestr("archive.json", "{}")
    with pytest.raises(UserError, match="plan.json is not there"):
        verify(tmp_path / "other.zip")
    with pytest.raises(UserError, match="neither an archive's folder .* nor one of results"):
        verify(tmp_path)
    with pytest.raises(UserError, match="nowhere is not there"):
        verify(tmp_path / "nowhere")


# --- with a manifest that was made to fit ---


@pytest.mark.slow
def test_a_record_that_was_taken_away_is_missed(damaged):
    shutil.rmtree(damaged.run("."))
    problems = damaged.problems()
    for name in specs.RECORD:
        assert any(
            p.startswith(f"{damaged.plan.results}/runs/{damaged.runs['private']}/{name}: file missing") for p in problems
        )


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["hessian", "activations", "search"])
def test_an_analysis_or_a_study_that_was_taken_away_is_missed(damaged, stage):
    key = stage, next(iter(damaged.plan.of(stage)))
    shutil.rmtree(damaged.folder / damaged.plan.folder(key))
    problems = damaged.problems()
    for file in damaged.plan.record(key):
        assert any(f"{file}: file missing: part of the record of a {WORDS[stage][0]}" in problem for problem in problems)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["hessian", "activations"])
def test_an_analysis_of_another_spec_or_of_other_data_than_its_own_is_found(damaged, stage):
    folder = damaged.folder / damaged.plan.folder((stage, next(iter(damaged.plan.of(stage)))))
    damaged.edit(folder / "provenance.json", "spec", to="0123456789ab")
    damaged.edit(folder / "provenance.json", "data", to="0123456789ab")
    problems = damaged.problems()
    assert any(f"{folder.name}/provenance.json: digest of the spec" in problem for problem in problems)
    assert any(f"{folder.name}/provenance.json: digest of the data" in problem for problem in problems)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["data", "search", "train", "hessian", "activations"])
def test_a_spec_in_the_plan_that_is_not_that_of_its_folder_is_found(damaged, stage):
    name = next(iter(damaged.plan.of(stage)))
    damaged.edit(damaged.folder / "plan.json", "work", stage, name, "kind", to="another")
    assert any("in plan.json" in problem or problem.startswith("plan.json: ") for problem in damaged.problems())


# --- of another version ---


def test_an_archive_of_another_format_is_refused_by_name_and_says_what_verifies_it(damaged):
    damaged.edit(damaged.folder / "archive.json", "format", to=1)
    with pytest.raises(
        UserError, match=r"unpacked was .* another version .* \(format 1, here 3\).*make setup in source/\) verifies it"
    ):
        verify(damaged.folder)
    about = read_json(damaged.folder / "archive.json")
    write_json(damaged.folder / "archive.json", {key: value for key, value in about.items() if key != "format"})
    with pytest.raises(UserError, match=r"\(format 1, here 3\): nothing in it was verified"):
        verify(damaged.folder)  # of a time when it had none


def test_results_of_another_format_are_refused_by_name_and_say_what_makes_them_anew(made, tmp_path):
    results = Path(shutil.copytree(made.root / made.plan.results, tmp_path / "tiny"))
    spec = read_json(results / "plan/table1.json")
    cells = [cell["at"] | {"runs": cell["work"]["train"]} for cell in spec["cells"]]
    for old, number in (({"cells": cells}, 1), ({"columns": "protocol"}, 2)):
        write_json(results / "plan/table1.json", spec | old)
        said = rf"plan/table1.json was written by another version .*\(format {number}, here 3\).*`python -m dpvision keep`"
        with pytest.raises(UserError, match=said):
            verify(results)


def test_artifact_that_was_never_made_is_no_fault(made, tmp_path):
    """A dry run of another configuration leaves a plan of artifacts whose runs nobody made."""
    results = Path(shutil.copytree(made.root / made.plan.results, tmp_path / "tiny"))
    spec = read_json(results / "plan/table1.json")
    cells = [cell | {"work": {"train": {"1": f"never-{i:012}"}}} for i, cell in enumerate(spec["cells"])]
    write_json(results / "plan/table9.json", spec | {"artifact": "table9", "cells": cells})
    for file in results.glob("tables/table4.*"):
        file.unlink()
    verdict = verify(results)
    assert verdict.problems == []
    assert any(f"not made: {len(cells)} records of 2 artifacts: table4, table9" in text for text in verdict.remarks)
    assert verdict.checked["trainings"] == len(made.plan.runs)


def test_record_below_an_artifact_that_was_made_is_missed(made, tmp_path):
    results = Path(shutil.copytree(made.root / made.plan.results, tmp_path / "tiny"))
    run = next(name for name in made.plan.runs_of("table1"))
    shutil.rmtree(results / "runs" / run)
    drawn = Path(made.plan.targets("tuned_trials")[0]).relative_to(made.plan.results)
    (results / drawn).unlink()
    problems = [f"{problem['where']}: {problem['what']}" for problem in verify(results).problems]
    assert {f"runs/{run}/{name}: file missing" for name in specs.RECORD} <= set(problems)
    assert f"{drawn}: file missing" in problems


def test_an_edited_cell_of_a_table_is_named_by_row_and_column(damaged):
    table = damaged.results / "tables/table1.csv"
    with open(table, newline="") as file:
        before = next(csv.DictReader(file))["ours"]
    damaged.edit_csv(table, 0, "ours", "99.5")
    (problem,) = damaged.problems()
    assert problem.startswith(f"{damaged.plan.results}/tables/table1.csv: row 1 (digits scaleresnet9 7.42 top1), ours")
    assert problem.endswith(f"{before} | 99.5")


@pytest.mark.slow
def test_an_edited_line_of_a_table_for_print_or_number_of_a_figure_is_named(damaged):
    for kind in ("md", "tex"):
        file = damaged.results / f"tables/table4.{kind}"
        file.write_text(file.read_text().replace("ScaleResNet-9", "ResNet-10"))
    damaged.edit_csv(damaged.results / "figures/figure3.csv", 1, "test_top1", "0.99")
    problems = damaged.problems()
    for name in ("tables/table4.md: line", "tables/table4.tex: line", "figures/figure3.csv: row 2"):
        assert any(f"{damaged.plan.results}/{name}" in problem for problem in problems)


@pytest.mark.parametrize("accountant", ["rdp", "prv", "pld"])
def test_an_epsilon_that_does_not_follow_from_its_ledger_is_found_by_each_accountant(damaged, accountant):
    damaged.edit(damaged.run("ledger.json"), "epsilon", accountant, to=lambda epsilon: epsilon * 0.9999)
    problems = damaged.problems()
    assert any(f"ledger.json: epsilon.{accountant}, recomputed" in problem for problem in problems)


def test_a_ledger_without_the_privacy_curve_is_verified_by_what_it_names(damaged):
    ledger = damaged.run("ledger.json")
    added = ("format", "large_delta")
    write_json(ledger, {key: value for key, value in without_curve(read_json(ledger)).items() if key not in added})
    assert not any("recomputed" in problem for problem in damaged.problems())
    damaged.edit(ledger, "epsilon", "prv", to=1.0)
    assert any("ledger.json: epsilon.prv, recomputed" in problem for problem in damaged.problems())


@pytest.mark.parametrize("key", ["mu", "advantage", "true_positives"])
def test_an_edited_privacy_curve_is_found(damaged, key):
    damaged.edit(damaged.run("ledger.json"), "curve", key, to=lambda value: value * 0.999)
    assert any(f"ledger.json: curve.{key}, recomputed" in problem for problem in damaged.problems())


def test_a_sigma_that_the_budget_does_not_give_is_found_though_its_epsilons_follow(damaged):
    ledger = damaged.run("ledger.json")
    said = read_json(ledger)
    mechanism = Mechanism(said["sampling_rate"], said["noise_multiplier"] * 1.01, said["steps"]["made"])
    said["noise_multiplier"] = mechanism.sigma
    said["epsilon"] |= {"rdp": mechanism.epsilon(said["delta"]), "prv": prv_epsilon(mechanism, said["delta"])}
    write_json(ledger, said)
    assert any("ledger.json: noise_multiplier by the spec" in problem for problem in damaged.problems())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "to", "named"),
    [
        (("sampling_rate",), 0.01, "sampling_rate by the spec"),
        (("steps", "made"), 3, "steps made by history.csv"),
        (("steps", "planned"), 3, "steps.planned, recomputed"),
        (("delta",), 1e-9, "delta, recomputed"),
        (("clip",), 9.0, "clip, recomputed"),
        (("examples",), 50_000, "examples, recomputed"),
        (("private",), False, "private"),
        (("searches", 0, "epsilon_all_composed"), 1.0, "searches[0].epsilon_all_composed, recomputed"),
    ],
)
def test_every_number_of_a_ledger_agrees_with_the_spec(damaged, keys, to, named):
    damaged.edit(damaged.run("ledger.json"), *keys, to=to)
    assert any(f"ledger.json: {named}" in problem for problem in damaged.problems())


@pytest.mark.slow
def test_a_simulation_s_ledger_and_one_without_a_budget_are_looked_at_too(damaged):
    damaged.edit(damaged.run("ledger.json", "simulated"), "simulated", "epsilon", "rdp", to=0.5)
    damaged.edit(damaged.run("ledger.json", "plain"), "private", to=True)
    problems = damaged.problems()
    assert any("ledger.json: simulated.epsilon.rdp, recomputed" in problem for problem in problems)
    assert any("ledger.json: what a run without a budget says" in problem for problem in problems)


@pytest.mark.slow
def test_a_spec_that_is_not_the_one_that_its_folder_names_is_found(damaged):
    damaged.edit(damaged.run("spec.json"), "recipe", "clip", to=2.0)
    problems = damaged.problems()
    assert any("spec.json: name by the spec's digest" in problem for problem in problems)
    assert any("provenance.json: digest of the spec" in problem for problem in problems)


@pytest.mark.slow
def test_an_accuracy_is_the_last_line_s_of_the_history_though_the_table_was_made_to_fit(damaged):
    damaged.edit(damaged.run("metrics.json"), "last_step", "test", "top1", to=0.99)
    problems = damaged.problems()
    assert any("metrics.json: last_step.test.top1 by history.csv" in problem for problem in problems)


def test_an_edited_history_is_found_by_its_epsilons_its_steps_and_its_figure(damaged):
    damaged.edit_csv(damaged.run("history.csv"), 0, "epsilon", "0.1")
    damaged.edit_csv(damaged.run("history.csv", "plain"), 0, "step", "1")
    problems = damaged.problems()
    assert any("history.csv: epoch 1: epsilon after" in problem for problem in problems)
    assert any("history.csv: steps at the ends of epochs" in problem for problem in problems)
    damaged.edit_csv(damaged.run("history.csv"), 0, "test_top1", "0.1")
    assert any("figures/figure3.csv: row" in problem for problem in damaged.problems())


@pytest.mark.slow
def test_a_run_on_other_data_than_the_archive_s_is_found(damaged):
    damaged.edit(damaged.run("provenance.json"), "data", to="0123456789ab")
    assert any("provenance.json: digest of the data digits" in problem for problem in damaged.problems())


@pytest.mark.slow
def test_data_that_are_described_otherwise_are_found(damaged):
    folder = next((damaged.folder / "results/data/prepared").iterdir())
    damaged.edit(folder / "dataset.json", "sha256", "test_labels.npy", to="0" * 64)
    problems = damaged.problems()
    assert any("dataset.json: digest of what it says" in problem for problem in problems)
    assert any("provenance.json: digest of the data digits" in problem for problem in problems)


def test_a_search_that_found_something_else_than_its_trials_say_is_found(damaged):
    study = damaged.results / "studies" / next(iter(damaged.plan.of("search")))
    (key, value) = next(iter(read_json(study / "best.json")["values"].items()))
    damaged.edit(study / "best.json", "values", key, to=5 - value)
    damaged.edit(study / "best.json", "privacy", "steps", to=1)
    problems = damaged.problems()
    assert any("best.json: values by trials.csv" in problem for problem in problems)
    assert any("best.json: privacy.steps by the spec" in problem for problem in problems)
    assert any(f"spec.json: {key}, as {study.name} found it" in problem for problem in problems)


def test_source_that_was_edited_is_found_by_its_own_digests(damaged):
    write_text(damaged.folder / "source/Snakefile", "# changed\n")
    (problem,) = damaged.problems()
    assert problem.startswith("source/Snakefile: SHA-256 by source.json")


@pytest.mark.slow
def test_a_record_that_cannot_be_read_is_named_and_the_others_are_looked_at_all_the_same(damaged):
    damaged.run("metrics.json").write_text("{")
    damaged.edit(damaged.run("ledger.json", "plain"), "private", to=True)
    problems = damaged.problems()
    name = damaged.runs["private"]
    assert any(p.startswith(f"{damaged.plan.results}/runs/{name}: cannot be checked to its end") for p in problems)
    assert any("table1: cannot be checked to its end" in problem for problem in problems)
    assert any("what a run without a budget says" in problem for problem in problems)


# --- what holds and should be known ---


@pytest.mark.slow
def test_how_records_came_about_is_said_without_being_a_fault_of_theirs(damaged):
    provenance = damaged.run("provenance.json")
    (session,) = read_json(provenance)["sessions"]
    damaged.edit(provenance, "sessions", to=[session, {**session, "code": "0123456789ab"}])
    damaged.edit(provenance, "lock", to="0123456789ab")
    damaged.edit(provenance, "commit", to="0" * 40 + "+")
    damaged.edit(damaged.folder / "archive.json", "changed", to=["Snakefile"])
    damaged.edit(damaged.folder / "source/source.json", "changed", to=["Snakefile"])
    damaged.forge()
    verdict = verify(damaged.folder)
    assert {Path(problem["where"]).suffix for problem in verdict.problems} <= {".md", ".tex"}  # whose notes do not tell it
    said = " ".join(verdict.remarks)
    assert "THE SOURCE IN THE ARCHIVE IS NOT AS COMMITTED: 1 files differ: Snakefile" in said
    for text in ("made by a run that was resumed", "resumed with other code", "made with another lock"):
        assert f"1 trainings: {text}" in said
    assert "trainings: made from a dirty tree" in said


# --- made again ---


def test_an_artifact_made_again_is_equal_or_differs_by_so_much_in_each_cell(damaged):
    again = damaged.folder / "source" / damaged.plan.results / "tables/table1.csv"
    again.parent.mkdir(parents=True)
    shutil.copy(damaged.results / "tables/table1.csv", again)
    assert "equal to the last digit" in comparison(damaged.folder, "table1")
    damaged.edit_csv(again, 0, "ours", "50.0")
    said = comparison(damaged.folder, "table1")
    assert "row 1 (digits scaleresnet9 7.42 top1), ours: archived" in said
    assert "again 50.0, differs by" in said
    with pytest.raises(UserError, match="the archive has no table9; it has: table1"):
        comparison(damaged.folder, "table9")


def test_what_has_secret_noise_is_not_checked_for_coming_out_so_again(damaged):
    assert not any("secret" in text for text in verify(damaged.folder).not_checked)
    recipe = next(iter(damaged.plan.runs.values()))["recipe"]
    for run in damaged.plan.runs:
        damaged.edit(damaged.folder / "plan.json", "work", "train", run, "recipe", to=recipe | {"noise": "secret"})
    count = len(damaged.plan.runs)
    assert any(f"that {count} trainings and searches come out so again" in text for text in verify(damaged.folder).not_checked)
    again = damaged.folder / "source" / damaged.plan.results / "tables/table1.csv"
    again.parent.mkdir(parents=True)
    shutil.copy(damaged.results / "tables/table1.csv", again)
    damaged.edit_csv(again, 0, "ours", "50.0")
    assert "behind it have secret noise: nobody can repeat them" in comparison(damaged.folder, "table1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name the archive"),
        (["other.zip", "table1"], "other.zip cannot be verified"),
        (["x", "table1"], "x is not there: name an archive"),
    ],
)
def test_what_is_no_archive_is_not_reproduced(words, said, tmp_path):
    with ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a", "b")
    command = [sys.executable, str(ROOT / "envs/reproduce.py"), *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode
    assert said in done.stderr
