"""Make .venv from the lock: everything by hash, torch and torchvision by version.

    python3 envs/install.py          (what `make setup` runs; TORCH_INDEX=URL names an index of torch builds)

Standard library only, and written so that an old Python can read it far enough to say that it is old.
Does nothing when .venv is already what the lock says.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
LOCK = os.path.join(ROOT, "envs", "requirements.lock")
STAMP = os.path.join(VENV, "installed")
OLDEST = (3, 11)
NEEDED_GB = 4


def stop(message):
    sys.exit("setup: " + message)


def torch_pins():
    """Return the pins of torch and torchvision, which stand in several places of pyproject.toml."""
    with open(os.path.join(ROOT, "pyproject.toml")) as file:
        return sorted(set(re.findall(r'"(torch(?:vision)?==[^"]+)"', file.read())))


def digest():
    """Return a digest of all that decides what .venv holds."""
    with open(LOCK, "rb") as file:
        parts = [file.read(), sys.version.encode(), VENV.encode(), os.environ.get("TORCH_INDEX", "").encode()]
    return hashlib.sha256(b"\n".join(parts + [pin.encode() for pin in torch_pins()])).hexdigest()


def pip(*arguments):
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"] + list(arguments)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        return
    output = done.stdout.strip()
    sys.stderr.write(output + "\n")
    if "No space left" in output:
        stop("the disk is full: free some space under %s and run the same command again." % ROOT)
    if re.search(r"NewConnectionError|Connection|timed? ?out|Temporary failure|No matching distribution", output):
        stop(
            "the package registry did not give what is needed (see above). Check the network, or name the registry "
            "with PIP_INDEX_URL (and an index of torch builds with TORCH_INDEX), and run the same command again."
        )
    if "DO NOT MATCH THE HASHES" in output:
        stop("a package from the registry is not the one in envs/requirements.lock: nothing was installed from it.")
    stop("pip failed (see above); the command was: pip install " + " ".join(arguments))


def main():
    if sys.version_info[:2] < OLDEST:
        stop(
            "Python %d.%d or newer is needed, this is %s (%s). Name a newer one: make demo PYTHON=python3.12"
            % (OLDEST + (sys.version.split()[0], sys.executable))
        )
    wanted = digest()
    if os.path.exists(STAMP):
        with open(STAMP) as file:
            if file.read() == wanted:
                return
    free_gb = shutil.disk_usage(ROOT).free / 1e9
    if free_gb < NEEDED_GB:
        stop("%.1f GB are free under %s, %d GB are needed." % (free_gb, ROOT, NEEDED_GB))
    words = "PyTorch and some 130 packages are downloaded, up to %d GB on the disk (a few minutes the first time)" % NEEDED_GB
    print("setup: making .venv: " + words, flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", VENV], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        stop("python -m venv failed: %s (on Debian: apt-get install python3-venv)" % made.stdout.strip())
    # --no-deps: the lock is complete, and torch, which it leaves out, must not come in as somebody's dependency
    pip("--require-hashes", "--no-deps", "-r", LOCK)
    index = os.environ.get("TORCH_INDEX")
    pip(*torch_pins(), *(["--index-url", index] if index else []))
    pip("--no-deps", "--no-build-isolation", "--editable", ROOT)
    with open(STAMP, "w") as file:
        file.write(wanted)


if __name__ == "__main__":
    main()
