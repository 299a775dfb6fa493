"""Run the tests that the files changed since the last commit touch: what `make check` does after formats and linters.

A test file is touched when it changed, or when its text names what changed. Of its tests those marked `slow` are left to
`make test-all`, as `make test` leaves them.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = "workflow/scripts/dpvision/"
ELSEWHERE = ("tests/browser/", "tests/cluster/")  # make test-report, make test-cluster
QUICK = ["-m", "not slow"]
NONE_CHOSEN = 5  # how pytest ends where all were left out
CONFIGURATION = "tests/plan"


def changed() -> list[str]:
    """Return the files that are not as committed, new ones among them."""
    commands = (["git", "diff", "--name-only", "HEAD"], ["git", "ls-files", "--others", "--exclude-standard"])
    texts = [subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout for words in commands]
    return sorted({line for text in texts for line in text.splitlines()})


def touched_by(file: str, tests: dict[str, str]) -> set[str]:
    """Return the tests that a file touches, files or a folder; `tests` has the text of every test file."""
    if file.startswith("tests/"):
        return _of_test_code(file, tests)
    if file.startswith(LIBRARY) and file.endswith(".py"):
        module = "dpvision." + file.removeprefix(LIBRARY).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        folder = "tests/" + file.removeprefix(LIBRARY).split("/")[0]
        return {name for name, text in tests.items() if _imports(text, module)} | _existing({folder}, tests)
    named = {name for name, text in tests.items() if file in text}
    return named | ({CONFIGURATION} if file.startswith("config/") else set())


def _of_test_code(file: str, tests: dict[str, str]) -> set[str]:
    """Return a test file itself, the folder of a conftest, or the tests that import a helper."""
    if file in tests:
        return {file}
    path = Path(file)
    if path.name == "conftest.py":
        return _existing({path.parent.as_posix()}, tests)
    return {name for name, text in tests.items() if _imports(text, path.stem)} if path.suffix == ".py" else set()


def _imports(text: str, module: str) -> bool:
    """Say whether a file imports a module by its name."""
    package, _, name = module.rpartition(".")
    ways = [rf"^\s*from {re.escape(module)} import ", rf"^\s*import {re.escape(module)}\b"]
    if package:
        ways.append(rf"^\s*from {re.escape(package)} import (?:.*\b|\([^)]*\b){name}\b")
    return any(re.search(way, text, re.M) for way in ways)


def _existing(folders: Iterable[str], tests: dict[str, str]) -> set[str]:
    return {folder for folder in folders if any(name.startswith(f"{folder}/") for name in tests)}


def main() -> None:
    files = (path for path in ROOT.glob("tests/**/test_*.py") if not path.relative_to(ROOT).as_posix().startswith(ELSEWHERE))
    tests = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    touched: set[str] = set()
    for file in changed():
        if found := touched_by(file, tests):
            touched |= found
        else:
            print(f"no test names {file}")
    if not touched:
        print("no test is touched; make test runs the quick ones, make test-all all")
        return
    wanted = sorted(test for test in touched if not any(test.startswith(f"{folder}/") for folder in touched))
    print("pytest", "-m 'not slow'", *wanted, flush=True)
    ended = subprocess.run([sys.executable, "-m", "pytest", *QUICK, *wanted], cwd=ROOT).returncode
    if ended == NONE_CHOSEN:
        print("every test that is touched is slow: make test-all runs them")
    sys.exit(0 if ended == NONE_CHOSEN else ended)


if __name__ == "__main__":
    main()
