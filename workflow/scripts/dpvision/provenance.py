"""The origin of a result: code, versions, data, machine, time, memory. It explains the result and names no person."""

import importlib.metadata
import os
import platform
import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpvision.code import code_digest
from dpvision.files import digest, file_digest
from dpvision.source import ROOT, source

LOCK = ROOT / "envs" / "requirements.lock"
PACKAGES = ("numpy", "opacus", "optuna", "pandas", "pyhessian", "scipy", "snakemake", "timm", "torch", "torchvision")


class Origin:
    """The origin of a job's result, noted when the job begins: files may be edited while it runs."""

    def __init__(self, stage: str) -> None:
        """Note what there is now; `stage` names the module, or several with spaces, whose code and imports make the result."""
        self.stage = stage
        self.code = code_digest(*stage.split())
        found = source()
        self.commit = found and found.commit + ("+" if found.changed_code else "")
        self.dirty = found and bool(found.changed_code)
        self.lock = file_digest(LOCK)[:12] if LOCK.exists() else None
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self._begun = time.monotonic()

    def seconds(self) -> float:
        return round(time.monotonic() - self._begun, 3)

    def provenance(self, spec: Any, **more: Any) -> dict[str, Any]:
        """Return the provenance of a result; `more` is what only this stage knows."""
        return {
            "stage": self.stage,
            "code": self.code,
            "commit": self.commit,
            "dirty": self.dirty,
            "spec": digest(spec),
            "lock": self.lock,
            "python": platform.python_version(),
            "packages": {name: _version(name) for name in PACKAGES},
            "machine": _machine(),
            "started": self.started,
            "seconds": self.seconds(),
            "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            **more,
        }


def departures(made: dict[str, Any], commit: str | None = None, lock: str | None = None) -> list[str]:
    """Return the caveats of a result by its provenance: also beside this commit and lock, where they are given."""
    sessions = made.get("sessions", [])
    commits = {one.get("commit") for one in (made, *sessions) if one.get("commit")}
    locks = {one.get("lock") for one in (made, *sessions) if one.get("lock")}
    said = {
        "made from a dirty tree": any(one.endswith("+") for one in commits),
        "made at no known commit": not commits,
        "made at another commit": bool(commit) and any(one.removesuffix("+") != commit for one in commits),
        "made with another lock": bool(lock) and bool(locks - {lock}),
        "made by a run that was resumed": len(sessions) > 1,
        "resumed with other code": len({one["code"] for one in sessions}) > 1,
        "resumed with other data": len({one["data"] for one in sessions if "data" in one}) > 1,
        "with no digest of the data": made["stage"].split()[0] == "dpvision.training.run" and "data" not in made,
    }
    return [text for text, so in said.items() if so]


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
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
