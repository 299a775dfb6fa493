"""What made a result: code, versions, data, machine, time, memory. Enough to explain it, nothing that names a person."""

import importlib.metadata
import os
import platform
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpvision.code import code_digest
from dpvision.files import digest, file_digest

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "envs" / "requirements.lock"
PACKAGES = ("numpy", "opacus", "optuna", "pandas", "pyhessian", "scipy", "snakemake", "torch", "torchvision")


class Origin:
    """What a job is made of, noted when it begins: files may be edited while it runs."""

    def __init__(self, stage: str) -> None:
        """`stage` names the module whose code, with all that it imports, makes the result; or several, with spaces."""
        self.stage = stage
        self.code = code_digest(*stage.split())
        self.commit = _commit()
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self._begun = time.monotonic()

    def seconds(self) -> float:
        return round(time.monotonic() - self._begun, 3)

    def provenance(self, spec: Any, **more: Any) -> dict[str, Any]:
        """`more` is what only this stage knows."""
        return {
            "stage": self.stage,
            "code": self.code,
            "commit": self.commit,
            "spec": digest(spec),
            "lock": file_digest(LOCK)[:12] if LOCK.exists() else None,
            "python": platform.python_version(),
            "packages": {name: _version(name) for name in PACKAGES},
            "machine": _machine(),
            "started": self.started,
            "seconds": self.seconds(),
            "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            **more,
        }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the checkout, with a plus where files differ from it; none outside of a checkout."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _machine() -> dict[str, Any]:
    torch = sys.modules.get("torch")  # stages without it do not load it for this
    facts: dict[str, Any] = {"system": platform.system(), "processor": processor(), "cores": os.cpu_count()}
    if torch is not None:
        facts |= {"torch_build": torch.__version__, "cuda": torch.version.cuda, "threads": torch.get_num_threads()}
        if torch.cuda.is_available():
            facts |= {"gpu": torch.cuda.get_device_name(), "gpu_peak_mb": torch.cuda.max_memory_allocated() >> 20}
    return facts


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
