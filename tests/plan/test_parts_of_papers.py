"""A part of a paper is a folder in the paper's folder, with files of the same names: its own groups, artifacts, claims."""

import pytest
import yaml

HEADS = {
    "cells": {"large": {"dataset": "digits", "models": ["resnet9"], "recipe": "resnet9", "epsilons": [8.0], "delta": 1.0e-4}},
    "artifacts": {"part_table": {"kind": "accuracy", "title": "A part's", "cells": ["large"], "metrics": [{"name": "top1"}]}},
}
ROW = {"artifact": "part_table", "model": "resnet9", "epsilon": 8.0, "metric": "top1", "statistic": "median", "value": 90.0}


@pytest.fixture
def part(configuration):
    """Return a function that writes files of a part of ScaleNorm; with none, the part has its paper.yaml alone."""
    folder = configuration.root / "config/papers/scalenorm/heads"
    folder.mkdir()

    def write(**files):
        for name, content in {"paper": HEADS, **files}.items():
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
        return configuration

    return write


def test_the_artifacts_of_a_part_are_its_papers(part):
    before = part(paper={}).plan()
    planned = part().plan()
    assert planned.papers["scalenorm"] == [*before.papers["scalenorm"], "part_table"]
    assert len(planned.runs) == len(before.runs) + 3
    assert before.runs.items() <= planned.runs.items()


def test_the_numbers_in_print_of_a_part_stand_beside_its_cells(part):
    assert part(published=[ROW]).plan().artifacts["part_table"]["published"][0]["value"] == 90.0


def test_a_wrong_number_of_a_part_is_named_by_the_parts_file(part):
    (line,) = part(published=[ROW | {"artifact": "part_tabel"}]).complaints()
    assert line.startswith(
        'config/papers/scalenorm/heads/published.yaml: entry 1: artifact = "part_tabel": there is no artifact'
    )


def test_the_claims_of_a_part_stand_on_the_papers_page(part):
    claim = {"text": "It learns.", "section": "1", "artifacts": ["part_table"]}
    level = {"kind": "level", "dataset": "digits", "model": "resnet9", "epsilon": 8.0, "than": 50, "claimed": {"above": 0}}
    claim["comparisons"] = [level]
    stated = part(claims={"learns": claim}).plan().artifacts["claims"]["claims"]
    assert stated[-1]["name"] == "learns"


def test_a_part_without_a_scales_file_is_left_out_at_that_scale(part):
    planned = part().plan(scale="demo")
    assert "part_table" not in planned.artifacts
    assert "part_table" in planned.left_out


def test_a_claim_of_a_part_that_a_scale_leaves_out_can_name_the_parts_own_model(part):
    models = {"own": {"family": "resnet9", "label": "a part's own"}}
    cells = {"large": HEADS["cells"]["large"] | {"models": ["own"]}}
    level = {"kind": "level", "dataset": "digits", "model": "own", "epsilon": 8.0, "than": 50, "claimed": {"above": 0}}
    claim = {"text": "It learns.", "section": "1", "artifacts": ["part_table"], "comparisons": [level]}
    planned = part(paper=HEADS | {"models": models, "cells": cells}, claims={"learns": claim}).plan(scale="demo")
    assert planned.labels["claims"]["models"]["own"] == "a part's own"


def test_a_scales_file_of_a_part_is_laid_over_the_part(part):
    planned = part(demo={"cells": {"large": {"epsilons": [4.0]}}}).plan(scale="demo")
    (cell,) = planned.artifacts["part_table"]["cells"]
    assert cell["at"]["epsilon"] == 4.0


@pytest.mark.parametrize("section", ["cells", "artifacts"])
def test_a_name_that_the_paper_has_already_is_refused(part, section):
    taken = {"cells": "cifar10", "artifacts": "table1"}[section]
    (line,) = part(paper=HEADS | {section: {taken: next(iter(HEADS[section].values()))}}).complaints()
    assert line == (
        f"config/papers/scalenorm/heads/paper.yaml: {section}.{taken}: "
        "config/papers/scalenorm/paper.yaml has this name already; rename one of them"
    )


def test_a_part_has_no_seeds_of_its_own(part):
    (line,) = part(paper=HEADS | {"seeds": [1]}).complaints()
    assert line.startswith('config/papers/scalenorm/heads/paper.yaml: seeds: there is no key "seeds" in a part of a paper.')


def test_a_slip_in_a_part_names_its_file(part):
    slip = HEADS | {"cells": {"large": HEADS["cells"]["large"] | {"recip": "resnet9"}}}
    lines = part(paper=slip).complaints()
    assert lines[0].startswith("config/papers/scalenorm/heads/paper.yaml: cells.large.recip = ")


def test_a_file_of_a_part_that_nothing_reads_is_named(part):
    (line,) = part(demi={}).complaints()
    assert line.startswith("config/papers/scalenorm/heads/demi.yaml: there is no scale of this name.")
