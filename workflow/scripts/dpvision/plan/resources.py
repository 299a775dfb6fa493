"""Resources that jobs ask a machine for: by their own cost where that is known, more at every attempt."""

from typing import Any

from dpvision.config.scales import Resources
from dpvision.plan.cost import Cost
from dpvision.plan.plan import Plan
from dpvision.plan.stages import STAGES, Key

OTHERS = ("download", "prepare", "report")  # jobs that belong to no stage, or to a part of one


def limits(plan: Plan, job: str) -> Resources:
    """Return what the scale gives a kind of job."""
    return plan.resources.get(job, Resources())


def cost_of(plan: Plan, key: Key, workers: int | None = None) -> Cost | None:
    """Return the cost of a job of a piece of work; none where it is next to nothing."""
    cost = STAGES[key[0]].cost
    batch = limits(plan, key[0]).physical_batch
    return cost(plan.work[key], plan.dearest_run_of(key), batch, workers or plan.workers) if cost else None


def asked(plan: Plan, job: str, wildcard: str | None = None) -> dict[str, Any]:
    """Return a job's resources as Snakemake takes them; `wildcard` names the piece of work of the stage `job`."""
    given = limits(plan, job)

    def cost(wildcards: Any) -> Cost | None:
        return cost_of(plan, (job, getattr(wildcards, wildcard))) if wildcard else None

    def runtime(wildcards: Any, attempt: int) -> int:
        if (known := cost(wildcards)) is None:
            return given.runtime * attempt
        return int(min(given.runtime, known.minutes(given.speed * (known.devices if given.gpu else 1)) * attempt))

    def mem_mb(wildcards: Any, attempt: int) -> int:
        """Add half of the memory at every attempt: most retries are for other reasons than memory."""
        known = cost(wildcards)
        return (megabytes(plan, job, known) if known else given.mem_mb) * (1 + attempt) // 2

    def gpu(wildcards: Any) -> int:
        known = cost(wildcards)
        return given.gpu * (known.devices if known else 1)

    asked = {"physical_batch": given.physical_batch, "runtime": runtime, "mem_mb": mem_mb}
    if given.gpu:  # gpu=0 would still be a request on some clusters
        asked |= {"gpu": gpu, "nodes": 1}  # or a cluster may give two GPUs on two machines
    return asked


def megabytes(plan: Plan, job: str, cost: Cost) -> int:
    """Return what a job needs at its first attempt."""
    given = limits(plan, job)
    return given.mem_mb * cost.devices + cost.megabytes(0 if given.gpu else given.threads)
