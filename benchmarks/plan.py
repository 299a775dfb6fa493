"""The cost of the plan: time and memory of reading it, of one job as a cluster starts it, of a dry run of everything.

    python benchmarks/plan.py    -> results/benchmarks/plan.json, .md

With more and more seeds in ScaleNorm, in a copy of the configuration. Each command runs in a process of its own, three
times; the quickest is kept, since whatever else the machine does only adds. Nothing is trained.
"""

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from subprocess import PIPE, STDOUT

import yaml

from dpvision import plan
from dpvision.files import write_json, write_text

OUT = plan.ROOT / "results" / "benchmarks"
RUNS = (18, 100, 1_000, 10_000)
TIMES = 3
NOTHING = "rule all:\n    localrule: True\n"
LOAD = "import pathlib, dpvision.plan as p; p.load({'papers': ['scalenorm'], 'scale': 'paper'}, pathlib.Path())"
COMMANDS = {
    "Snakemake's own start": ["snakemake", "--snakefile", "nothing", "--dry-run", "--quiet"],
    "the plan alone": ["python", "-c", LOAD],
    "one run, as a job starts it": [
        "snakemake",
        "--dry-run",
        "--quiet",
        "--allowed-rules",
        "train",
        "--target-jobs",
        "train:run=RUN",
    ],
    "dry run of everything": ["snakemake", "all", "--dry-run", "--quiet"],
}


def project(folder: Path, runs: int) -> str:
    """Make a copy of the project with so many runs at least; return the name of one of them."""
    for part in ("config", "workflow", "profiles", "envs"):
        shutil.copytree(plan.ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(plan.ROOT / "Snakefile", folder)
    (folder / "nothing").write_text(NOTHING)
    file = folder / "config/papers/scalenorm/paper.yaml"
    paper = yaml.safe_load(file.read_text())
    cells = len(plan.load({"papers": ["scalenorm"], "scale": "paper"}).runs) // len(paper["seeds"])
    paper["seeds"] = list(range(math.ceil(runs / cells)))
    file.write_text(yaml.safe_dump(paper, sort_keys=False))
    planned = plan.load({"papers": ["scalenorm"], "scale": "paper"}, folder)
    name = next(iter(planned.runs))
    for there in map(planned.product, planned.needs(("train", name))):  # when a job starts
        (folder / there).parent.mkdir(parents=True)
        (folder / there).touch()
    return name


def run(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the seconds and the peak memory in MB of a command's own process."""
    executable = str(Path(sys.executable).parent / command[0])
    environment = {**os.environ, "PYTHONPATH": str(plan.ROOT / "workflow/scripts")}
    begun = time.perf_counter()
    child = subprocess.Popen([executable, *command[1:]], cwd=folder, env=environment, stdout=PIPE, stderr=STDOUT, text=True)
    assert child.stdout
    said = child.stdout.read()
    _, child.returncode, usage = os.wait4(child.pid, 0)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: {said}")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024


def table(rows: list[dict]) -> str:
    lines = ["| runs | what | seconds | peak MB |", "| ---: | --- | ---: | ---: |"]
    lines += [f"| {row['runs']:,} | {row['what']} | {row['seconds']:.2f} | {row['peak_mb']:.0f} |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    rows = []
    for runs in RUNS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            name = project(folder, runs)
            for what, command in COMMANDS.items():
                print(f"{runs} runs: {what}", file=sys.stderr, flush=True)
                measured = [run([word.replace("RUN", name) for word in command], folder) for _ in range(TIMES)]
                seconds, peak = min(measured)
                rows.append({"runs": runs, "what": what, "seconds": round(seconds, 3), "peak_mb": round(peak, 1)})
    write_json(OUT / "plan.json", {"rows": rows, "times": TIMES})
    write_text(OUT / "plan.md", table(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
