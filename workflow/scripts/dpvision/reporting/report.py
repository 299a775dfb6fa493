"""Snakemake's report of a scale: what makes its pages stale, and the command that puts them into one file."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from dpvision.archive.contents import configuration, specs_of
from dpvision.code import code_digest
from dpvision.errors import UserError
from dpvision.files import digest, replacing, write_text
from dpvision.plan import Plan
from dpvision.plan.specs import Spec
from dpvision.reporting.style import REPORT_CSS


def pages_spec(plan: Plan) -> Spec:
    return {"config": configuration(plan), "plan": digest(specs_of(plan)), "code": code_digest("dpvision.reporting.pages")}


def run_labels(plan: Plan, run: str) -> dict[str, str]:
    """Return how a run is called in the report; the digest tells those apart that differ in something else."""
    spec = plan.runs[run]
    level = f"{spec['budget'].get('epsilon', 'as spent')}" if spec["budget"] else "not private"
    how = [spec["model"]["slug"], *(["authors' protocol"] if "protocol" in spec else [])]
    how += ["simulated"] if spec["recipe"].get("simulate") else []
    return {"network": ", ".join(how), "epsilon": level, "seed": str(spec["seed"]), "digest": run[-12:][:5]}


def write_report(config: Spec, out: str, log: str) -> None:
    """Make the report by another snakemake: it reports on jobs that are done, so no job of its own can be the one that asks."""
    with replacing(out) as beside, TemporaryDirectory(prefix="dpvision-report-") as folder:
        style = Path(folder) / "report.css"
        style.write_text(REPORT_CSS, encoding="utf-8")
        settings = [f"{key}={json.dumps(value)}" for key, value in config.items()]
        command = [sys.executable, "-m", "snakemake", "pages", "--report", str(beside)]
        command += ["--report-stylesheet", str(style), "--config", *settings]
        said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        write_text(log, said.stdout)
        if said.returncode:
            raise UserError(f"snakemake made no report, see {log}: {said.stdout.strip().splitlines()[-1]}")
