"""Differentially private image classification, reproduced: from data set download to every table and figure.

What is built, in this order; {results} is results/ at the scale "paper" and results/SCALE/ at any other:

    download     results/data/raw/NAME/                  the publisher's files, proved by their MD5s
    prepare      results/data/prepared/NAME-DIGEST/      arrays that many processes map
    weights      results/data/weights/NAME-DIGEST/       public weights, proved by their SHA-256, where a paper starts from some
    features     results/data/features/NAME-DIGEST/      arrays of features, where a paper trains on such
    search       {results}/studies/STUDY/                Optuna's journal, best.json, trials.csv
    train        {results}/runs/RUN/                     one record a run: spec, metrics, history, ledger, weights
    analyse      {results}/hessians/RUN-DIGEST/          eigenvalues, trace, spectrum
                 {results}/activations/RUN-DIGEST/       histograms around a residual addition
                 {results}/by_class/RUN-DIGEST/          how many test examples of each class are right
    audit        {results}/audits/engine-DIGEST/         attacks on the engine, and what they prove; on demand
    attack       {results}/attacks/ATTACK/               a paper's own audit: bounds of ε by models with an example and without
    artifacts    {results}/tables/, {results}/figures/   named as in the papers;
                 {results}/claims.csv, claims.md         what a paper says, and whether it holds;
                 {results}/plan/ARTIFACT.json            what each was made of
    report       {results}/report/, {results}/report.html  everything as one HTML file, to read without a network
    archive      {results}/archive/NAME-VERSION.zip      all of a scale and what it rests on, but the data
    verify       {results}/archive/verified.txt          what verifying the archive says of it

A folder's name ends in the digest of the spec that decides its content: another configuration is another folder.
Targets: files, or by name `all`, a paper (scalenorm), an artifact (table1), `audit`, `report`, `archive`, `verify`. With
--config artifacts=selection each paper has its selection alone, and `all`, `report` and `archive` are of that. What a target
would take, and what of it is there already: python -m dpvision plan. Logs and benchmarks mirror these paths in {results}/logs.
"""

import atexit
import os
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

min_version("9.27")
# A cluster sends it to all of a job ahead of its time limit (sbatch --signal=USR1@60): a training answers, and the
# snakemake around it has to live until it did.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
sys.path.insert(0, f"{workflow.basedir}/workflow/scripts")
# Snakemake writes the path of its Python into commands of a shell as it is. From this folder it has no space.
if shlex.quote(sys.executable) != sys.executable:
    sys.executable = os.path.relpath(sys.executable)

from dpvision import cluster, plan
from dpvision.disk import warn_if_full
from dpvision.errors import UserError
from dpvision.looking.target import everything, hints
from dpvision.plan import own
from dpvision.plan.resources import asked, limits
from dpvision.plan.stages import ANALYSES, STAGES


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


# The SLURM profile has conda make the rules' environments; where there is none, snakemake's own serves, of the same lock.
if not shutil.which("conda"):
    settings = workflow.deployment_settings
    if DeploymentMethod.CONDA in settings.deployment_method:
        settings.deployment_method = settings.deployment_method - {DeploymentMethod.CONDA}
        print("there is no conda here: jobs use the environment that snakemake runs in", file=sys.stderr)


# A command that names a paper in own/ is of that paper's scale, unless it says a scale. A job's own snakemake hears of it here.
named = [] if any(word.startswith("scale=") for word in sys.argv) else own.own_papers_in(sys.argv[1:], plan.ROOT)
OWN = os.environ.setdefault("DPVISION_OWN", " ".join(named)).split()

try:
    PLAN = plan.load(config | own.settings_for(OWN))
except UserError as error:
    raise WorkflowError(f"the configuration does not hold:\n{error}") from None

RESULTS = PLAN.results
# When this command began; a job's own snakemake, on whatever machine, hears of it from the one that submitted it.
BEGUN = float(os.environ.setdefault("DPVISION_BEGUN", str(time.time())))
LOGS = f"{RESULTS}/logs"

if workflow.is_main_process:
    atexit.register(warn_if_full, Path.cwd())
    for line in PLAN.left_out_for_data():
        print(line, file=sys.stderr)


onstart:
    if workflow.executor_plugin.name == "slurm":
        os.environ.setdefault("SBATCH_OPEN_MODE", "append")  # a requeued job's log would begin anew
        try:
            cluster.take_over()
        except UserError as error:
            raise WorkflowError(str(error)) from None


wildcard_constraints:
    dataset="[a-z0-9_]+",
    data="[a-z0-9_]+-[0-9a-f]{12}",
    weights="[a-z0-9_]+-[0-9a-f]{12}",
    study="[a-z0-9_.-]+-[0-9a-f]{12}",
    run="[a-z0-9_.-]+-[0-9a-f]{12}",
    analysis="[a-z0-9_.-]+-[0-9a-f]{12}-[0-9a-f]{12}",
    audit="[a-z0-9_.-]+-[0-9a-f]{12}",
    attack="[a-z0-9_.-]+-[0-9a-f]{12}",
    artifact="[a-z0-9_]+",
    worker=r"\d+",


# Seconds each, and a download wants the network: on a cluster these run where snakemake runs, not in a job.
localrules:
    download,
    weights,
    search,
    table,
    figure,
    verdicts,
    pages,
    report,
    archive,
    verify,


rule all:
    default_target: True
    input:
        lambda wildcards: everything(PLAN, "all"),


for target in [*PLAN.papers, *PLAN.artifacts, *PLAN.wanting]:

    rule:
        name:
            target
        input:
            lambda wildcards, target=target: everything(PLAN, target),


include: "workflow/rules/data.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/search.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/analyse.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/attack.smk"
include: "workflow/rules/artifacts.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/archive.smk"


# Snakemake refuses a target that there is not below its banner and knows no names near it: this has to stand under that.
if workflow.is_main_process:
    for line in reversed(hints(PLAN, sys.argv[1:], [rule.name for rule in workflow.rules], Path.cwd())):
        atexit.register(print, line, file=sys.stderr)
