"""Make one artifact of an archive again, from nothing but the archive, and compare.

    python3 envs/reproduce.py ARCHIVE.zip ARTIFACT      (what `make reproduce` runs; CORES=4)

Verifies it with this checkout, before anything in it runs; unpacks it into reproduced/NAME/, sets up its own source from its
own lock, verifies it again, makes the artifact there with the archive's own configuration, and compares each cell. From the
set up on it is the archive's own code. Standard library only. Given again it goes on where it was.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(CHECKOUT, "workflow", "scripts"))
from dpvision.errors import UserError  # noqa: E402
from dpvision.verify.unpack import unpack  # noqa: E402

CONTENTS = ("archive.json", "config.json", "source/Makefile")


def stop(message):
    sys.exit("reproduce: " + message)


def step(title, command, folder):
    print("reproduce: " + title, flush=True)
    if subprocess.run(command, cwd=folder).returncode:
        stop(f"this failed (see above): {' '.join(command)}, in {folder}")


def unpack_archive(archive):
    folder = os.path.join(os.path.abspath("reproduced"), os.path.splitext(os.path.basename(archive))[0])
    if os.path.isdir(folder):
        print(f"reproduce: goes on in {folder}; delete it to begin anew")
        return folder
    beside = folder + ".part"
    shutil.rmtree(beside, ignore_errors=True)
    os.makedirs(beside)
    try:
        damages = unpack(pathlib.Path(archive), pathlib.Path(beside))
    except (OSError, UserError) as error:
        stop(f"{archive} cannot be unpacked: {error}")
    if damages:
        stop(f"{archive} cannot be unpacked: {damages[0][0]}: {damages[0][1]}")
    absent = [name for name in CONTENTS if not os.path.isfile(os.path.join(beside, name))]
    if absent:
        stop(f"{archive} has no {absent[0]}: it is no archive of this project")
    os.rename(beside, folder)
    return folder


def main():
    if len(sys.argv) != 3 or not all(sys.argv[1:]):
        stop("name the archive and the artifact: make reproduce ARCHIVE=results/archive/dpvision-0.1.0.zip ARTIFACT=table1")
    archive, artifact = sys.argv[1:]
    own = os.path.join(CHECKOUT, ".venv", "bin", "python")
    step("verifies the archive with this checkout", [own, "-m", "dpvision", "verify", os.path.abspath(archive)], CHECKOUT)
    print(
        "reproduce: it holds. NOW THE ARCHIVE'S OWN CODE RUNS, with your rights on this machine: its setup, its pipeline",
        flush=True,
    )
    folder = unpack_archive(archive)
    source = os.path.join(folder, "source")
    python = os.path.join(source, ".venv", "bin", "python")
    step("sets up the archive's source", ["make", "setup", "PYTHON=" + sys.executable], source)
    # the packed one: beside the unpacked files there is by now what was installed and made
    step("verifies the archive", [python, "-m", "dpvision", "verify", os.path.abspath(archive)], source)
    # Snakemake starts scripts by the path of its own Python, and cannot do with spaces in that
    with tempfile.TemporaryDirectory() as short:
        os.symlink(os.path.join(source, ".venv"), os.path.join(short, "venv"))
        snakemake = [os.path.join(short, "venv", "bin", "python"), "-m", "snakemake"]
        words = [artifact, "--cores", os.environ.get("CORES", "2"), "--configfile", "../config.json"]
        step(f"makes {artifact} again", snakemake + words, source)
    step("compares", [python, "-m", "dpvision", "again", folder, artifact], source)


if __name__ == "__main__":
    main()
