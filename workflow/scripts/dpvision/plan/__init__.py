"""What is to be done: configuration, specs, targets. Plain Python, quick to import: no torch, numpy or pandas."""

from dpvision.plan.build import CLAIMS, DATA, ROOT, Plan, load

__all__ = ["CLAIMS", "DATA", "ROOT", "Plan", "load"]
