"""An archive's code runs only after this checkout has verified it."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def reproduce(archive: Path, folder: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "envs/reproduce.py"), str(archive), "table1"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_no_code_of_a_forged_archive_runs(archive, tmp_path):
    """A forged archive leaves a mark only if its Makefile runs. Its manifest does not know that Makefile."""
    forged = tmp_path / "forged.zip"
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(forged, "w") as made:
        for name in whole.namelist():
            made.writestr(name, f"setup:\n\ttouch {tmp_path}/mark\n" if name == "source/Makefile" else whole.read(name))
        if "source/Makefile" not in whole.namelist():
            made.writestr("source/Makefile", f"setup:\n\ttouch {tmp_path}/mark\n")
    done = reproduce(forged, tmp_path)
    assert done.returncode != 0
    assert "source/Makefile" in done.stdout + done.stderr
    assert "ARCHIVE'S OWN CODE" not in done.stdout
    assert not (tmp_path / "mark").exists()
    assert not (tmp_path / "reproduced").exists()
