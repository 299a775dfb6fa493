"""Digits: 1,797 handwritten digits, 8 x 8, that scikit-learn carries (the test part of UCI's optdigits)."""

import gzip
from pathlib import Path

import numpy as np

from dpvision.data.datasets import Arrays
from dpvision.data.prepared import split

TEST_EXAMPLES = 360
SPLIT_SEED = 0  # there is no published test split; this one is ours, and never changes


def read(raw: Path) -> Arrays:
    with gzip.open(raw / "digits.csv.gz", "rt") as table:
        rows = np.loadtxt(table, delimiter=",", dtype=np.int64)
    values, labels = rows[:, :-1], rows[:, -1]
    images = np.round(values * 255 / 16).astype(np.uint8).reshape(-1, 1, 8, 8)
    train, test = split(len(rows), TEST_EXAMPLES, SPLIT_SEED)
    return Arrays(images[train], labels[train], images[test], labels[test], [str(digit) for digit in range(10)])
