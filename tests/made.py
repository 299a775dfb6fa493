"""A scale of seconds, made whole without Snakemake, and its archive."""

import subprocess
from pathlib import Path

from copied import copy_configuration, copy_parts

from dpvision import plan
from dpvision.analyses.run import analyse
from dpvision.archive.pack import write_archive
from dpvision.data.download import fetch
from dpvision.data.prepare import prepare
from dpvision.files import write_if_changed, write_text
from dpvision.plan.plan import folder_of
from dpvision.plan.stages import ANALYSES, STAGES
from dpvision.reporting.claims import write_claims
from dpvision.reporting.figures import write_figure
from dpvision.reporting.tables import write_table
from dpvision.search.study import conclude, work
from dpvision.training.run import train

ROOT = Path(__file__).parents[1]
SCALE = """
title: seconds
"""
OVERLAY = """
seeds: [113, 34]
models: {resnet9: {width: 0.0625}, scaleresnet9: {width: 0.0625}}
recipes:
  resnet9: {batch: 256, epochs: 2}
  simulated:
    {optimizer: {name: sgd, learning_rate: 0.1}, schedule: {name: constant}, batch: 256, epochs: 2, clip: 1.0, simulate: 4}
searches:
  groups: {space: {model.groups: [1, 4]}, trials: 2, prune_below: 0.0}
  tune:
    space:
      model.groups: [1, 4]
      recipe.optimizer.learning_rate: {log_uniform: [1.0e-3, 1.0e-2]}
      recipe.clip: {uniform: [0.5, 3.0]}
      recipe.epochs: {integers: [1, 3]}
    trials: 3
    objective: validation_loss
cells:
  cifar10: {dataset: digits, delta: 1.0e-4, epsilons: [7.42, null]}
  simulated: {dataset: digits, models: [resnet9], recipe: simulated, epsilons: [3.0], delta: 1.0e-4}
  authors:
    dataset: digits
    models: [resnet9]
    recipe: resnet9
    epsilons: [7.42]
    delta: 1.0e-4
    protocol: {targets: [7.62], sigmas: [2.0], physical_batch: 100}
  tuned: {dataset: digits, models: [resnet9], recipe: resnet9, epsilons: [7.42], delta: 1.0e-4, search: tune}
artifacts:
  table1: {cells: [cifar10, simulated, authors], rows: [model, protocol], columns: [epsilon]}
  tuned: {kind: best_trials, title: What a search of several keys found, cells: [tuned]}
  tuned_trials: {kind: search, title: Its trials, cells: [tuned]}
hessian: {examples: 32, iterations: 3, lanczos_steps: 4}
activations: {examples: 32, bins: 10}
"""
WRITERS = {"tables": write_table, "figures": write_figure}


def make_all(root: Path, made: plan.Plan) -> None:
    """Make every record and artifact as the rules would."""
    for name, entry in made.sources.items():
        if name == "digits":
            fetch(name, entry, None, root / plan.DATA / "raw" / name)
    results = root / made.results
    for key, spec in made.work.items():
        stage, name = key
        folder = root / made.folder(key)
        if stage == "data":
            prepare(spec, root / plan.DATA / "raw" / spec["name"], folder)
        elif stage == "search":
            work(spec, root / made.data_of(key), folder, folder / "workers/0.json", results / "choices", 512, 1000)
            conclude(spec, folder, folder / "best.json", folder / "trials.csv", folder / "provenance.json")
        elif stage == "train":
            studies = [root / made.product(below) for below in made.needs(key) if below[0] == "search"]
            folders = (folder, results / "checkpoints" / name, results / "choices")
            train(spec, root / made.data_of(key), studies, *folders, 512, 1000, 0.0)
            write_text(results / f"logs/train/{name}.log", f"12:00:00  read {ROOT}/config in {Path.home()}\n")
        elif stage in ANALYSES:
            (run,) = made.needs(key)
            analyse(STAGES[stage].job, spec, root / made.folder(run), root / made.data_of(key), folder, 512, 1000)
    for name, spec in made.artifacts.items():
        write_if_changed(results / f"plan/{name}.json", spec)
        inputs = {what: [str(root / file) for file in files] for what, files in made.inputs_of(name).items()}
        csv = root / made.targets(name)[0]
        if spec["kind"] == "claims":
            write_claims(spec, made.labels[name], inputs, csv, results / f"figures/{name}.csv")
            continue
        WRITERS[folder_of(spec)](spec, made.labels[name], inputs, csv)


def git(folder: Path, *words: str) -> None:
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *author, *words], check=True, capture_output=True)


class Made:
    """Results in `root`, made by a project in `project` that is a checkout."""

    def __init__(self, root: Path, overlay: str = OVERLAY) -> None:
        self.root, self.project = root, root / "project"
        copy_parts(self.project, "Snakefile", "pyproject.toml", "CITATION.cff", "LICENSE", "envs")
        copy_configuration(self.project, small=True)
        write_text(self.project / "config/scales/tiny.yaml", SCALE)
        write_text(self.project / "config/papers/scalenorm/tiny.yaml", overlay)
        git(self.project, "init", "--quiet")
        git(self.project, "add", "--all")
        git(self.project, "commit", "--quiet", "--message", "first")
        self.plan = plan.load({"scale": "tiny", "papers": ["scalenorm"]}, self.project)
        make_all(root, self.plan)

    def archive(self, out: Path) -> Path:
        write_archive(self.plan, out, self.root, self.project)
        return out
