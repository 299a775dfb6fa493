"""Titles name what a scale trains, and on which data."""

import pytest

from dpvision import plan
from dpvision.plan.titles import retitle

DIGITS = {"CIFAR-10": "digits"}


@pytest.mark.parametrize(
    ("title", "mentioned", "data", "expected"),
    [
        ("Accuracy on CIFAR-10, tuned", {}, DIGITS, "Accuracy on digits, tuned"),
        ("Accuracy by depth", {}, DIGITS, "Accuracy by depth, on digits"),
        ("Accuracy by depth", {}, DIGITS | {"MNIST": "MNIST"}, "Accuracy by depth"),  # not all are others
        ("CIFAR-100 on CIFAR-10", {"CIFAR-100": "digits 0 to 4"}, DIGITS, "digits 0 to 4 on digits"),
        ("Pace of WRN-16-4", {"WRN-16-4": "WRN-10-1"}, {}, "Pace of WRN-10-1"),
        ("SmoothNet", {"SmoothNet": "SmoothNet W5D10"}, {}, "SmoothNet"),
        ("Accuracy on CIFAR-10", {"WRN": "WRN"}, {"CIFAR-10": "CIFAR-10"}, "Accuracy on CIFAR-10"),
    ],
)
def test_title_names_what_the_scale_has(title, mentioned, data, expected):
    assert retitle(title, mentioned, data) == expected


def test_titles_of_the_demo_name_the_digits():
    titles = {scale: plan.load({"papers": ["de2022", "smoothnets"], "scale": scale}).labels for scale in ("paper", "demo")}
    figure1 = {scale: labels["de2022_figure1"]["title"] for scale, labels in titles.items()}
    assert figure1 == {scale: f"Test accuracy on {data} without additional data" for scale, data in SHOWN.items()}
    finetuned = titles["demo"]["de2022_table5"]["title"]
    assert "WRN-10-1 after fine-tuning from digits 0 to 4" in finetuned and finetuned.endswith("on digits 5 to 9")
    assert "digits" not in titles["demo"]["smoothnets_table1"]["title"]  # it quotes numbers in print
    assert not any("digits" in labels["title"] for labels in titles["paper"].values())


SHOWN = {"paper": "CIFAR-10", "demo": "digits"}
