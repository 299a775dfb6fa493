"""Words of a command that look like targets and are none get a line that names what may be meant."""

import functools

import pytest

from dpvision import plan
from dpvision.looking.target import hints

RULES = ["all", "table", "train", "scalenorm", "table1", "report"]


@functools.cache
def planned(scale: str) -> plan.Plan:
    return plan.load({"papers": ["scalenorm"], "scale": scale})


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("tabel1", 'there is no target "tabel1". Did you mean "table1"?'),
        ("scalenrom", 'there is no target "scalenrom". Did you mean "scalenorm"?'),
        ("results/tables/tabel1.csv", 'nothing makes results/tables/tabel1.csv. Did you mean "results/tables/table1.csv"?'),
        ("results/tables/table1.pdf", 'nothing makes results/tables/table1.pdf. Did you mean "results/tables/table1.md"?'),
        (
            "table1.csv",
            "table1.csv is no target; ask for table1, or for one of: "
            + ", ".join(f"results/tables/table1.{suffix}" for suffix in ("csv", "md", "tex")),
        ),
        ("laptop", "laptop is a paper that this command does not build; add: --config scale=laptop 'papers=[\"laptop\"]'"),
        (
            "results/demo/tables/table1.csv",
            "results/demo/tables/table1.csv is of the scale demo, this command of paper; add: --config scale=demo",
        ),
    ],
)
def test_a_word_that_is_no_target_is_said_with_the_nearest_or_its_scale(word, said):
    assert hints(planned("paper"), ["--cores", "2", word], RULES) == [said]


def test_a_file_of_the_paper_scale_asked_for_at_another_scale_is_said():
    (line,) = hints(planned("demo"), ["results/tables/table1.csv"], RULES)
    assert line.endswith("is of the scale paper, this command of demo; add: --config scale=paper")


@pytest.mark.parametrize(
    "words",
    [
        ["table1", "results/tables/table1.csv", "results/figures/figure2.pdf", "results/claims.md"],
        ["--profile", "slurm", "--quiet", "host", "reason", "rules", "--config", "scale=paper"],
        ["--until", "table", "train", "results/data/prepared/cifar10-69d464af1ec0/dataset.json"],
    ],
)
def test_right_targets_and_other_words_say_nothing(words):
    assert hints(planned("paper"), words, RULES) == []


def test_an_artifact_that_a_scale_leaves_out_is_said():
    left = planned("demo").left_out[0]
    assert hints(planned("demo"), [left], RULES) == [f"{left} is left out at the scale demo"]
