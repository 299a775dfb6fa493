"""The plan of all work: configuration, specs, targets. Plain Python, quick to import: no torch, numpy or pandas."""

from dpvision.plan.load import load
from dpvision.plan.plan import DATA, Plan
from dpvision.source import ROOT

__all__ = ["DATA", "ROOT", "Plan", "load"]
