"""Cells and runs of a plan, by an artifact and coordinates."""

from dpvision import plan
from dpvision.plan import specs


def cells_of(made: plan.Plan, artifact: str, **at: object) -> list[specs.Spec]:
    """Return the cells of an artifact that have these coordinates."""
    return [cell for cell in made.artifacts[artifact]["cells"] if at.items() <= cell["at"].items()]


def runs_of(made: plan.Plan, artifact: str, **at: object) -> list[specs.Spec]:
    """Return the specs of these cells' trainings."""
    names = [name for cell in cells_of(made, artifact, **at) for name in cell["work"]["train"].values()]
    return [made.work["train", name] for name in names]
