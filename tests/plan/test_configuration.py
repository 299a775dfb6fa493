"""A configuration that does not hold is refused before anything runs, in words that say what to do about it."""

import copy
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpvision import plan
from dpvision.errors import UserError
from dpvision.models.found import FAMILIES as FOUND
from dpvision.plan.load import RULES
from dpvision.plan.reading import read_yaml
from dpvision.plan.stages import ANALYSES
from dpvision.source import ROOT

CONFIG = "config.yaml"
DATA = "datasets.yaml"
PAPER = "papers/scalenorm/paper.yaml"
PUBLISHED = "papers/scalenorm/published.yaml"
AS_PUBLISHED = "scales/paper.yaml"
DEMO = "papers/scalenorm/demo.yaml"
SIMULATE = "papers/scalenorm/simulate.yaml"
DEMO_JOBS = "scales/demo.yaml"
SHOWN = {CONFIG: "config/config.yaml or the command line"}

RECIPE = (
    "optimizer, schedule, initialization, batch, epochs, steps, evaluate_every, clip, divide_by_clip, noise, augmentation, "
)
RECIPE += "averaging, simulate, stop, precision, gpus"
DATASETS = ", ".join(read_yaml(ROOT, "config/datasets.yaml").content)
FEATURES = ", ".join(read_yaml(ROOT, "config/features.yaml").content)
OF_A_PAPER = (
    "hessian, activations, by_class, title, seeds, models, recipes, searches, attacks, cells, artifacts, selection, practice"
)
A_NAME = "a name of small letters, digits and underscores that begins with a letter"
AN_MD5 = "must be an MD5: 32 hexadecimal digits, small letters"
SCHEDULE = "{name: plateau, factor: 0.5, patience: 3}"
GROUPS = "groups: {search: groups}"
GROUPS_ALLOWED = 'must be a whole number above 0 or "channels" or a mapping with search'
EPSILONS = "epsilons: [2.89, 7.42, 9.88]"
DELTA = "    delta: 1.0e-5\n"
CHOICES = "[1, 16, 32, 64, channels]"
LABEL = "    label: ResNet-9\n"
BEFORE = "  scaleresnet9:\n    family"
FAMILIES = " or ".join(f'"{name}"' for name in sorted(FOUND))
OF_A_WRN = "family, label, depth, width, groups, scale_norm, standardize, norm, bias"
FIRST_ROW = "metric: top1, statistic: median, value: 65.6"


@dataclass
class Spoilt:
    what: str
    file: str
    old: str
    new: str
    says: str  # after the file's name

    def __str__(self) -> str:
        return self.what


def wrn(said: str) -> str:
    """Return one more model, to be put in the place of BEFORE."""
    return f"  wrn16: {{{said}}}\n{BEFORE}"


SPOILT = [
    # --- the authors' protocol ---
    Spoilt(
        "too few sigmas for the ε of the authors' protocol",
        PAPER,
        DELTA,
        f"{DELTA}    protocol: {{targets: [3, 7.62, 10], sigmas: [1.7, 0.96], physical_batch: 128}}\n",
        "cells.cifar10.protocol.sigmas = [1.7, 0.96]: must have 3 values, one for each of the epsilons",
    ),
    Spoilt(
        "the authors' protocol without privacy",
        PAPER,
        f"{EPSILONS}\n{DELTA}",
        f"epsilons: [null, 7.42, 9.88]\n{DELTA}    protocol: {{targets: [3, 7, 9], sigmas: [2, 1, 1], physical_batch: 128}}\n",
        "cells.cifar10.protocol: is of private training; take null out of the epsilons",
    ),
    # --- unknown and missing keys ---
    Spoilt(
        "an unknown key of a file", PAPER, "seeds:", "extra: 1\nseeds:", f"extra = 1: unknown key. Allowed here: {OF_A_PAPER}"
    ),
    Spoilt(
        "a mistyped key of a file",
        PAPER,
        "searches:",
        "serches:",
        f'serches: unknown key. Did you mean "searches"? Allowed here: {OF_A_PAPER}',
    ),
    Spoilt(
        "an unknown key of a recipe",
        PAPER,
        "    clip: 1.5",
        "    clip: 1.5\n    momentum: 0.9",
        f"recipes.resnet9.momentum = 0.9: unknown key. Allowed here: {RECIPE}",
    ),
    Spoilt(
        "an unknown key in a scale's overlay",
        DEMO,
        "batch: 128",
        "bach: 128",
        f'recipes.resnet9.bach = 128: unknown key. Did you mean "batch"? Allowed here: {RECIPE}',
    ),
    Spoilt(
        "an unknown section in a scale's overlay",
        DEMO,
        "models:\n",
        "modls:\n",
        f'modls: unknown key. Did you mean "models"? Allowed here: {OF_A_PAPER}',
    ),
    Spoilt(
        "a key that another schedule has",
        PAPER,
        SCHEDULE,
        "{name: constant, patience: 3}",
        "recipes.resnet9.schedule.patience = 3: unknown key. Allowed here: name",
    ),
    Spoilt(
        "an unknown key of a schedule",
        PAPER,
        "patience: 3",
        "patience: 3, cooldown: 2",
        "recipes.resnet9.schedule.cooldown = 2: unknown key. Allowed here: name, factor, patience",
    ),
    Spoilt(
        "a mistyped key of a wide residual network",
        PAPER,
        BEFORE,
        wrn("family: wrn, label: W, depth: 16, width: 4, scalenorm: true"),
        f'models.wrn16.scalenorm = true: unknown key. Did you mean "scale_norm"? Allowed here: {OF_A_WRN}',
    ),
    Spoilt(
        "a key that another family has",
        PAPER,
        BEFORE,
        wrn("family: wrn, label: W, depth: 16, width: 4, order: norm-activation"),
        f'models.wrn16.order = "norm-activation": unknown key. Allowed here: {OF_A_WRN}',
    ),
    Spoilt(
        "a key that is called like the family",
        PAPER,
        BEFORE,
        wrn("family: wrn, label: W, depth: 16, width: 4, wrn: 3"),
        f"models.wrn16.wrn = 3: unknown key. Allowed here: {OF_A_WRN}",
    ),
    Spoilt(
        "a mistyped key of an augmentation",
        PAPER,
        "    clip: 1.5",
        "    clip: 1.5\n    augmentation: {pad: 4, flip: 0.5, views: 16, original: true}",
        'recipes.resnet9.augmentation.original = true: unknown key. Did you mean "include_original"? '
        "Allowed here: pad, resize, border, rotate, flip, erase, views, include_original",
    ),
    Spoilt(
        "a momentum of the wrong optimiser",
        PAPER,
        "{name: nadam, learning_rate: 1.0e-3}",
        "{name: nadam, learning_rate: 1.0e-3, momentum: 0.9}",
        "recipes.resnet9.optimizer.momentum = 0.9: unknown key. Allowed here: name, learning_rate",
    ),
    Spoilt(
        "an unknown key of a source",
        DATA,
        "kind: npm #",
        "kind: npm\n      url: x #",
        'cifar10.sources[1].url = "x": unknown key. Allowed here: kind, package',
    ),
    Spoilt(
        "an unknown key beside a search",
        PAPER,
        GROUPS,
        "groups: {search: groups, more: 1}",
        "models.resnet9.groups.more = 1: unknown key. Allowed here: search",
    ),
    Spoilt(
        "a mistyped resource",
        AS_PUBLISHED,
        "train: {threads: 4",
        "train: {thread: 4",
        'resources.train.thread = 4: unknown key. Did you mean "threads"? '
        "Allowed here: threads, mem_mb, runtime, speed, gpu, physical_batch",
    ),
    Spoilt(
        "a mistyped stage",
        AS_PUBLISHED,
        "  train: {threads",
        "  trane: {threads",
        'resources.trane: there is no kind of job "trane". Did you mean "train"? '
        "Allowed: download, prepare, report, features, search, train, hessian, activations, by_class, attack",
    ),
    Spoilt(
        "a mistyped setting",
        CONFIG,
        "papers: [scalenorm]",
        "papers: [scalenorm]\nfolder: {}",
        'folder: unknown key. Did you mean "folders"? Allowed here: scale, papers, artifacts, own_leaves, folders',
    ),
    Spoilt(
        "a key that a data set lacks",
        DATA,
        "  classes: 10\n",
        "",
        "cifar10.classes: this key is missing; it must be a whole number above 1 (Number of classes)",
    ),
    Spoilt(
        "a key that a model lacks",
        PAPER,
        LABEL,
        "",
        "models.resnet9.label: this key is missing; it must be text "
        "(Name in tables and figures. A display label: changing it makes nothing stale)",
    ),
    Spoilt(
        "a schedule that says not which",
        PAPER,
        SCHEDULE,
        "{factor: 0.5, patience: 3}",
        "recipes.resnet9.schedule.name: this key is missing; "
        'it must be "constant" or "cosine" or "milestones" or "plateau" or "step" (The schedule)',
    ),
    Spoilt(
        "a model that says not of which family",
        PAPER,
        BEFORE,
        wrn("label: W, depth: 16, width: 4"),
        f"models.wrn16.family: this key is missing; it must be {FAMILIES} (Architecture of the network)",
    ),
    Spoilt(
        "a model that says its family under a mistyped key",
        PAPER,
        BEFORE,
        wrn("label: W, depth: 16, width: 4, famly: wrn"),
        f"models.wrn16.family: this key is missing; it must be {FAMILIES} (Architecture of the network). "
        'Is "famly" meant to be it?',
    ),
    Spoilt(
        "a key that a wide residual network lacks",
        PAPER,
        BEFORE,
        wrn("family: wrn, label: W, depth: 16"),
        "models.wrn16.width: this key is missing; it must be a whole number above 0 and of at most 32 "
        "(Factor of the 16, 32 and 64 channels of the three stages)",
    ),
    Spoilt(
        "a key that a published number lacks",
        PUBLISHED,
        FIRST_ROW,
        "metric: top1, statistic: median",
        "entry 1: value: this key is missing; it must be a number (The number)",
    ),
    # --- names of what there is ---
    Spoilt(
        "a scale that does not exist",
        CONFIG,
        "scale: paper",
        "scale: deom",
        'scale = "deom": there is no scale "deom". Did you mean "demo"? Allowed: demo, laptop, own, paper, simulate, transfer',
    ),
    Spoilt(
        "a paper that does not exist",
        CONFIG,
        "[scalenorm]",
        "[scalnorm]",
        'papers[0] = "scalnorm": there is no paper "scalnorm". Did you mean "scalenorm"? Allowed: scalenorm',
    ),
    Spoilt(
        "a folder for a data set that does not exist",
        CONFIG,
        "folders: {}",
        "folders: {cifar: data}",
        f'folders.cifar = "data": there is no data set "cifar". Did you mean "cifar10"? Allowed: {DATASETS}, mobilenet_v2',
    ),
    Spoilt(
        "a data set that does not exist",
        PAPER,
        "dataset: cifar10",
        "dataset: cifar",
        'cells.cifar10.dataset = "cifar": there is no data set "cifar". '
        f'Did you mean "cifar10"? Allowed: {DATASETS}, {FEATURES}',
    ),
    Spoilt(
        "a data set of an overlay that does not exist",
        DEMO,
        "dataset: digits",
        "dataset: digit",
        'cells.cifar10.dataset = "digit": there is no data set "digit". '
        f'Did you mean "digits"? Allowed: {DATASETS}, {FEATURES}',
    ),
    Spoilt(
        "a model that does not exist",
        PAPER,
        "models: [scaleresnet9, resnet9]",
        "models: [scaleresnet, resnet9]",
        'cells.cifar10.models[0] = "scaleresnet": there is no model "scaleresnet". '
        'Did you mean "scaleresnet9"? Allowed: resnet9, scaleresnet9',
    ),
    Spoilt(
        "a recipe that does not exist",
        PAPER,
        "    recipe: resnet9",
        "    recipe: resnet",
        'cells.cifar10.recipe = "resnet": there is no recipe "resnet". Did you mean "resnet9"? Allowed: resnet9',
    ),
    Spoilt(
        "a search that does not exist",
        PAPER,
        GROUPS,
        "groups: {search: grups}",
        'models.resnet9.groups.search = "grups": there is no search "grups". Did you mean "groups"? Allowed: groups',
    ),
    Spoilt(
        "cells that do not exist",
        PAPER,
        "cells: [cifar10]\n    statistic: median",
        "cells: [cifar]\n    statistic: median",
        'artifacts.table1.cells[0] = "cifar": there is no group of cells "cifar". Did you mean "cifar10"? Allowed: cifar10',
    ),
    Spoilt(
        "a published number for an artifact that does not exist",
        PUBLISHED,
        "{artifact: table4,",
        "{artifact: tabel4,",
        'entry 25: artifact = "tabel4": there is no artifact "tabel4". Did you mean "table4"? '
        "Allowed: table1, table4, hessian, groups, figure2, figure3, spectrum, claims",
    ),
    Spoilt(
        "a recipe that says not how long",
        PAPER,
        "    epochs: 50\n",
        "",
        "recipes.resnet9: needs either epochs or steps, how long to train",
    ),
    Spoilt(
        "a recipe that says twice how long",
        PAPER,
        "    epochs: 50\n",
        "    epochs: 50\n    steps: 9\n",
        "recipes.resnet9: needs either epochs or steps, how long to train, and has both",
    ),
    Spoilt(
        "a recipe of a search that does not exist",
        PAPER,
        "    trials: 5\n",
        "    trials: 5\n    recipe: resnet\n",
        'searches.groups.recipe = "resnet": there is no recipe "resnet". Did you mean "resnet9"? Allowed: resnet9',
    ),
    Spoilt(
        "a search in the place of one that no model names",
        PAPER,
        "    delta: 1.0e-5\n",
        "    delta: 1.0e-5\n    searches: {group: groups}\n",
        'cells.cifar10.searches.group = "groups": there is no search of these models "group". '
        'Did you mean "groups"? Allowed: groups',
    ),
    Spoilt(
        "a search that does not exist in the place of one",
        PAPER,
        "    delta: 1.0e-5\n",
        "    delta: 1.0e-5\n    searches: {groups: group}\n",
        'cells.cifar10.searches.groups = "group": there is no search "group". Did you mean "groups"? Allowed: groups',
    ),
    Spoilt(
        "an artifact that shows nothing",
        PAPER,
        "    cells: [cifar10]\n    statistic: median",
        "    statistic: median",
        "artifacts.table1.cells: this key is missing; it must be a list of at least 1 value (Groups of cells that it shows)",
    ),
    Spoilt(
        "a schematic of cells",
        PAPER,
        "    kind: curves\n    title: Test accuracy by epoch\n    cells: [cifar10]\n    epsilons: [7.42] # left open\n",
        "    kind: schematic\n    title: A block\n    cells: [cifar10]\n",
        'artifacts.figure3.cells = ["cifar10"]: unknown key. Allowed here: kind, title',
    ),
    Spoilt(
        "printed numbers of an artifact that does not exist",
        PAPER,
        "    statistic: best\n",
        "    statistic: best\n    published: table11\n",
        'artifacts.table4.published = "table11": there is no artifact "table11". Did you mean "table1"? '
        "Allowed: table1, table4, hessian, groups, figure2, figure3, spectrum, claims",
    ),
    Spoilt(
        "a spread that does not exist",
        PAPER,
        "statistic: best",
        "statistic: mean\n    spread: standard_eror",
        'artifacts.table4.spread = "standard_eror": must be "standard_deviation" or "standard_error" or null. '
        'Did you mean "standard_error"?',
    ),
    Spoilt(
        "a schedule that does not exist",
        PAPER,
        "name: plateau",
        "name: plato",
        'recipes.resnet9.schedule.name = "plato": '
        'must be "constant" or "cosine" or "milestones" or "plateau" or "step". Did you mean "plateau"?',
    ),
    Spoilt(
        "a rate that rises to its end",
        PAPER,
        SCHEDULE,
        "{name: cosine, warm_up: 90, end: 90}",
        "recipes.resnet9.schedule.warm_up = 90: must be below 90, its end",
    ),
    Spoilt(
        "an end of training without a rule",
        PAPER,
        f"schedule: {SCHEDULE}",
        f"schedule: {SCHEDULE}\n    stop: {{}}",
        "recipes.resnet9.stop: has neither patience nor above; give it one of them, or leave it out",
    ),
    Spoilt(
        "an optimiser that does not exist",
        PAPER,
        "name: nadam",
        "name: adam",
        'recipes.resnet9.optimizer.name = "adam": must be "nadam" or "sgd". Did you mean "nadam"?',
    ),
    Spoilt(
        "a precision that does not exist",
        PAPER,
        "    clip: 1.5",
        "    clip: 1.5\n    precision: float16",
        'recipes.resnet9.precision = "float16": must be "float32" or "bfloat16". Did you mean "bfloat16"?',
    ),
    Spoilt(
        "a kind of source that does not exist",
        DATA,
        "kind: npm",
        "kind: nmp",
        'cifar10.sources[1].kind = "nmp": must be "archive" or "npm" or "python". Did you mean "npm"?',
    ),
    Spoilt(
        "a family of models that does not exist",
        PAPER,
        "family: resnet9",
        "family: resnet18",
        f'models.resnet9.family = "resnet18": must be {FAMILIES}. Did you mean "resnet9"?',
    ),
    Spoilt(
        "a mistyped family of models",
        PAPER,
        BEFORE,
        wrn("family: wrm, label: W, depth: 16, width: 4"),
        f'models.wrn16.family = "wrm": must be {FAMILIES}. Did you mean "wrn"?',
    ),
    Spoilt(
        "a mistyped key of a metric",
        PAPER,
        "    statistic: best\n",
        "    statistic: best\n    metrics: [{name: top1, weight: averaged}]\n",
        'artifacts.table4.metrics[0].weight = "averaged": unknown key. Did you mean "weights"? '
        "Allowed here: weights, split, name",
    ),
    Spoilt(
        "weights that a training has not",
        PAPER,
        "    statistic: best\n",
        "    statistic: best\n    metrics: [{name: top1, weights: average}]\n",
        'artifacts.table4.metrics[0].weights = "average": must be "last_step" or "averaged" or "best_epoch". '
        'Did you mean "averaged"?',
    ),
    Spoilt(
        "minutes of some of the weights",
        PAPER,
        "    statistic: best\n",
        "    statistic: best\n    metrics: [{name: minutes, weights: averaged}]\n",
        "artifacts.table4.metrics[0]: minutes are of the whole training; leave out weights and split",
    ),
    Spoilt(
        "a metric twice",
        PAPER,
        "    statistic: best\n",
        "    statistic: best\n    metrics: [{name: top1}, {name: top1, split: test}]\n",
        'artifacts.table4.metrics = [{"name": "top1"}, {"name": "top1", "split": "test"}]: '
        '{"weights": "last_step", "split": "test", "name": "top1"} is listed more than once',
    ),
    Spoilt(
        "a printed number on examples that there are not",
        PUBLISHED,
        "metric: top1, statistic: median, value: 65.6",
        "metric: top1, split: valid, statistic: median, value: 65.6",
        'entry 1: split = "valid": must be "train" or "validation" or "test" or null. Did you mean "validation"?',
    ),
    Spoilt(
        "a metric that no history has",
        PAPER,
        "    kind: curves\n",
        "    kind: curves\n    metric: averged_test_top1\n",
        'artifacts.figure3.metric = "averged_test_top1": must be "test_top1" or "test_top5" or "validation_top1" or '
        '"validation_top5" or "averaged_test_top1" or "averaged_test_top5" or "averaged_validation_top1" or '
        '"averaged_validation_top5". Did you mean "averaged_test_top1"?',
    ),
    Spoilt(
        "a statistic that does not exist",
        PAPER,
        "statistic: median",
        "statistic: mena",
        'artifacts.table1.statistic = "mena": must be "median" or "mean" or "best". Did you mean "mean"?',
    ),
    Spoilt(
        "a key that cannot be searched over",
        PAPER,
        f"{{model.groups: {CHOICES}}}",
        f"{{model.group: {CHOICES}}}",
        'searches.groups.space.model.group: there is no key to search over "model.group". '
        'Did you mean "model.groups"? Allowed: model.groups',
    ),
    # --- types ---
    Spoilt(
        "a number for an average",
        PAPER,
        "    clip: 1.5",
        "    clip: 1.5\n    averaging: 0.9999",
        "recipes.resnet9.averaging = 0.9999: must be a mapping with decay or null",
    ),
    Spoilt(
        "text for a number",
        PAPER,
        "batch: 1024",
        'batch: "1024"',
        'recipes.resnet9.batch = "1024": must be a whole number above 0 or "all"',
    ),
    Spoilt(
        "a fraction for a whole number",
        PAPER,
        "batch: 1024",
        "batch: 10.5",
        'recipes.resnet9.batch = 10.5: must be a whole number above 0 or "all"',
    ),
    Spoilt(
        "nothing for a number",
        PAPER,
        "batch: 1024",
        "batch:",
        'recipes.resnet9.batch = null: must be a whole number above 0 or "all"',
    ),
    Spoilt(
        "yes for a number",
        PAPER,
        "batch: 1024",
        "batch: yes",
        'recipes.resnet9.batch = true: must be a whole number above 0 or "all"',
    ),
    Spoilt(
        "a unit behind a number",
        AS_PUBLISHED,
        "mem_mb: 4000",
        "mem_mb: 4G",
        'resources.prepare.mem_mb = "4G": must be a whole number above 0',
    ),
    Spoilt("a number for text", PAPER, 'title: "ScaleNorm (Klause et al. 2022)"', "title: 2022", "title = 2022: must be text"),
    Spoilt("a number for a folder", CONFIG, "folders: {}", "folders: {digits: 3}", "folders.digits = 3: must be text"),
    Spoilt("a number for a list", PAPER, "seeds: [34, 50, 113]", "seeds: 34", "seeds = 34: must be a list of at least 1 value"),
    Spoilt("text for a list", CONFIG, "[scalenorm]", "scalenorm", 'papers = "scalenorm": must be a list of at least 1 value'),
    Spoilt("nothing for a mapping", CONFIG, "folders: {}", "folders:", "folders = null: must be a mapping"),
    Spoilt(
        "a list for a mapping",
        PAPER,
        "optimizer: {name: nadam, learning_rate: 1.0e-3}",
        "optimizer: [nadam, 1.0e-3]",
        'recipes.resnet9.optimizer = ["nadam", 0.001]: must be a mapping with name, learning_rate',
    ),
    Spoilt(
        "a word for groups",
        PAPER,
        GROUPS,
        "groups: chanels",
        f'models.resnet9.groups = "chanels": {GROUPS_ALLOWED}. Did you mean "channels"?',
    ),
    Spoilt("a list for groups", PAPER, GROUPS, "groups: [1, 2]", f"models.resnet9.groups = [1, 2]: {GROUPS_ALLOWED}"),
    Spoilt(
        "a word for a published number", PUBLISHED, "value: 65.6", "value: high", 'entry 1: value = "high": must be a number'
    ),
    # --- values ---
    Spoilt("ε of zero", PAPER, EPSILONS, "epsilons: [0]", "cells.cifar10.epsilons[0] = 0: must be a number above 0 or null"),
    Spoilt(
        "a negative ε",
        PAPER,
        EPSILONS,
        "epsilons: [2.89, -1]",
        "cells.cifar10.epsilons[1] = -1: must be a number above 0 or null",
    ),
    Spoilt(
        "an ε that is no number", PAPER, EPSILONS, "epsilons: [.inf]", "cells.cifar10.epsilons[0] = Infinity: must be finite"
    ),
    Spoilt(
        "an ε of a search of zero",
        PAPER,
        "epsilon: 7.42",
        "epsilon: 0",
        "searches.groups.epsilon = 0: must be a number above 0 or null",
    ),
    Spoilt("δ of zero", PAPER, "delta: 1.0e-5", "delta: 0", "cells.cifar10.delta = 0: must be a number above 0 and below 1"),
    Spoilt("δ of one", PAPER, "delta: 1.0e-5", "delta: 1", "cells.cifar10.delta = 1: must be a number above 0 and below 1"),
    Spoilt(
        "δ above 1/N",
        DEMO,
        "delta: 1.0e-4",
        "delta: 0.0009",
        "cells.cifar10.delta = 0.0009: must be at most 1/N = 0.000796: "
        "digits trains on N = 1257 examples, 1437 less 180 held out",
    ),
    Spoilt(
        "a simulation that cuts the batch in parts of an example",
        PAPER,
        "clip: 1.5",
        "clip: 1.5\n    simulate: 7",
        "recipes.resnet9.simulate = 7: must divide the batch, 1024",
    ),
    Spoilt(
        "secret noise on several devices",
        PAPER,
        "clip: 1.5",
        "clip: 1.5\n    noise: secret\n    gpus: 2",
        'recipes.resnet9.noise = "secret": cannot be secret on several devices (gpus: 2), which have to draw the same '
        "sample and views each by itself",
    ),
    Spoilt(
        "secret noise in a simulation",
        SIMULATE,
        "resnet9: {simulate: 8",
        "resnet9: {noise: secret, simulate: 8",
        'recipes.resnet9.noise = "secret": cannot be secret in a simulation, which is not private, and is worth something '
        "if it can be repeated",
    ),
    Spoilt(
        "secret noise where there is none",
        SIMULATE,
        "resnet9: {simulate: 8, precision: bfloat16}",
        "resnet9: {noise: secret}\ncells: {cifar10: {epsilons: [null, 2.89, 7.42, 9.88]}}",
        'recipes.resnet9.noise = "secret": cannot be secret where there is no noise, and cifar10 trains without a budget; give '
        "it a recipe of its own",
    ),
    Spoilt(
        "a simulation without a budget",
        SIMULATE,
        "recipes:",
        "cells: {cifar10: {epsilons: [null, 2.89, 7.42, 9.88]}}\nrecipes:",
        "recipes.resnet9.simulate = 8: cifar10 trains without a budget, too: there is no noise to simulate",
    ),
    Spoilt(
        "a batch larger than the data set",
        PAPER,
        "batch: 1024",
        "batch: 45001",
        "recipes.resnet9.batch = 45001: must be at most 45000: cifar10 trains on N = 45000 examples, 50000 less 5000 held out",
    ),
    Spoilt(
        "a batch of an overlay larger than the data set",
        DEMO,
        "batch: 128",
        "batch: 1258",
        "recipes.resnet9.batch = 1258: must be at most 1257: digits trains on N = 1257 examples, 1437 less 180 held out",
    ),
    Spoilt(
        "no views",
        PAPER,
        "    clip: 1.5",
        "    clip: 1.5\n    augmentation: {pad: 4, flip: 0.5, views: 0}",
        "recipes.resnet9.augmentation.views = 0: must be a whole number above 0",
    ),
    Spoilt(
        "a flip that is no probability",
        PAPER,
        "    clip: 1.5",
        "    clip: 1.5\n    augmentation: {pad: 4, flip: 1.5, views: 4}",
        "recipes.resnet9.augmentation.flip = 1.5: must be a number of at least 0 and of at most 1",
    ),
    Spoilt(
        "an average that never moves",
        PAPER,
        "    clip: 1.5",
        "    clip: 1.5\n    averaging: {decay: 1}",
        "recipes.resnet9.averaging.decay = 1: must be a number above 0 and below 1",
    ),
    Spoilt("no groups", PAPER, GROUPS, "groups: 0", f"models.resnet9.groups = 0: {GROUPS_ALLOWED}"),
    Spoilt(
        "groups that do not divide",
        PAPER,
        GROUPS,
        "groups: 48",
        "models.resnet9.groups = 48: 48 groups do not divide 64 channels; "
        'allowed: 1, 2, 4, 8, 16, 32, 64, 128, 256, "channels"',
    ),
    Spoilt(
        "groups of a search that do not divide",
        DEMO,
        "[1, 4, 8, channels]",
        "[1, 3, 8, channels]",
        "searches.groups.space.model.groups[1] = 3: 3 groups do not divide 8 channels; "
        'allowed: 1, 2, 4, 8, 16, 32, "channels" (for resnet9)',
    ),
    Spoilt(
        "a choice of a search that is no number of groups",
        PAPER,
        CHOICES,
        "[1, 16, 32, 64, chanels]",
        'searches.groups.space.model.groups[4] = "chanels": must be a whole number above 0 or "channels" (for resnet9)',
    ),
    Spoilt(
        "more examples for the Hessian than there are",
        DEMO,
        "{examples: 512,",
        "{examples: 5120,",
        "hessian.examples = 5120: must be at most 1257, all that digits has",
    ),
    Spoilt(
        "more examples for the activations than there are",
        DEMO,
        "{examples: 360}",
        "{examples: 361}",
        "activations.examples = 361: must be at most 360, all that digits has",
    ),
    Spoilt(
        "a width that divides channels",
        PAPER,
        LABEL,
        f"{LABEL}    width: 0.3\n",
        "models.resnet9.width = 0.3: must be a multiple of 1/64: of 64 channels it would make 19.2",
    ),
    Spoilt(
        "a width that leaves no channel",
        DEMO,
        "{width: 0.125}",
        "{width: 0.001}",
        "models.resnet9.width = 0.001: must be a multiple of 1/64: of 64 channels it would make 0.064",
    ),
    Spoilt(
        "a depth that no number of blocks has",
        PAPER,
        BEFORE,
        wrn("family: wrn, label: W, depth: 17, width: 4"),
        "models.wrn16.depth = 17: must be 6 n + 4, with n blocks in each of the three stages; nearest: 16, 22",
    ),
    Spoilt(
        "a depth without blocks",
        PAPER,
        BEFORE,
        wrn("family: wrn, label: W, depth: 4, width: 4"),
        "models.wrn16.depth = 4: must be a whole number of at least 10",
    ),
    Spoilt(
        "a mistyped connection of a SmoothNet",
        PAPER,
        BEFORE,
        wrn("family: smoothnet, label: S, connection: densely"),
        'models.wrn16.connection = "densely": must be "dense" or "residual" or "skip" or "none". Did you mean "dense"?',
    ),
    Spoilt(
        "a mistyped key of a SmoothNet",
        PAPER,
        BEFORE,
        wrn("family: smoothnet, label: S, widht: 5.0"),
        'models.wrn16.widht = 5.0: unknown key. Did you mean "width"? '
        "Allowed here: family, label, width, depth, connection, pool, norm, groups, activation, head",
    ),
    Spoilt(
        "plain convolutions without the pooling that halves the image",
        PAPER,
        BEFORE,
        wrn("family: smoothnet, label: S, connection: none, pool: none"),
        'models.wrn16.pool = "none": connection none halves the image by its pooling; allowed: max, average',
    ),
    Spoilt(
        "all channels for the head where only the last ones are left",
        PAPER,
        BEFORE,
        wrn("family: smoothnet, label: S, connection: residual, head: all"),
        'models.wrn16.head = "all": only of connection dense; residual keeps no earlier channels: use last',
    ),
    Spoilt(
        "groups that do not divide a cut number of channels",
        PAPER,
        BEFORE,
        wrn("family: smoothnet, label: S, width: 1.4"),
        'models.wrn16.groups = 8: 8 groups do not divide 11 channels; allowed: 1, 11, 22, "channels"',
    ),
    Spoilt(
        "a mistyped network of torchvision's",
        PAPER,
        BEFORE,
        wrn("family: torchvision, label: T, network: resnet-18"),
        'models.wrn16.network = "resnet-18": must be "resnet18" or "resnet34" or "resnet50" or "resnet152" or '
        '"wide_resnet50_2" or "densenet121" or "densenet169" or "densenet201" or "efficientnet_b0" or "vgg11" or "googlenet". '
        'Did you mean "resnet18"?',
    ),
    Spoilt(
        "a stem without norm and ReLU where none was trained",
        PAPER,
        BEFORE,
        wrn("family: torchvision, label: T, network: densenet121, stem: bare"),
        'models.wrn16.stem = "bare": bare is a stem of resnet18 and resnet34; allowed for densenet121: original, small',
    ),
    Spoilt(
        "a ResNet without ReLU",
        PAPER,
        BEFORE,
        wrn("family: torchvision, label: T, network: resnet34, relu: false"),
        "models.wrn16.relu = false: only densenet121, densenet169, densenet201 can be without ReLU; use true for resnet34",
    ),
    Spoilt(
        "groups that do not divide the channels of all of torchvision's networks",
        PAPER,
        BEFORE,
        wrn("family: torchvision, label: T, network: resnet18, groups: 16"),
        'models.wrn16.groups = 16: must be 1 or 2 or 4 or 8 or "channels"',
    ),
    Spoilt(
        "a width of a wide residual network that is no whole number",
        PAPER,
        BEFORE,
        wrn("family: wrn, label: W, depth: 16, width: 0.5"),
        "models.wrn16.width = 0.5: must be a whole number above 0 and of at most 32",
    ),
    Spoilt(
        "groups that do not divide a wide residual network's channels",
        PAPER,
        BEFORE,
        wrn("family: wrn, label: W, depth: 28, width: 10, groups: 64"),
        "models.wrn16.groups = 64: 64 groups do not divide 160 channels; "
        'allowed: 1, 2, 4, 8, 16, 20, 32, 40, 80, 160, 320, 640, "channels"',
    ),
    Spoilt(
        "groups that do not divide the first 16 channels",
        PAPER,
        BEFORE,
        wrn("family: wrn, label: W, depth: 10, width: 3, groups: 12"),
        'models.wrn16.groups = 12: 12 groups do not divide 16 channels; allowed: 1, 2, 4, 8, 16, 24, 48, 96, 192, "channels"',
    ),
    Spoilt(
        "batch normalisation under a budget",
        PAPER,
        LABEL,
        f"{LABEL}    norm: batch\n",
        'models.resnet9.norm = "batch": not under differential privacy: every example\'s output depends on '
        "the others of its batch, so no example's gradient can be bounded; use group, or cells with "
        "epsilons: [null] and nothing left to a search",
    ),
    Spoilt("a seed twice", PAPER, "[34, 50, 113]", "[34, 50, 34]", "seeds = [34, 50, 34]: 34 is listed more than once"),
    Spoilt(
        "a negative seed",
        PAPER,
        "[34, 50, 113]",
        "[34, -1]",
        "seeds[1] = -1: must be a whole number of at least 0 and below 4294967296",
    ),
    Spoilt("no seeds", PAPER, "[34, 50, 113]", "[]", "seeds = []: must be a list of at least 1 value"),
    Spoilt("no papers", CONFIG, "[scalenorm]", "[]", "papers = []: must be a list of at least 1 value"),
    Spoilt(
        "a paper twice",
        CONFIG,
        "[scalenorm]",
        "[scalenorm, scalenorm]",
        'papers = ["scalenorm", "scalenorm"]: "scalenorm" is listed more than once',
    ),
    Spoilt("no ε", PAPER, EPSILONS, "epsilons: []", "cells.cifar10.epsilons = []: must be a list of at least 1 value or null"),
    Spoilt(
        "an ε twice",
        PAPER,
        EPSILONS,
        "epsilons: [5, 7.42, 5.0]",
        "cells.cifar10.epsilons = [5, 7.42, 5.0]: 5.0 is listed more than once",
    ),
    Spoilt(
        "a model twice",
        PAPER,
        "[scaleresnet9, resnet9]",
        "[resnet9, resnet9]",
        'cells.cifar10.models = ["resnet9", "resnet9"]: "resnet9" is listed more than once',
    ),
    Spoilt(
        "more trials than combinations",
        PAPER,
        "trials: 5",
        "trials: 6",
        "searches.groups.trials = 6: must be at most 5: no combination is tried twice, and the space has no more",
    ),
    Spoilt(
        "a grid without all its combinations",
        PAPER,
        "trials: 5",
        "trials: 4\n    sampler: grid",
        "searches.groups.trials = 4: must be 5: a grid tries every combination of the space; or say another sampler",
    ),
    Spoilt(
        "one choice for a search",
        PAPER,
        CHOICES,
        "[16]",
        "searches.groups.space.model.groups = [16]: must be a list of at least 2 values or a mapping",
    ),
    Spoilt("no workers", DEMO_JOBS, "workers: 2", "workers: 0", "workers = 0: must be a whole number above 0"),
    Spoilt(
        "more held out than there is",
        DATA,
        "validation: 5000",
        "validation: 50000",
        "cifar10.validation = 50000: must be below 50000, the training examples it is taken from",
    ),
    Spoilt(
        "a mean for too few channels",
        DATA,
        "mean: [0.4914, 0.4822, 0.4465]",
        "mean: [0.4914, 0.4822]",
        "cifar10.mean = [0.4914, 0.4822]: must have 3 values, one a channel",
    ),
    Spoilt(
        "a shape without channels",
        DATA,
        "shape: [3, 32, 32]",
        "shape: [32, 32]",
        "cifar10.shape = [32, 32]: must be a list of 3 values",
    ),
    Spoilt(
        "raw files that nothing proves, of data that is prepared as arrays",
        DATA,
        "  files:\n    digits.csv.gz: 9b335364a7bfd63947c7480a5bd51f2d\n  classes: 5\n  shape: [1, 8, 8]\n  train: 717",
        "  classes: 5\n  shape: [1, 8, 8]\n  train: 717",
        "digits_low.files: must name the raw files, and the MD5 of each",
    ),
    Spoilt(
        "pictures that would become no squares",
        DATA,
        "shape: [3, 224, 224]\n  train: 1281167",
        "shape: [3, 224, 192]\n  train: 1281167",
        "imagenet.shape = [3, 224, 192]: must be square: streamed pictures become squares",
    ),
    Spoilt(
        "crops of larger images, where there are none",
        PAPER,
        "    clip: 1.5",
        "    clip: 1.5\n    augmentation: {pad: 0, flip: 0.5, views: 4, resize: 1.2}",
        "recipes.resnet9.augmentation.resize = 1.2: must be 1: cifar10 is kept at the size of its images, and is not "
        "`streamed`; crops come from pixels around an image (pad)",
    ),
    Spoilt(
        "an MD5 in capitals",
        DATA,
        "5dd7e06a14cb22eb9f671a540d1b7c25",
        "5DD7E06A14CB22EB9F671A540D1B7C25",
        f'cifar10.files.data_batch_1.bin = "5DD7E06A14CB22EB9F671A540D1B7C25": {AN_MD5}',
    ),
    Spoilt(
        "an MD5 of an archive cut short",
        DATA,
        "c32a1d4ab5d03f1284b67883e8d87530",
        "c32a1d4a",
        f'cifar10.sources[0].md5 = "c32a1d4a": {AN_MD5}',
    ),
    Spoilt("a data set in capitals", DATA, "digits:\n", "Digits:\n", f"Digits: must be {A_NAME}"),
    Spoilt("an artifact in capitals", PAPER, "  figure2:", "  Figure2:", f"artifacts.Figure2: must be {A_NAME}"),
    Spoilt(
        "an artifact called like a rule",
        PAPER,
        "  figure2:",
        "  train:",
        "artifacts.train: this is the name of a rule of the workflow: a target needs one of its own",
    ),
    Spoilt(
        "an artifact called like the paper",
        PAPER,
        "  figure2:",
        "  scalenorm:",
        "artifacts.scalenorm: this is the name of a paper: a target needs one of its own",
    ),
    Spoilt(
        "an ε of an artifact that its cells have not",
        PAPER,
        "epsilons: [7.42]\n    statistic: best",
        "epsilons: [7.42, 7.5]\n    statistic: best",
        "artifacts.table4.epsilons[1] = 7.5: none of its cells has this ε; allowed: 2.89, 7.42, 9.88",
    ),
    Spoilt(
        "a published number twice",
        PUBLISHED,
        "epsilon: 7.42, metric: top1, statistic: median, value: 71.8",
        "epsilon: 2.89, metric: top1, statistic: median, value: 71.8",
        "entry 2: the same as entry 1: table1, cifar10, scaleresnet9, 2.89, top1; keep one",
    ),
    Spoilt(
        "a published number twice, once of the weights that are meant where none are said",
        PUBLISHED,
        "epsilon: 7.42, metric: top1, statistic: median, value: 71.8",
        "epsilon: 2.89, metric: top1, weights: last_step, statistic: median, value: 71.8",
        "entry 2: entry 1 is of the same cell of table1: model: scaleresnet9, epsilon: 2.89; keep one",
    ),
    # --- YAML ---
    Spoilt(
        "a bracket that is not closed",
        PAPER,
        "[34, 50, 113]",
        "[34, 50, 113",
        "line 6: did not find expected ',' or ']': \"models:\"",
    ),
    Spoilt(
        "a key twice",
        PAPER,
        "    batch: 1024",
        "    batch: 1024\n    batch: 12",
        'line 22: the key "batch" is given twice: "    batch: 12"',
    ),
    Spoilt(
        "a tab",
        PAPER,
        "    batch: 1024",
        "\tbatch: 1024",
        'line 21: found character that cannot start any token: "\\tbatch: 1024"',
    ),
]


@pytest.mark.parametrize("spoilt", SPOILT, ids=str)
def test_one_line_names_file_key_value_and_what_is_allowed(spoilt, configuration):
    configuration.change(spoilt.file, spoilt.old, spoilt.new)
    settings = {"scale": Path(spoilt.file).stem} if spoilt.file in (DEMO, SIMULATE, DEMO_JOBS) else {}
    file = SHOWN.get(spoilt.file, f"config/{spoilt.file}")
    between = ", " if spoilt.says.startswith("line ") else ": "
    assert configuration.complaints(**settings) == [f"{file}{between}{spoilt.says}"]


def test_a_scale_leaves_out_an_artifact_by_null(configuration):
    assert "table4" in configuration.plan(scale="simulate").artifacts
    configuration.change(SIMULATE, "groups: null", "groups: null\n  table4: null")
    planned = configuration.plan(scale="simulate")
    assert "groups" not in planned.artifacts and "table4" not in planned.artifacts and "table1" in planned.artifacts


def test_all_errors_of_a_file_are_listed_one_a_line(configuration):
    configuration.change(PAPER, "epochs: 50", "epoch: 50").change(PAPER, "[34, 50, 113]", "[34, -1]")
    assert configuration.change(PAPER, EPSILONS, "epsilons: [0, x]").complaints() == [
        "config/papers/scalenorm/paper.yaml: seeds[1] = -1: must be a whole number of at least 0 and below 4294967296",
        'config/papers/scalenorm/paper.yaml: recipes.resnet9.epoch = 50: unknown key. Did you mean "epochs"? '
        f"Allowed here: {RECIPE}",
        "config/papers/scalenorm/paper.yaml: cells.cifar10.epsilons[0] = 0: must be a number above 0 or null",
        'config/papers/scalenorm/paper.yaml: cells.cifar10.epsilons[1] = "x": must be a number above 0 or null',
    ]


def test_all_values_that_are_wrong_beside_others_are_listed(configuration):
    configuration.change(PAPER, "batch: 1024", "batch: 50000").change(PAPER, "delta: 1.0e-5", "delta: 0.1")
    configuration.change(PAPER, "trials: 5", "trials: 9")
    keys = [line.split(" = ")[0] for line in configuration.complaints()]
    assert keys == [
        "config/papers/scalenorm/paper.yaml: searches.groups.trials",
        "config/papers/scalenorm/paper.yaml: recipes.resnet9.batch",
        "config/papers/scalenorm/paper.yaml: cells.cifar10.delta",
    ]


def test_a_mistyped_search_is_both_missing_and_unknown(configuration):
    assert configuration.change(PAPER, GROUPS, "groups: {sarch: groups}").complaints() == [
        f"config/papers/scalenorm/paper.yaml: models.resnet9.groups.search: this key is missing; it must be {A_NAME} "
        "(The name of one of the paper's searches)",
        'config/papers/scalenorm/paper.yaml: models.resnet9.groups.sarch = "groups": unknown key. Did you mean "search"? '
        "Allowed here: search",
    ]


def test_a_mistyped_key_that_a_family_needs_is_both_missing_and_unknown(configuration):
    where = "config/papers/scalenorm/paper.yaml: models.wrn16"
    assert configuration.change(PAPER, BEFORE, wrn("family: wrn, label: W, dept: 16, width: 4")).complaints() == [
        f"{where}.depth: this key is missing; it must be a whole number of at least 10 "
        "(Number of layers: 6 n + 4, with n blocks in each of the three stages)",
        f'{where}.dept = 16: unknown key. Did you mean "depth"? Allowed here: {OF_A_WRN}',
    ]


def test_a_slip_in_what_a_scale_says_of_a_model_is_measured_by_the_model_s_family(configuration):
    configuration.change(PAPER, BEFORE, wrn("family: wrn, label: W, depth: 16, width: 4"))
    configuration.change(DEMO, "models:\n", "models:\n  wrn16: {widht: 1}\n")
    (line,) = configuration.complaints(scale="demo")
    assert line == (
        "config/papers/scalenorm/demo.yaml: models.wrn16.widht = 1: unknown key. "
        f'Did you mean "width"? Allowed here: {OF_A_WRN}'
    )


def test_another_family_in_a_scale_replaces_the_paper_s_model_and_keeps_none_of_its_keys(configuration):
    configuration.change(PAPER, "kind: activations", "kind: curves")
    other = "resnet9: {family: wrn, label: W, depth: 10, width: 1, groups: {search: groups}}"
    configuration.change(DEMO, "resnet9: {width: 0.125}", other)
    slugs = {run["model"]["slug"]: run["model"] for run in configuration.plan(scale="demo").runs.values()}
    assert slugs.keys() == {"wrn10-1", "scaleresnet9"}
    assert "order" not in slugs["wrn10-1"]


def test_activations_are_of_resnet9_alone(configuration):
    configuration.change(PAPER, BEFORE, wrn("family: wrn, label: W, depth: 16, width: 4"))
    configuration.change(PAPER, "models: [scaleresnet9, resnet9]", "models: [scaleresnet9, wrn16]")
    assert configuration.complaints() == [
        'config/papers/scalenorm/paper.yaml: artifacts.figure2.cells = ["cifar10"]: '
        "activations are shown of models of the family resnet9, not of wrn16"
    ]


def test_a_key_that_the_paper_lacks_is_missing_in_the_paper_at_every_scale(configuration):
    (line,) = configuration.change(PAPER, "    clip: 1.5", "").complaints(scale="demo")
    assert line.startswith("config/papers/scalenorm/paper.yaml: recipes.resnet9.clip: this key is missing")


def test_a_key_that_a_scale_s_own_schedule_lacks_is_missing_in_the_scale(configuration):
    configuration.change(PAPER, SCHEDULE, "{name: constant}")
    configuration.change(DEMO, "    batch: 128", "    schedule: {name: plateau, factor: 0.5}\n    batch: 128")
    (line,) = configuration.complaints(scale="demo")
    assert line.startswith("config/papers/scalenorm/demo.yaml: recipes.resnet9.schedule.patience: this key is missing")


def test_a_scale_s_slip_in_a_name_is_told_from_a_recipe_that_lacks_keys(configuration):
    first, *rest = configuration.change(DEMO, "  resnet9:\n", "  resnet:\n").complaints(scale="demo")
    recipe = "config/papers/scalenorm/demo.yaml: recipes.resnet"
    assert first == f'{recipe}: there is no recipe "resnet". Did you mean "resnet9"? Allowed: resnet9'
    assert [line.split(": ")[1] for line in rest] == [f"recipes.resnet.{key}" for key in ("optimizer.name", "schedule", "clip")]


def test_a_scale_cannot_be_called_like_a_folder_of_results(configuration):
    scales = configuration.root / "config/scales"
    (scales / "runs.yaml").write_text((scales / "demo.yaml").read_text())
    (complaint,) = configuration.complaints(scale="runs")
    assert complaint.endswith('scale = "runs": this is the name of a folder of results; rename the scale\'s file')


def test_a_scale_may_add_what_is_whole(configuration):
    whole = "artifacts:\n  quick: {kind: accuracy, title: Quick, cells: [cifar10]}\n"
    planned = configuration.change(DEMO, "hessian:", f"{whole}hessian:").plan(scale="demo")
    assert planned.targets("quick") == [f"results/demo/tables/quick.{kind}" for kind in ("csv", "md", "tex")]


def test_another_kind_in_a_scale_replaces_the_paper_s_and_keeps_none_of_its_keys(configuration):
    configuration.change(DEMO, "    batch: 128", "    schedule: {name: constant}\n    batch: 128")
    schedules = [run["recipe"]["schedule"] for run in configuration.plan(scale="demo").runs.values()]
    assert all(schedule == {"name": "constant"} for schedule in schedules)


def test_a_number_in_scientific_notation_needs_no_point(configuration):
    plain = configuration.plan().runs
    configuration.change(PAPER, "delta: 1.0e-5", "delta: 1e-5").change(PAPER, "learning_rate: 1.0e-3", "learning_rate: 1E-3")
    assert configuration.plan().runs == plain


def test_an_overlay_in_a_folder_that_is_no_paper_s_is_missing_in_the_paper_s(configuration):
    papers = configuration.root / "config/papers"
    (papers / "scalnorm").mkdir()
    (papers / "scalenorm/demo.yaml").rename(papers / "scalnorm/demo.yaml")
    (line,) = configuration.complaints(scale="demo")
    assert "there is no config/papers/scalenorm/demo.yaml" in line
    (line,) = configuration.complaints(papers=["scalnorm"])
    assert line.endswith('there is no paper "scalnorm". Did you mean "scalenorm"? Allowed: scalenorm')


def test_an_artifact_is_of_one_paper(configuration):
    papers = configuration.root / "config/papers"
    shutil.copytree(papers / "scalenorm", papers / "again")
    first, *_ = configuration.complaints(papers=["scalenorm", "again"])
    assert first == (
        "config/papers/again/paper.yaml: artifacts.table1: "
        "this is the name of an artifact of scalenorm: a target needs one of its own"
    )


def test_no_artifact_is_called_like_a_rule():
    rules = [plan.ROOT / "Snakefile", *(plan.ROOT / "workflow/rules").glob("*.smk")]
    names = {name for file in rules for name in re.findall(r"^rule (\w+):", file.read_text(), re.MULTILINE)}
    analyses = re.search(
        r"^for stage in ANALYSES:$.*^ +f\"(\w+){stage}\"$", rules[-1].parent.joinpath("analyse.smk").read_text(), re.M | re.S
    )
    assert names | {analyses[1] + name for name in ANALYSES} == set(RULES)


def test_batch_normalisation_has_its_whole_sample_on_one_device(configuration):
    configuration.change(PAPER, LABEL, f"{LABEL}    norm: batch\n").change(PAPER, EPSILONS, "epsilons: [null]")
    text = (configuration.root / "config" / PAPER).read_text()
    (configuration.root / "config" / PAPER).write_text(text.replace("    epsilons: [7.42]", "    epsilons: [null]"))
    configuration.change(PAPER, GROUPS, "groups: 32").change(PAPER, "clip: 1.5", "clip: 1.5\n    gpus: 2")
    (complaint,) = configuration.complaints()
    only = "recipes.resnet9.gpus = 2: must be 1 for resnet9: batch normalisation needs a whole sample on one device"
    assert complaint.endswith(only)


def test_batch_normalisation_without_a_budget_is_a_control(configuration):
    configuration.change(PAPER, LABEL, f"{LABEL}    norm: batch\n").change(PAPER, EPSILONS, "epsilons: [null]")
    text = (configuration.root / "config" / PAPER).read_text()
    (configuration.root / "config" / PAPER).write_text(text.replace("    epsilons: [7.42]", "    epsilons: [null]"))
    (complaint,) = configuration.complaints()  # its search would still train privately
    assert complaint.endswith("use group, or cells with epsilons: [null] and nothing left to a search")
    configuration.change(PAPER, GROUPS, "groups: 32")
    assert {run["budget"] for run in configuration.plan().runs.values()} == {None}


def test_delta_does_not_matter_without_a_budget(configuration):
    configuration.change(PAPER, EPSILONS, "epsilons: [null]").change(PAPER, "delta: 1.0e-5", "delta: 0.5")
    text = (configuration.root / "config" / PAPER).read_text()
    (configuration.root / "config" / PAPER).write_text(text.replace("    epsilons: [7.42]", ""))
    assert len(configuration.plan().runs) == 6


def test_a_search_needs_something_that_is_searched(configuration):
    path = configuration.root / "config" / PAPER
    path.write_text(path.read_text().replace(GROUPS, "groups: 32"))
    assert configuration.complaints() == [
        'config/papers/scalenorm/paper.yaml: artifacts.groups.cells = ["cifar10"]: none of these leaves anything to a search'
    ]


@pytest.mark.parametrize("file", [DATA, PAPER])
def test_a_file_that_is_not_there_is_named(file, configuration):
    (configuration.root / "config" / file).unlink()
    (line,) = configuration.complaints()
    if file == PAPER:
        assert "there is no paper" in line
    else:
        assert line == f"config/{file}: this file cannot be read: No such file or directory"


def test_a_paper_without_a_file_of_published_numbers_has_none(configuration):
    (configuration.root / "config" / PUBLISHED).unlink()
    assert configuration.plan().artifacts["table1"]["published"] == []


def test_a_scale_s_file_that_says_nothing_changes_nothing(configuration):
    (configuration.root / "config" / DEMO).write_text("# nothing differs\n")
    assert configuration.plan(scale="demo").runs == configuration.plan().runs


def test_a_scale_s_file_that_is_no_mapping_is_named(configuration):
    (configuration.root / "config" / DEMO).write_text("[1]\n")
    (line,) = configuration.complaints(scale="demo")
    assert line.startswith(f"config/{DEMO}: the file = [1]: must be a mapping")


def test_an_empty_file_lacks_everything(configuration):
    (configuration.root / "config" / PAPER).write_text("# nothing yet\n")
    at = "config/papers/scalenorm/paper.yaml"
    missing = [line.removesuffix(line.partition(" is missing")[2]) for line in configuration.complaints()]
    assert missing == [
        f"{at}: {key}: this key is missing" for key in ("title", "seeds", "models", "recipes", "cells", "artifacts")
    ]


def test_a_file_in_another_encoding_is_named(configuration):
    (configuration.root / "config" / DATA).write_bytes("digits: {title: Übung}\n".encode("latin-1"))
    assert configuration.complaints() == ["config/datasets.yaml: not text in UTF-8: invalid continuation byte at byte 16"]


# --- whatever is wrong ---

WRONG = (None, 0, -1, 3, 1.5, True, "text", "", [], [1, 1], [[]], {}, {"x": 1}, {1: 2}, {None: 1}, 10**30, float("nan"))
WORDS_OF_THE_MACHINE = re.compile(
    r"Input|dictionary|None|True|instance|validation error|anyOf|ref|tag:|something else|be [.]?$"
)


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    yield path
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(below, (*path, key))


def with_value(content: Any, path: tuple, value: Any) -> Any:
    if not path:
        return value
    changed = copy.copy(content)
    changed[path[0]] = with_value(content[path[0]], path[1:], value)
    return changed


@pytest.mark.parametrize("file", [CONFIG, DATA, PAPER, PUBLISHED, AS_PUBLISHED, DEMO, DEMO_JOBS])
def test_no_value_anywhere_leads_to_a_traceback_or_to_the_words_of_the_machine(file, configuration):
    content = read_yaml(configuration.root, f"config/{file}").content
    draw = random.Random(file)
    found = list(places(content))
    for path, value in [(draw.choice(found), draw.choice(WRONG)) for _ in range(60)]:
        wrong = with_value(content, path, value)
        (configuration.root / "config" / file).write_text(yaml.safe_dump(wrong, allow_unicode=True, sort_keys=False))
        try:
            configuration.plan(**({"scale": "demo"} if file in (DEMO, DEMO_JOBS) else {}))
        except UserError as error:
            for line in str(error).splitlines():
                assert line.startswith("config/"), (path, value)
                assert not WORDS_OF_THE_MACHINE.search(line), (path, value)


@pytest.mark.parametrize("key", ["family", "label", "depth", "width", "groups", "scale_norm", "standardize", None])
def test_no_value_of_a_wide_residual_network_leads_to_a_traceback(key, configuration):
    content = read_yaml(configuration.root, f"config/{PAPER}").content
    whole = {"family": "wrn", "label": "W", "depth": 16, "width": 4}
    for value in WRONG:
        content["models"]["wrn16"] = whole | {key: value} if key else value
        (configuration.root / "config" / PAPER).write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False))
        try:
            configuration.plan()
        except UserError as error:
            for line in str(error).splitlines():
                assert line.startswith(f"config/{PAPER}: models.wrn16"), value
                assert not WORDS_OF_THE_MACHINE.search(line), value
        else:
            assert key and value in (3, True, "text", "", 10**30), value


# --- through Snakemake ---


@pytest.mark.slow
def test_snakemake_refuses_a_scale_that_does_not_exist_before_any_job(project):
    done = project.run("snakemake", "-n", "--config", "scale=deom")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert 'there is no scale "deom". Did you mean "demo"? Allowed: demo, laptop, own, paper, simulate, transfer' in said
    assert "Traceback" not in said
    assert "Building DAG" not in said


@pytest.mark.slow
def test_snakemake_shows_every_line_of_what_is_wrong(project):
    project.change(DEMO, "batch: 128", "bach: 128").change(DEMO, "iterations: 100", "iterations: many")
    done = project.run("snakemake", "--cores", "1", "table1", "--config", "scale=demo")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert 'config/papers/scalenorm/demo.yaml: recipes.resnet9.bach = 128: unknown key. Did you mean "batch"?' in said
    assert 'config/papers/scalenorm/demo.yaml: hessian.iterations = "many": must be a whole number above 0' in said
    assert "Traceback" not in said
    assert not (project.root / "results").exists()
