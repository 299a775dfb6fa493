"""Kinds of comparison that decide a claim: a file each, found by name.

A file of a kind has
- `Options`, a model of config/comparisons.py: what a claim may say of it, which cells it compares, and what is read of them;
- `UNIT`, the unit of its effect, a panel of the figure (reporting/forest.py); an effect in `ratio` is averaged by logarithms;
- `observed(comparison, records)`, the effect by seed;
- `in_print(comparison, *numbers)`, the effect by the numbers in print, one for each side;
- `described(comparison, named)`, what is compared, in words.
The plan imports these files: they import nothing heavy.
"""

import sys

from dpvision.config.base import members

COMPARISONS = members(sys.modules[__name__])
