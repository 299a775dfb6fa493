"""Words of a command that look like targets and are none get a line that names what may be meant."""

import functools
import re

import pytest
from copied import copy_configuration

from dpvision import plan
from dpvision.errors import UserError
from dpvision.looking.target import artifacts_of, hints

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
        (
            "results/demo/tables/table1.csv",
            "results/demo/tables/table1.csv is of the scale demo, this command of paper; add: --config scale=demo",
        ),
    ],
)
def test_a_word_that_is_no_target_is_said_with_the_nearest_or_its_scale(word, said):
    assert hints(planned("paper"), ["--cores", "2", word], RULES, plan.ROOT) == [said]


@pytest.mark.parametrize("word", ["laptop", "laptop_table", "results/tables/laptop_table.csv"])
def test_paper_that_is_not_listed_is_said_to_be(word):
    (line,) = hints(planned("paper"), [word], RULES, plan.ROOT)
    assert "laptop is not in `papers` of config/config.yaml" in line
    assert line.endswith("--config scale=laptop 'papers=[\"laptop\"]'")


@pytest.mark.parametrize(
    ("paper", "said"),
    [
        ("mine", "there is no config/papers/mine/demo.yaml (an empty one, `{}`, will do)"),
        ("scalenorm", "mine is not in `papers` of config/config.yaml"),
    ],
)
def test_target_of_a_new_paper_says_what_it_lacks(tmp_path, paper, said):
    copy_configuration(tmp_path)
    folder = tmp_path / "config/papers/mine"
    folder.mkdir()
    text = (tmp_path / "config/papers/scalenorm/paper.yaml").read_text()
    (folder / "paper.yaml").write_text(re.sub(r"^  table1:", "  mine_table1:", text, flags=re.M))
    found = plan.load({"papers": list(dict.fromkeys(["scalenorm", paper])), "scale": "demo"}, tmp_path)
    for word in ("mine", "mine_table1"):
        (line,) = hints(found, [word], RULES, tmp_path)
        assert said in line
        with pytest.raises(UserError, match=re.escape(said)):
            artifacts_of(found, [word], tmp_path)


def test_a_file_of_the_paper_scale_asked_for_at_another_scale_is_said():
    (line,) = hints(planned("demo"), ["results/tables/table1.csv"], RULES, plan.ROOT)
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
    assert hints(planned("paper"), words, RULES, plan.ROOT) == []


def test_an_artifact_that_a_scale_leaves_out_is_said():
    left = planned("demo").left_out[0]
    (line,) = hints(planned("demo"), [left], RULES, plan.ROOT)
    assert "left out at the scale demo: config/papers/scalenorm/demo.yaml does without it" in line
