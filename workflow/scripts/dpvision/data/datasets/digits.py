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


def half(raw: Path, first: int) -> Arrays:
    """Return the five classes from a digit on; the first of them is label 0."""
    whole = read(raw)

    def chosen(images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inside = (labels >= first) & (labels < first + 5)
        return images[inside], labels[inside] - first

    train, test = chosen(whole.train_images, whole.train_labels), chosen(whole.test_images, whole.test_labels)
    return Arrays(*train, *test, whole.class_names[first : first + 5])
