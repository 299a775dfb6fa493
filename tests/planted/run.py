"""Bugs that someone made or could make, each applied in a copy of the library, and the audit or the test that has to notice.

    make test-planted                   all of them; results/planted.csv, results/planted.svg say what saw which
    python tests/planted/run.py NAME    one

A bug is a file of bugs/: what it is, the texts that it replaces, which designs see it, and the audit's verdict; or, where no
audit looks (at rounding, say), the tests that fail. A text that is no longer there, or there twice, is an error: the code has
changed, and the bug has to be planted anew.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGES = "workflow/scripts"
OUT = ROOT / "results"
PASSED, FAILED = 0, 1  # of pytest
CAUGHT = "refuted"  # by a test: what it says of the engine does not hold
RIGHT = {"what": "nothing wrong", "edits": [], "designs": [], "verdict": "consistent"}


class Gone(Exception):
    """An error: the text that a bug replaces is not there any more."""


def planted(bug: dict, copy: Path) -> None:
    """Apply a bug to a copy of the library."""
    shutil.copytree(ROOT / PACKAGES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in bug["edits"]:
        file = copy / "dpvision" / edit["file"]
        text = file.read_text(encoding="utf-8")
        if (count := text.count(edit["find"])) != 1:
            raise Gone(
                f"{edit['file']} has this text {count} times, expected once: {edit['find']!r}; the code has changed, find the "
                "new place and put it into the bug's file"
            )
        file.write_text(text.replace(edit["find"], edit["replace"]), encoding="utf-8")


def found_out(bug: dict) -> dict:
    """Return what a short audit of the library with the bug says, or whether its tests fail."""
    with tempfile.TemporaryDirectory(prefix="dpvision-planted-") as folder:
        copy = Path(folder) / PACKAGES
        try:
            planted(bug, copy)
        except Gone as gone:
            return {"verdict": "error", "designs": {}, "said": str(gone)}
        return tested(bug["tests"], copy, Path(folder)) if "tests" in bug else audited(copy, Path(folder))


def audited(copy: Path, folder: Path) -> dict:
    command = [sys.executable, str(HERE / "probe.py"), str(copy), str(folder / "record")]
    done = subprocess.run(command, capture_output=True, text=True, env={"OMP_NUM_THREADS": "1", "PATH": ""})
    if done.returncode:
        return {"verdict": "error", "designs": {}, "said": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def tested(tests: list[str], copy: Path, folder: Path) -> dict:
    """Run tests of this checkout with the copied library, until one fails."""
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    if done.returncode not in (PASSED, FAILED):
        return {"verdict": "error", "designs": {}, "said": (done.stdout + done.stderr).strip().splitlines()[-1]}
    verdict = CAUGHT if done.returncode == FAILED else "consistent"
    return {"verdict": verdict, "designs": {"tests": verdict}}


def main(names: list[str]) -> None:
    files = [HERE / "bugs" / f"{name}.toml" for name in names] or sorted((HERE / "bugs").glob("*.toml"))
    bugs = {"": RIGHT} | {file.stem: tomllib.loads(file.read_text(encoding="utf-8")) for file in files}
    begun, wrong, rows = time.monotonic(), [], []
    with ThreadPoolExecutor(2) as pool:
        for (name, bug), found in zip(bugs.items(), pool.map(found_out, bugs.values()), strict=True):
            seen = {design for design, verdict in found["designs"].items() if verdict != "consistent"}
            right = found["verdict"] == bug.get("verdict", CAUGHT) and set(bug.get("designs", ["tests"])) <= seen
            wrong += [] if right else [name or "nothing wrong"]
            by = ", ".join(sorted(seen)) or found.get("said", "nothing")
            print(f"{'as expected' if right else 'NOT AS EXPECTED':16}{found['verdict']:12}{bug['what']}: {by}", flush=True)
            rows.append({"bug": bug["what"], "verdict": found["verdict"], **found["designs"]})
    print(f"{len(bugs) - 1} planted bugs in {time.monotonic() - begun:.0f} s")
    if not names:
        OUT.mkdir(exist_ok=True)
        with open(OUT / "planted.csv", "w", newline="", encoding="utf-8") as file:
            fields = list(dict.fromkeys(key for row in rows for key in row))
            writer = csv.DictWriter(file, fields, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        sys.path.insert(0, str(ROOT / PACKAGES))
        from dpvision.reporting.audits import write_matrix

        write_matrix(OUT / "planted.csv")
    if wrong:
        sys.exit(f"not as expected: {', '.join(wrong)}")


if __name__ == "__main__":
    main(sys.argv[1:])
