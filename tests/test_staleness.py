"""Each change makes what is stale run again: dry runs in a copy of the project whose jobs only write their outputs."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from copied import ROOT, copy_project

pytestmark = pytest.mark.slow

PARTS = ("Snakefile", "workflow", "config", "profiles", "envs")
PAPER = "config/papers/scalenorm/paper.yaml"
CLAIMS = "config/papers/scalenorm/claims.yaml"
OVERLAY = "config/papers/scalenorm/demo.yaml"
DEMO = "config/scales/demo.yaml"

# Stands in for every script: whole outputs in no time; the provenance says which code the copy has.
STAND_IN = """
import json
from pathlib import Path
from dpvision.code import code_digest
from dpvision.files import write_json
stage = {"train": "dpvision.training.run"}.get(snakemake.rule, "dpvision.errors")
for output in map(Path, snakemake.output):
    made_by = json.dumps({"stage": stage, "code": code_digest(stage)})
    output.write_text(made_by if output.name == "provenance.json" else f"{output}\\n")
if "plan" in snakemake.output.keys():
    write_json(snakemake.output.plan, snakemake.params.spec, sort_keys=False)
"""


def run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder / "workflow/scripts")}
    done = subprocess.run([sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def snakemake(folder: Path, *words: str, settings: tuple[str, ...] = ()) -> str:
    return run(folder, "snakemake", "all", *words, "--cores", "8", "--config", "scale=demo", *settings)


def jobs(folder: Path, *targets: str, settings: tuple[str, ...] = ()) -> dict[str, int]:
    """Count the jobs that would run, rule by rule."""
    said = snakemake(folder, *targets, "--dry-run", settings=settings)
    rules = re.findall(r"^(?:local)?rule (\w+):", said, re.MULTILINE)
    return dict(Counter(rule for rule in rules if rule != "all"))


def copy(source: Path, to: Path) -> Path:
    for part in (*PARTS, "results", ".snakemake"):
        path = source / part
        if path.is_dir():
            shutil.copytree(path, to / part, symlinks=True)  # with its times
        elif path.exists():
            to.mkdir(exist_ok=True)
            shutil.copy2(path, to / part)
    return to


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("staleness") / "finished"
    copy_project(folder, small=True)
    for script in (folder / "workflow/scripts").glob("*.py"):
        script.write_text(STAND_IN)
    snakemake(folder)
    assert jobs(folder) == {}
    return folder


@pytest.fixture
def project(finished, tmp_path) -> Path:
    return copy(finished, tmp_path / "project")


def change(project: Path, file: str, old: str, new: str) -> None:
    path = project / file
    text = path.read_text()
    assert old in text, f"{old!r} is not in {file}"
    path.write_text(text.replace(old, new, 1))


EVERY_RUN = {
    "search_worker": 4,
    "search": 2,
    "train": 18,
    "analyse_hessian": 6,
    "analyse_activations": 6,
    "table": 3,
    "figure": 4,
    "verdicts": 1,
}

STALE = {
    "a seed more": (
        PAPER,
        "seeds: [34,",
        "seeds: [7, 34,",
        {"train": 6, "analyse_hessian": 2, "analyse_activations": 2, "table": 3, "figure": 3, "verdicts": 1},
    ),
    "a seed more at the end": (
        PAPER,
        "113]",
        "113, 7]",
        {"train": 6, "analyse_hessian": 2, "analyse_activations": 2, "table": 3, "figure": 2, "verdicts": 1},
    ),
    "a seed less": (PAPER, ", 113]", "]", {"table": 3, "figure": 2, "verdicts": 1}),
    "another ε": (PAPER, "[2.89,", "[3.0,", {"train": 6, "table": 1, "verdicts": 1}),
    "another δ": (OVERLAY, "delta: 1.0e-4", "delta: 1.0e-5", EVERY_RUN),
    "more iterations for the Hessian": (
        OVERLAY,
        "iterations: 100",
        "iterations: 101",
        {"analyse_hessian": 6, "table": 1, "figure": 1, "verdicts": 1},
    ),
    "another learning rate": (OVERLAY, "learning_rate: 4.0e-3", "learning_rate: 6.0e-3", EVERY_RUN),
    "one more choice for the search": (
        OVERLAY,
        "[1, 4, 8, channels]",
        "[1, 2, 4, 8, channels]",
        EVERY_RUN,
    ),
    "another validation split": ("config/datasets.yaml", "  validation: 180", "  validation: 200", EVERY_RUN),
    "fewer bins": (
        PAPER,
        "hessian: # appendix A",
        "activations: {bins: 40}\nhessian: # appendix A",
        {"analyse_activations": 6, "figure": 1, "verdicts": 1},
    ),
    "a published number": ("config/papers/scalenorm/published.yaml", "value: 65.6", "value: 65.7", {"table": 1, "verdicts": 1}),
    "another statistic": (PAPER, "statistic: best", "statistic: median", {"table": 1}),
    "the code of all figures": (
        "workflow/scripts/dpvision/reporting/figures.py",
        "fontsize=10",
        "fontsize=11",
        {"figure": 4, "verdicts": 1},
    ),
    "the code of a kind of figure": (
        "workflow/scripts/dpvision/reporting/kinds/curves.py",
        '"epoch"',
        '"epoch" ""',
        {"figure": 1},
    ),
    "the code of a kind of table": (
        "workflow/scripts/dpvision/reporting/kinds/accuracy.py",
        "DECIMALS = 2",
        "DECIMALS = 3",
        {"table": 2},
    ),
    "the figures' style": (
        "workflow/scripts/dpvision/reporting/figures.mplstyle",
        "font.size: 9",
        "font.size: 10",
        {"figure": 4, "verdicts": 1},
    ),
    "the code of all tables": ("workflow/scripts/dpvision/reporting/tables.py", '"not run"', '"was not run"', {"table": 3}),
    "what a claim says": (CLAIMS, "claimed: {above: -2, below: 2}", "claimed: {above: -3, below: 3}", {"verdicts": 1}),
    "another claim": (CLAIMS, "\nlower_trace:", "\nless_trace:", {"verdicts": 1}),
    "the rules of verdicts": (
        "workflow/scripts/dpvision/reporting/verdicts.py",
        "LEVEL = 0.95",
        "LEVEL = 0.9",
        {"verdicts": 1},
    ),
}


@pytest.mark.parametrize(("file", "old", "new", "expected"), STALE.values(), ids=STALE.keys())
def test_reruns_exactly_what_is_stale_after(project, file, old, new, expected):
    change(project, file, old, new)
    assert jobs(project) == expected


def test_reruns_the_recipes_runs_after_two_of_its_values_are_swapped(project):
    change(project, PAPER, "clip: 1.5", "clip: 0.5")
    change(project, PAPER, "factor: 0.5", "factor: 0.25")
    before = jobs(project)
    change(project, PAPER, "clip: 0.5", "clip: 0.25")
    change(project, PAPER, "factor: 0.25", "factor: 0.5")
    assert before == jobs(project) == EVERY_RUN
    snakemake(project)
    change(project, PAPER, "clip: 0.25", "clip: 0.5")
    change(project, PAPER, "factor: 0.5", "factor: 0.25")
    assert jobs(project) == EVERY_RUN


FRESH = {
    "keys in another order": (PAPER, "    batch: 1024\n    epochs: 50\n", "    epochs: 50\n    batch: 1024\n"),
    "a comment": (DEMO, "workers: 2", "# two are enough\nworkers: 2"),
    "a display label": (PAPER, "label: ResNet-9", "label: plain ResNet-9"),
    "a title": (PAPER, "title: Best of the repetitions", "title: The best"),
    "memory and runtime": (DEMO, "train: {", "train: {mem_mb: 9000, runtime: 99, "),
    "the number of threads": (DEMO, "train: {", "train: {threads: 2, "),
    "the physical batch": (DEMO, "train: {physical_batch: 512}", "train: {physical_batch: 64}"),
    "more workers for searches that are complete": (DEMO, "workers: 2", "workers: 3"),
    "a data set that is not used": ("config/datasets.yaml", "train: 50000", "train: 50001"),
    "the training library": ("workflow/scripts/dpvision/training/step.py", "self.optimizer.step()", "self.optimizer.step( )"),
    "a data set's title": ("config/datasets.yaml", "  title: Optical", "  title: The optical"),
    "the source of a data set": ("config/config.yaml", "folders: {}", "folders: {digits: /nowhere}"),
}


@pytest.mark.parametrize(("file", "old", "new"), FRESH.values(), ids=FRESH.keys())
def test_reruns_nothing_after_a_change_of(project, file, old, new):
    change(project, file, old, new)
    assert jobs(project) == {}


def test_reruns_nothing_on_another_partition(project):
    assert "rule train" not in snakemake(project, "--dry-run", "--default-resources", "slurm_partition=other")


def test_reruns_nothing_after_touching_every_script(project):
    later = time.time() + 100
    for path in (project / "workflow").rglob("*"):
        os.utime(path, (later, later))
    assert jobs(project) == {}


def test_reruns_nothing_in_a_fresh_clone_with_the_results_copied_beside(finished, tmp_path):
    clone = copy(finished, tmp_path / "clone")
    shutil.rmtree(clone / ".snakemake")
    later = time.time() + 100
    for part in PARTS:
        for path in [clone / part, *(clone / part).rglob("*")]:
            os.utime(path, (later, later))
    assert jobs(clone) == {}


def test_reruns_nothing_after_the_data_was_deleted_and_made_anew(project):
    shutil.rmtree(project / "results/data")
    assert jobs(project) == {}
    run(project, "snakemake", "--cores", "2", *[str(p) for p in _prepared(project)], "--config", "scale=demo")
    assert jobs(project) == {}


def test_only_the_new_runs_of_a_new_seed_need_data_that_was_deleted(project):
    shutil.rmtree(project / "results/data")
    change(project, PAPER, "113]", "113, 7]")
    expected = {"train": 6, "analyse_hessian": 2, "analyse_activations": 2, "table": 3, "figure": 2, "verdicts": 1}
    assert jobs(project) == {"download": 1, "prepare": 1, **expected}


@pytest.mark.parametrize("stale", ["raw/digits/files.json", "prepared/*/dataset.json", "prepared/*/train_images.npy"])
def test_nothing_that_is_missing_is_forgotten_while_the_data_is_made_anew(project, stale):
    """Snakemake 9.27 forgets what is missing behind ancient(): it makes the data, says that all is done, and stops."""
    for folder in ("runs", "studies", "hessians", "activations", "tables", "figures"):
        shutil.rmtree(project / "results/demo" / folder)
    (path,) = (project / "results/data").glob(stale)
    forced = run(project, "snakemake", "all", "-n", "--forcerun", str(path.relative_to(project)), "--config", "scale=demo")
    assert forced.count("rule train:") == 18
    assert forced.count("rule table:") == 3


def _prepared(project: Path) -> list[Path]:
    text = "from dpvision import plan; p = plan.load({'scale': 'demo', 'papers': ['scalenorm']}); print(*p.of('data'))"
    names = subprocess.run([sys.executable, "-c", text], cwd=project, capture_output=True, text=True, check=True).stdout.split()
    return [Path("results/data/prepared") / name / "dataset.json" for name in names]


def test_a_record_that_was_deleted_is_made_again_with_what_shows_it(project):
    shutil.rmtree(next((project / "results/demo/runs").glob("*eps2.89-seed34*")))
    assert jobs(project) == {"train": 1, "table": 1, "verdicts": 1}


@pytest.mark.parametrize(
    ("record", "shown_by"),
    [
        ("runs/*resnet9-eps2.89-seed34*/metrics.json", {"table": 1, "verdicts": 1}),
        ("hessians/*-scaleresnet9-*-seed50-*/hessian.json", {"table": 1, "figure": 1, "verdicts": 1}),
        ("activations/*-scaleresnet9-*-seed50-*/histograms.csv", {"verdicts": 1}),  # figure 2 is of the first seed
        ("runs/*resnet9-eps2.89-seed34*/history.csv", {}),  # no claim rests on it
    ],
)
def test_claims_are_judged_anew_when_one_of_their_records_is_newer_and_not_otherwise(project, record, shown_by):
    path = next((project / "results/demo").glob(record))
    path.write_text("another\n")
    os.utime(path, (time.time() + 100,) * 2)
    assert jobs(project) == shown_by


def test_a_page_of_the_records_so_far_is_made_anew(project):
    """`python -m dpvision claims` says of no page that lacks records what it was made of; Snakemake never made it."""
    shutil.rmtree(project / ".snakemake")
    (project / "results/demo/plan/claims.json").unlink()
    assert jobs(project) == {"verdicts": 1}


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        STALE[name]
        for name in ("a seed more at the end", "a seed less", "another ε", "a published number", "the figures' style")
    ],
)
def test_reruns_what_is_stale_also_without_snakemakes_own_notes(finished, tmp_path, file, old, new, expected):
    project = copy(finished, tmp_path / "project")
    shutil.rmtree(project / ".snakemake")
    change(project, file, old, new)
    assert jobs(project) == expected


def test_jobs_run_where_the_path_has_a_space(finished, tmp_path):
    clone = copy(finished, tmp_path / "my clone")
    (clone / ".venv").symlink_to(sys.prefix)
    shutil.rmtree(clone / "results/demo/tables")
    words = ["-m", "snakemake", "table1", "--cores", "2", "--config", "scale=demo"]
    environment = {**os.environ, "PYTHONPATH": str(clone / "workflow/scripts")}
    done = subprocess.run([clone / ".venv/bin/python", *words], cwd=clone, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (clone / "results/demo/tables/table1.csv").exists()


def test_unknown_target_is_explained_below_snakemakes_words(project):
    environment = {**os.environ, "PYTHONPATH": str(project / "workflow/scripts")}
    for word, reason in {"tabel1": '"table1"', "laptop": "`papers` of config/config.yaml"}.items():
        shutil.copytree(ROOT / "config/papers/laptop", project / "config/papers/laptop", dirs_exist_ok=True)
        words = [sys.executable, "-m", "snakemake", "-n", word]
        done = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True)
        assert done.returncode == 1
        assert reason in done.stderr.splitlines()[-1]


def test_put_back_setting_is_seen_without_snakemakes_own_notes(project):
    """Records of both settings are there, older than the table, which shows those of the other setting."""
    change(project, OVERLAY, "learning_rate: 4.0e-3", "learning_rate: 6.0e-3")
    snakemake(project)
    shutil.rmtree(project / ".snakemake")
    change(project, OVERLAY, "learning_rate: 6.0e-3", "learning_rate: 4.0e-3")
    assert jobs(project) == {"table": 3, "figure": 4, "verdicts": 1}
    snakemake(project)
    shutil.rmtree(project / ".snakemake")
    assert jobs(project) == {}


def test_dry_run_of_a_fresh_clone_leaves_no_file(finished, tmp_path):
    clone = copy(finished, tmp_path / "clone")
    shutil.rmtree(clone / "results")
    shutil.rmtree(clone / ".snakemake")
    assert jobs(clone) == {"download": 1, "prepare": 1} | EVERY_RUN
    assert not (clone / "results").exists()
    assert [file.name for file in (clone / ".snakemake").rglob("*") if file.is_file()] == ["latest.pkl"]  # its own


def test_run_leaves_specs_of_what_was_asked_for_alone(finished, tmp_path):
    clone = copy(finished, tmp_path / "clone")
    for path in (clone / "results/demo/plan", clone / "results/demo/tables", clone / ".snakemake"):
        shutil.rmtree(path)
    run(clone, "snakemake", "table1", "--cores", "2", "--config", "scale=demo")
    assert [file.name for file in (clone / "results/demo/plan").iterdir()] == ["table1.json"]


def test_names_the_results_that_other_code_made(project):
    assert "all results were made by the code that is here" in run(project, "dpvision", "status", "--scale", "demo")
    change(project, "workflow/scripts/dpvision/training/step.py", "self.optimizer.step()", "self.optimizer.step( )")
    named = run(project, "dpvision", "status", "--scale", "demo")
    assert len(re.findall(r"results/demo/runs/\S+  \(code \w+, now \w+\)", named)) == 18


def test_an_archive_is_verified_again_when_a_result_is_newer_and_not_otherwise(project):
    assert jobs(project, "verify") == {"archive": 1, "verify": 1}
    snakemake(project, "archive")
    (project / "results/demo/archive/verified.txt").write_text("it holds\n")  # what stands in for an archive does not
    assert jobs(project, "verify") == {}
    (project / "results/demo/tables/table1.md").write_text("other numbers\n")  # Snakemake compares the content of small files
    assert jobs(project, "verify") == {"archive": 1, "verify": 1}


def test_a_selection_is_reported_and_archived_without_what_it_leaves_out(project):
    change(project, OVERLAY, "models:\n", "selection: [table4]\nmodels:\n")
    shutil.rmtree(project / "results")
    shutil.rmtree(project / ".snakemake")
    found = jobs(project, "report", "verify", settings=("artifacts=selection",))
    made = {"download": 1, "prepare": 1, "search_worker": 4, "search": 2, "train": 6, "table": 1}
    assert found == made | {"pages": 1, "report": 1, "archive": 1, "verify": 1}
